"""`weft.verify` of features: engines, sessions and `as_of` agree; where not, it tells where."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from asked_features import CALLS, UNITS, windows
from sampling import examples
from weft.testing.strategies import events
from weft.verification import features as verification

LOCAL = ("reference", "local")


@settings(deadline=None, max_examples=examples(30))
@given(st.data())
def test_what_is_trained_is_what_is_served(data: st.DataObject) -> None:
    unit_us = data.draw(st.sampled_from(UNITS))
    rows = data.draw(events(unit_us=unit_us))
    calls = data.draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=4, unique=True))
    asked: dict[str, Any] = {
        "by": data.draw(st.sampled_from([[], ["k"], ["k", "flag"], {"i": "i % 3"}])),
        "windows": data.draw(windows(unit_us)),
        "aggs": {f"a{i}": call for i, call in enumerate(calls)},
        "where": data.draw(st.sampled_from([None, "i > 0"])),
        "closed": data.draw(st.sampled_from(["both", "left", "right", "neither"])),
        "round": data.draw(st.sampled_from([None, 7 * unit_us])),
    }
    plan = weft.rolling(rows, time="ts", explain=True, **asked)
    report = weft.verify(plan, {"events": rows}, LOCAL)
    assert report.ok, report.differences
    assert report.rows == rows.num_rows
    served = any(not isinstance(one, type(weft.rows(1))) for one in asked["windows"].values())
    assert report.engines == (LOCAL + ("as_of", "session") * served)
    points = rows.rename_columns(["at", *rows.column_names[1:]])
    asked["by"] = data.draw(st.sampled_from([[], ["k"], ["k", "flag"]]))
    plan = weft.as_of(points, rows, time="ts", at="at", explain=True, **asked)
    assert weft.verify(plan, {"points": points, "events": rows}, LOCAL).ok


PAID = pa.table({"ts": [0, 10, 10], "user": ["a", "b", "a"], "amount": [1.0, 2.0, 4.0]})
ASKED: dict[str, Any] = {
    "time": "ts",
    "by": {"who": "upper(user)"},
    "windows": {"5us": 5, "20us": 20},
    "aggs": {"spend": weft.agg.sum("amount")},
    "explain": True,
}


def test_a_custom_aggregate_may_have_values_at_some_times_only() -> None:
    """Its type is known by its values, and a session asked early may have none."""
    rows = pa.table({"ts": pa.array([0], pa.timestamp("us")), "i": pa.array([None], pa.int64())})
    joined = next(call for call in CALLS if call.function == "joined_in_time")
    plan = weft.rolling(rows, time="ts", windows={"w": 1}, aggs={"a": joined}, explain=True)
    assert weft.verify(plan, {"events": rows}, LOCAL).ok


def test_a_difference_names_the_way_the_feature_and_the_row(monkeypatch: Any) -> None:
    computed = verification.run_features

    def wrong(*given: Any) -> pa.Table:
        found = computed(*given)
        return found.set_column(1, "spend_20us", pa.array([1.0, 2.0, 6.0]))

    monkeypatch.setattr(verification, "run_features", wrong)
    report = weft.verify(weft.rolling(PAID, **ASKED), {"events": PAID}, LOCAL)
    assert [str(one) for one in report.differences] == [
        "query 'rolling', window TRAIL 20us [t-20us, t], key ('A', 10): "
        "spend_20us is 6.0 on as_of, not 5.0"
    ]


def test_tables_that_are_missing_and_streams_of_points_are_told() -> None:
    with pytest.raises(weft.QueryError, match="there is no table 'events'"):
        weft.verify(weft.rolling(PAID, **ASKED), {"event": PAID}, LOCAL)
    asked = {**ASKED, "by": ["user"]}
    plan = weft.as_of(PAID, PAID, at="ts", **asked)
    with pytest.raises(weft.UnsupportedError, match="features of points are no stream"):
        weft.verify(plan, {"points": PAID, "events": PAID}, ("local", "spark-stream"))
