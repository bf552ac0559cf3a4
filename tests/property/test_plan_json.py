"""Whatever a plan holds, it survives JSON, and no form of EXPLAIN fails on it."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import examples
from weft.aggregates import AggregateCall, Partial
from weft.plan import (
    FOLD,
    FORMATS,
    PICK,
    RANGES,
    STAIR,
    Candidate,
    Emit,
    Join,
    JoinSide,
    Plan,
    Roll,
    Scan,
    Share,
    Slice,
)
from weft.plan.nodes import topological
from weft.statistics import Statistics
from weft.techniques import TECHNIQUES
from weft.window import (
    CalendarWindow,
    CountingWindow,
    CumulatingWindow,
    Edges,
    LandmarkWindow,
    MeasuredWindow,
    PeriodicWindow,
    PunctuatedWindow,
    SessionWindow,
)

SETTINGS = settings(deadline=None, max_examples=examples(30))
names = st.text(min_size=1, max_size=8)
columns = st.sampled_from(["x", "temp", "`odd name`", "a + b"])
counts = st.integers(1, 10**12)
costs = st.floats(allow_nan=False)
keys = st.lists(st.tuples(names, columns), max_size=2).map(tuple)
periodic = st.builds(PeriodicWindow, counts, counts, st.integers(-(10**9), 10**9))
windows = st.one_of(
    periodic,
    st.builds(SessionWindow, counts),
    st.builds(CountingWindow, counts, counts),
    st.builds(lambda step, n: CumulatingWindow(step * n, step), counts, st.integers(1, 9)),
    st.builds(
        CalendarWindow,
        st.sampled_from(["day", "week", "month", "quarter", "year"]),
        st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu"]),
    ),
    st.builds(PunctuatedWindow, st.just("kind = 'start'")),
    st.builds(MeasuredWindow, names, counts, st.floats(0.001, 1e6)),
)
partials = st.lists(
    st.one_of(
        st.builds(lambda c: Partial("sum", (c,)), columns),
        st.builds(lambda c: Partial("values", (c,)), columns),
        st.builds(lambda a, b: Partial("min_by", (a, b)), columns, columns),
        st.just(Partial("count_rows", ())),
    ),
    min_size=1,
    max_size=3,
    unique=True,
).map(tuple)
calls = st.one_of(
    st.builds(lambda c: AggregateCall("avg", (c,)), columns),
    st.builds(lambda c, p: AggregateCall("percentile", (c,), (p,)), columns, st.floats(0, 1)),
    st.just(AggregateCall("count")),
)
outputs = st.lists(st.tuples(names, calls), min_size=1, max_size=3).map(tuple)
scans = st.builds(
    Scan,
    names,
    st.none() | names,
    st.none() | names,
    st.lists(columns, max_size=3).map(tuple),
    st.booleans(),
)
edges = st.builds(
    Edges.of,
    st.lists(windows, min_size=1, max_size=4),
    st.sampled_from(["pairs", "panes", "begins"]),
)
slices = st.recursive(
    st.builds(Slice, scans, keys, edges, partials),
    lambda finer: st.builds(Slice, finer, keys, edges, partials),
    max_leaves=3,
)
reads = st.sampled_from([FOLD, PICK, RANGES])
techniques = st.sampled_from([None, *TECHNIQUES])


def _rolls(feeders: st.SearchStrategy[Roll]) -> st.SearchStrategy[Roll]:
    one = st.tuples(feeders | slices)
    over_one = st.builds(Roll, one, windows, reads, keys, partials, techniques)
    stairs = st.builds(
        Roll, st.tuples(feeders, slices), periodic, st.just(STAIR), keys, partials, techniques
    )
    return over_one | stairs


rolls = st.recursive(
    st.builds(Roll, st.tuples(scans | slices), windows, reads, keys, partials, techniques),
    _rolls,
    max_leaves=4,
)
sides = st.builds(
    JoinSide,
    scans,
    names,
    st.none() | periodic | st.just(LandmarkWindow()),
    st.booleans(),
    keys,
    partials,
)
joins = st.builds(
    Join,
    st.lists(sides, min_size=2, max_size=3).map(tuple),
    st.lists(st.tuples(names, names), max_size=2).map(tuple),
    keys,
    partials,
)
emits = st.builds(
    Emit,
    st.lists(rolls | joins, min_size=1, max_size=2).map(tuple),
    names,
    names,
    outputs,
    st.tuples(names, names, names),
)
statistics = st.builds(
    Statistics,
    st.none() | st.floats(1e-6, 1e9),
    st.none() | st.integers(1, 10**9),
    st.floats(0, 1),
    st.tuples(*[st.integers(0, 10**12)] * 3),
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    nodes = topological(tuple(draw(st.lists(emits, max_size=3))))
    return Plan(
        nodes,
        draw(names),
        draw(names),
        draw(names),
        draw(names),
        tuple(draw(st.lists(costs, min_size=len(nodes), max_size=len(nodes)))),
        tuple(draw(st.lists(st.builds(Candidate, names, costs, names), max_size=2))),
        draw(statistics),
        tuple(
            draw(
                st.lists(
                    st.builds(Share, names, names, names, names, costs, costs, names), max_size=2
                )
            )
        ),
        tuple(draw(st.lists(names, max_size=2))),
    )


@SETTINGS
@given(plans())
def test_a_plan_read_back_from_json_is_equal(plan: Plan) -> None:
    back = Plan.from_json(plan.explain("json"))
    assert back == plan
    assert back.fingerprint == plan.fingerprint


@SETTINGS
@given(plans())
def test_a_plan_read_back_from_json_is_explained_in_the_same_bytes(plan: Plan) -> None:
    back = Plan.from_json(plan.explain("json"))
    for form in FORMATS:
        assert back.explain(form) == plan.explain(form)


@SETTINGS
@given(plans())
def test_the_text_form_has_one_line_per_node(plan: Plan) -> None:
    lines = plan.explain("text").splitlines()
    found = [line for line in lines if re.match(r"([spwj]\d+(, )?)+ +(:=|->) ", line)]
    assert len(found) == len(plan.nodes)
