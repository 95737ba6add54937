"""The benchmark of poses measures what it says, on a clip of a few frames."""

from __future__ import annotations

import pytest

from benchmarks.pose import COLUMNS, measured, parse_seeds, table


@pytest.fixture(scope="module")
def still():
    return measured("marker, still", 0.4, 3)


def test_a_marker_is_known_to_a_fraction_of_a_pixel(still):
    assert still["reprojection_px"] < 0.5
    assert still["turn_degrees"] < 0.5
    assert still["distance_percent"] < 0.5
    assert still["false"] == 0
    assert still["unseen"] is None  # it was never out of view
    assert still["lag_ms"] is None  # nothing moved
    assert still["jitter_mm"] is None  # too few frames


def test_the_time_until_it_is_found_counts(still):
    assert still["tracked"] == pytest.approx(1 - still["found_after_s"] * 30 / 12)
    assert len(still["cpu_ms"]) == len(still["wall_ms"]) == 12
    assert all(each > 0 for each in still["cpu_ms"])


def test_the_table_has_a_row_a_kind_and_one_of_all(still):
    lines = table([still, still | {"seed": 4}])
    assert len(lines) == 5
    assert all(line.count("|") == len(COLUMNS) + 5 for line in lines)
    assert lines[-1].startswith("| all |")


def test_seeds_are_a_range():
    assert parse_seeds("100-102") == [100, 101, 102]
    assert parse_seeds("7") == [7]
