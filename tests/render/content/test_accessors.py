"""Numbers that are stored sparsely, and as shares."""

import numpy as np
import pytest

from heimdall.errors import ModelError

SQUARE = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
MOVED = np.array([[5.0, 6.0, 7.0]])


def sparse(writer, place, base=True):
    """A square of which one corner is elsewhere."""
    writer.mesh(SQUARE, [0, 1, 2, 0, 2, 3])
    entry = writer.document["accessors"][0]
    entry["sparse"] = {
        "count": 1,
        "indices": {"bufferView": writer.view(np.uint16(place).tobytes()), "componentType": 5123},
        "values": {"bufferView": writer.view(MOVED.astype("<f4").tobytes())},
    }
    if not base:
        del entry["bufferView"]
    return writer


@pytest.mark.parametrize("base", [True, False])
def test_sparse_elements_replace_those_that_are_there_or_zeros(writer, base):
    found = sparse(writer, 2, base).read()
    corners = {tuple(each) for each in found.parts[0].positions.tolist()}
    expected = SQUARE.copy() if base else np.zeros((4, 3))
    expected[2] = MOVED
    assert corners == {tuple(each) for each in expected.tolist()}


def test_a_sparse_element_beyond_the_array_is_refused(writer):
    with pytest.raises(ModelError, match="sparse element 9 of 4"):
        sparse(writer, 9).read()


def test_normalised_integers_are_shares(writer):
    colours = writer.array([[255, 0, 128, 255]] * 4, "u1", normalized=True)
    writer.mesh(SQUARE, [0, 1, 2, 0, 2, 3], COLOR_0=colours)
    assert writer.read().parts[0].colours[0].tolist() == [255, 0, 128, 255]


def test_numbers_that_are_not_finite_are_refused_by_name(writer):
    broken = SQUARE.copy()
    broken[1, 1] = np.inf
    writer.mesh(broken, [0, 1, 2])
    with pytest.raises(ModelError, match=r"POSITION.*not finite"):
        writer.read()
