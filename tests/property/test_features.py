"""Windows at anchors: the local engine equals the reference engine, whatever is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, note, settings
from hypothesis import strategies as st

import weft
from asked_features import CALLS, UNITS, assert_same, windows
from sampling import examples
from weft.testing.strategies import events

if TYPE_CHECKING:
    import pyarrow as pa


@st.composite
def requests(draw: st.DrawFn, unit_us: int) -> dict[str, Any]:
    calls = draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=5, unique=True))
    return {
        "by": draw(st.sampled_from([[], ["k"], ["k", "flag"], ["x"], {"i": "i"}])),
        "windows": draw(windows(unit_us)),
        "aggs": {f"a{i}": call for i, call in enumerate(calls)},
        "where": draw(st.sampled_from([None, None, "i > 0", "flag OR x IS NULL"])),
        "closed": draw(st.sampled_from(["both", "left", "right", "neither"])),
        "round": draw(st.sampled_from([None, None, 1, 7 * unit_us, 3])),
    }


@settings(deadline=None, max_examples=examples(60))
@given(st.data())
def test_as_of_on_the_local_engine_equals_the_reference(data: st.DataObject) -> None:
    unit_us = data.draw(st.sampled_from(UNITS))
    known, points = (data.draw(events(unit_us=unit_us)) for _ in range(2))
    asked = data.draw(requests(unit_us))
    points = points.rename_columns(["at", *points.column_names[1:]])
    run = {"time": "ts", "at": "at", **asked}
    note(str(weft.as_of(points, known, explain=True, **run)))
    got = weft.as_of(points, known, **run)
    assert repr(got.select(points.column_names).to_pylist()) == repr(points.to_pylist())
    assert_same(got, weft.as_of(points, known, engine="reference", **run), asked["aggs"])


@settings(deadline=None, max_examples=examples(60))
@given(st.data())
def test_rolling_on_the_local_engine_equals_the_reference(data: st.DataObject) -> None:
    unit_us = data.draw(st.sampled_from(UNITS))
    rows = data.draw(events(unit_us=unit_us))
    asked = data.draw(requests(unit_us))
    note(str(weft.rolling(rows, time="ts", explain=True, **asked)))
    got = weft.rolling(rows, time="ts", **asked)
    assert repr(got.select(rows.column_names).to_pylist()) == repr(rows.to_pylist())
    want = weft.rolling(rows, time="ts", engine="reference", **asked)
    assert_same(got, want, asked["aggs"])


@settings(deadline=None, max_examples=examples(20))
@given(st.data())
def test_several_sources_give_what_each_gives_alone(data: st.DataObject) -> None:
    known = {name: data.draw(events()) for name in ("clicks", "orders")}
    points = data.draw(events())
    points = points.rename_columns(["at", *points.column_names[1:]])
    asked = {name: data.draw(requests(1)) for name in known}
    given_events = {n: weft.Events(known[n], time="ts", **asked[n]) for n in known}
    together = weft.as_of(points, given_events, at="at")
    for name, own in asked.items():
        alone = weft.as_of(points, known[name], time="ts", at="at", **own)
        features = [c for c in alone.column_names if c not in points.column_names]
        for column in features:
            one = weft_equal(together[f"{name}_{column}"], alone[column])
            assert one, column


def weft_equal(a: pa.ChunkedArray, b: pa.ChunkedArray) -> bool:
    pairs = zip(a.to_pylist(), b.to_pylist(), strict=True)
    return all(x == y or repr(x) == repr(y) for x, y in pairs)  # NaN is NaN, in lists too


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_plan_of_features_survives_json(data: st.DataObject) -> None:
    from weft.plan.anchors import FeaturePlan

    rows = data.draw(events(most=5))
    plan = weft.rolling(rows, time="ts", explain=True, **data.draw(requests(1)))
    again = FeaturePlan.from_json(plan.explain("json"))
    assert again == plan
    assert again.fingerprint == plan.fingerprint
    assert again.explain() == plan.explain()
