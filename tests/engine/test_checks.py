"""Names given to ``force_fallback`` mean something, or are refused."""

import pytest

from heimdall.engine.checks import check_forced_names
from heimdall.errors import ModelError
from heimdall.graph.graph import load_graph
from heimdall.system import paths


@pytest.fixture(scope="module")
def stages():
    names = ("hand_palm_lite_192", "seg_selfie_256")
    return [load_graph(paths.ASSETS / "models" / f"{name}.onnx") for name in names]


def test_a_type_or_node_of_any_stage_is_known(stages):
    only_in_palm = {n.op_type for n in stages[0].nodes} - {n.op_type for n in stages[1].nodes}
    check_forced_names(stages, [*only_in_palm, stages[1].nodes[3].name])
    check_forced_names(stages, ())


def test_a_name_that_matches_nothing_is_refused_with_the_types_there_are(stages):
    with pytest.raises(ModelError, match=r"'Convolution'.*op types there: .*Conv, "):
        check_forced_names(stages, ["Conv", "Convolution"])


def test_a_lone_string_is_refused_as_one(stages):
    with pytest.raises(ModelError, match=r"such as \['Conv'\], not 'Conv'"):
        check_forced_names(stages, "Conv")
