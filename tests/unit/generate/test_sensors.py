"""The `sensors` set: steady rate, bounded disorder, late rows, skew, NULLs."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.generate import sensors
from weft.time import SECOND

START_US = 1_767_225_600 * SECOND


def times_us(table: pa.Table) -> np.ndarray:
    return table["ts"].cast(pa.int64()).to_numpy()


def lag_us(table: pa.Table) -> np.ndarray:
    """How much older each row is than the newest row up to and including it."""
    ts = times_us(table)
    return np.maximum.accumulate(ts) - ts


def device_shares(skew: float) -> np.ndarray:
    table = sensors(50_000, 7, devices=8, skew=skew)
    numbers = pc.utf8_slice_codeunits(table["device"], -4).cast(pa.int64()).to_numpy()
    return np.bincount(numbers, minlength=8) / table.num_rows


def test_columns_and_types():
    assert sensors(10, 7).schema == pa.schema(
        {
            "ts": pa.timestamp("us", tz="UTC"),
            "device": pa.string(),
            "temp": pa.float64(),
            "humidity": pa.float64(),
            "status": pa.int64(),
        }
    )
    assert sensors(0, 7).schema == sensors(10, 7).schema
    sensors(1000, 7).validate(full=True)


@pytest.mark.parametrize("rate", [7, 250.0, 300, np.int64(999)])
def test_rate_is_steady_over_all_devices(rate):
    ts = times_us(sensors(int(40 * rate), 7, rate=rate))
    assert ts[0] == START_US
    per_second = np.bincount((ts - START_US) // SECOND)
    assert per_second.tolist() == [rate] * 40


def test_start_is_the_first_instant():
    start = dt.datetime(2020, 2, 29, 12, tzinfo=dt.UTC)
    assert sensors(3, 7, start=start)["ts"][0].as_py() == start
    assert times_us(sensors(3, 7, start=-5))[0] == -5


def test_in_order_without_disorder():
    assert not lag_us(sensors(10_000, 7)).any()


@settings(deadline=None, max_examples=40)
@given(
    rows=st.integers(0, 400),
    seed=st.integers(0, 1000),
    rate=st.floats(0.5, 5000.0),
    disorder_us=st.integers(0, 20 * SECOND),
)
def test_disorder_never_exceeds_its_bound(rows, seed, rate, disorder_us):
    table = sensors(rows, seed, rate=rate, disorder=disorder_us)
    assert (lag_us(table) <= disorder_us).all()
    in_order = sensors(rows, seed, rate=rate)
    assert table.sort_by("ts").equals(in_order.sort_by("ts"))


def test_disorder_is_used_up():
    lag = lag_us(sensors(20_000, 7, rate=100.0, disorder="5 seconds"))
    assert (lag > 0).mean() > 0.9
    assert lag.max() > 4.5 * SECOND


@pytest.mark.parametrize("disorder_us", [0, 2 * SECOND])
@pytest.mark.parametrize("rate", [0.5, 1000.0])
def test_late_share_breaks_the_bound_and_nothing_else_does(disorder_us, rate):
    table = sensors(40_000, 7, rate=rate, disorder=disorder_us, late_share=0.05)
    assert (lag_us(table) > disorder_us).mean() == pytest.approx(0.05, abs=0.005)


def test_no_skew_is_uniform():
    assert device_shares(0.0) == pytest.approx(np.full(8, 1 / 8), abs=0.01)


def test_skew_is_zipf_and_monotone():
    one = device_shares(1.0)
    harmonic = sum(1 / rank for rank in range(1, 9))
    assert one == pytest.approx([1 / rank / harmonic for rank in range(1, 9)], abs=0.01)
    assert (np.diff(one) < 0).all()
    largest = [device_shares(skew)[0] for skew in (0.0, 0.5, 1.0, 2.0)]
    assert largest == sorted(largest)


def test_device_names_widen_with_their_number():
    names = set(sensors(100_000, 7, devices=10_001)["device"].to_pylist())
    assert {len(name) for name in names} == {len("device-00000")}


def test_some_humidities_are_null_and_the_others_plausible():
    humidity = sensors(50_000, 7)["humidity"]
    assert humidity.null_count / 50_000 == pytest.approx(0.02, abs=0.003)
    assert pc.min(humidity).as_py() >= 0.0
    assert pc.max(humidity).as_py() <= 100.0


def test_status_is_mostly_zero():
    counts = np.bincount(sensors(50_000, 7)["status"].to_numpy()) / 50_000
    assert counts == pytest.approx([0.97, 0.02, 0.01], abs=0.005)


def test_devices_differ_in_level():
    by_device = sensors(20_000, 7, devices=5).group_by("device").aggregate([("temp", "mean")])
    means = by_device["temp_mean"].to_numpy()
    assert means.std() > 0.5


def test_a_longer_set_begins_with_the_shorter():
    assert sensors(5000, 7, skew=1.0).slice(0, 1000).equals(sensors(1000, 7, skew=1.0))
