"""What tables tell for free: their length, their times, and keys by a bounded sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import weft
from weft.engines.spark.footers import _read
from weft.observation import SAMPLED_ROWS, observed
from weft.tables import write_table

ASK = {"source": "t", "time": "ts", "windows": {"1m": "1 minute"}, "aggs": {"n": "count(*)"}}


def table(events: int, keys: int, *, skew: bool = False) -> pa.Table:
    draw = np.random.default_rng(3)
    numbers = draw.integers(0, keys, events)
    if skew:
        numbers[: events // 2] = 0
        draw.shuffle(numbers)
    times = np.linspace(0, 3_600_000_000, events).astype(np.int64)
    names = np.char.add("device-", numbers.astype(str))
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "device": pa.array(names),
            "site": pa.array(numbers % 7),
        }
    )


def seen(rows: pa.Table, *keys: list[str]) -> weft.Statistics:
    queries = [weft.Query(f"q{at}", keys=own, **ASK) for at, own in enumerate(keys)]
    return observed(queries, {"t": rows})["t"]


def test_a_table_tells_its_length_its_span_and_the_keys_of_each_key_set() -> None:
    known = seen(table(5_000, 40), ["device"], ["site"], [])
    assert (known.events, known.duration, known.keys) == (5_000, 3_600_000_000, 40)
    assert known.rate == pytest.approx(5_000 / 3600)
    assert known.of_keys(("site",)).keys == 7
    assert known.of_keys(()).keys == 1
    assert known.key_bytes == pytest.approx(len("device-10"), abs=1)


@pytest.mark.parametrize("keys", [300, 30_000])
def test_keys_of_a_long_table_are_estimated_from_a_sample(keys: int) -> None:
    known = seen(table(4 * SAMPLED_ROWS, keys), ["device"])
    assert known.keys == pytest.approx(keys, rel=0.1)
    assert "keys by 65,536 rows" in known.told_by


def test_skew_is_seen_and_expressions_stay_unknown() -> None:
    assert seen(table(20_000, 50, skew=True), ["device"]).key_skew == pytest.approx(0.49, abs=0.02)
    known = observed([weft.Query("q", keys={"d": "upper(device)"}, **ASK)], {"t": table(10, 2)})
    assert known["t"].keys is None


def test_footers_tell_what_the_table_does(tmp_path) -> None:
    rows = table(30_000, 200)
    paths = [
        str(write_table(rows.slice(at * 10_000, 10_000), tmp_path / f"{at}.parquet").absolute())
        for at in range(3)
    ]
    found = _read(paths, "ts", ["device"])
    assert found.bounds == (30_000, 0, 3_600_000_000)
    assert (found.files, found.size) == (3, sum(Path(path).stat().st_size for path in paths))
    assert set(found.sample["device"].to_pylist()) == set(rows["device"].to_pylist())


def test_what_was_declared_wins_over_what_was_seen() -> None:
    rows = table(5_000, 40)
    plan = weft.optimize(weft.Query("q", keys=["device"], **ASK), engine="local")
    assert plan.statistics.keys is None
    known = weft.Statistics(keys=9).filled(seen(rows, ["device"]))
    assert (known.keys, known.of_keys(("device",)).keys, known.events) == (9, 9, 5_000)
    known = weft.Statistics(rate=10.0).filled(seen(rows, ["device"]))
    assert (known.rate, known.lasts_us()) == (10.0, pytest.approx(500e6))


def test_a_share_of_late_events_is_a_share() -> None:
    with pytest.raises(weft.QueryError, match="cannot be late"):
        weft.Statistics(late_share=1.0)


def test_late_events_of_a_stream_are_read_and_go_no_further() -> None:
    query = weft.Query("q", keys=["device"], watermark="1 second", **ASK)

    def cost(**known: float) -> float:
        told = weft.Statistics(rate=1e6, keys=50, **known)
        return weft.optimize(query, engine="spark", statistics=told, micro_batch="10 s").cost

    assert cost() > cost(late_share=0.5) > cost(late_share=0.9)
