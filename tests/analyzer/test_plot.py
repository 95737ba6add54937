"""The picture of a partition."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from heimdall.analyzer.plot import plot_partition
from heimdall.analyzer.profile import NetworkProfile, OpProfile, ProfileKey
from heimdall.engine.null import NullEngine
from heimdall.errors import ConfigError

MS = 1_000_000
CONV = (0x00, 0x72, 0xB2)  # the first colour: the kind that takes most time


@pytest.fixture
def profile(graph):
    kinds = ["Conv", "Relu", "Conv", "Resize", "Conv", "Add"]
    ops = tuple(
        OpProfile(name=f"n{i}", kind=kind, ns=4 * MS, fallback=kind == "Resize")
        for i, kind in enumerate(kinds)
    )
    key = ProfileKey.of(graph, NullEngine(), NullEngine())
    return NetworkProfile(
        model="net", key=key, ops=ops, chunk_cost_ns=MS // 2, whole_ns=25 * MS, cpu_ns=40 * MS
    )


def test_picture_shows_bars_in_the_colours_of_the_kinds(profile, tmp_path):
    path = tmp_path / "plot.png"
    plot_partition(profile, profile.partition(10 * MS), 10.0, path, margin_ms=5.0)
    pixels = np.asarray(Image.open(path).convert("RGB"))
    assert pixels.shape[0] > 400
    assert pixels.shape[1] > 600
    assert (np.abs(pixels.astype(int) - CONV).max(axis=2) < 3).mean() > 0.03


def test_picture_of_a_hundred_chunks_has_a_bounded_size(profile, tmp_path):
    many = replace(profile, ops=profile.ops * 20)
    plot_partition(many, many.partition(MS, "fixed", ops_per_chunk=1), 1.0, tmp_path / "many.png")
    assert Image.open(tmp_path / "many.png").width < 2400


@pytest.mark.parametrize("name", ["missing/plot.png", "plot.nonsense"])
def test_file_that_cannot_be_written_is_refused_by_name(profile, tmp_path, name):
    with pytest.raises(ConfigError, match="cannot write the plot"):
        plot_partition(profile, profile.partition(MS), 1.0, tmp_path / name)
