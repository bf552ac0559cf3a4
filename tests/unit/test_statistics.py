from __future__ import annotations

import pyarrow as pa
import pytest

import weft
from weft.generate import sensors


def test_a_steady_source_is_measured_as_it_was_generated() -> None:
    table = sensors(20_000, 3, devices=25, rate=500.0)
    known = weft.Statistics.measure(table, keys=["device"])
    assert known.rate == pytest.approx(500, rel=0.02)
    assert known.keys == 25
    assert known.lateness_us == (0, 0, 0)
    assert known.assumed == ()


def test_disorder_and_skew_are_measured() -> None:
    table = sensors(20_000, 3, devices=25, rate=500.0, disorder="2 seconds", skew=1.5)
    known = weft.Statistics.measure(table, time="ts", keys=["device"])
    assert 0 < known.lateness_us[0] <= known.lateness_us[1] <= known.lateness_us[2] <= 2_000_000
    assert known.key_skew > 0.2


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_other_libraries_measure_the_same(library: str) -> None:
    table = sensors(2_000, 5, devices=4)
    other = (
        table.to_pandas()
        if library == "pandas"
        else pytest.importorskip("polars").from_arrow(table)
    )
    assert weft.Statistics.measure(other, keys=["device"]) == weft.Statistics.measure(
        table, keys=["device"]
    )


@pytest.mark.parametrize("times", [[], [None], [5], [5, 5]])
def test_a_table_without_a_span_has_no_rate(times: list[int | None]) -> None:
    table = pa.table({"ts": pa.array(times, pa.timestamp("us"))})
    with pytest.raises(weft.DataError, match="cannot be measured"):
        weft.Statistics.measure(table)


def test_two_timestamp_columns_are_ambiguous() -> None:
    table = pa.table({c: pa.array([1, 2], pa.timestamp("us")) for c in ("a", "b")})
    with pytest.raises(weft.QueryError, match="2 timestamp columns: a, b"):
        weft.Statistics.measure(table)


@pytest.mark.parametrize("settings", [{"rate": 0}, {"rate": -1.0}, {"keys": 0}])
def test_impossible_statistics_are_refused(settings: dict) -> None:
    with pytest.raises(weft.QueryError):
        weft.Statistics(**settings)
