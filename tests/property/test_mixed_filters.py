"""Queries that keep different events share: what is kept, what follows, and what it costs."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

import weft
from sampling import examples
from weft import agg
from weft.engines.local.engine import LocalEngine
from weft.engines.reference.engine import ReferenceEngine
from weft.engines.scalar.expressions import compiled
from weft.plan import Scan, scopes_of
from weft.plan.conditions import implies, weakest
from weft.plan.scope import mixed
from weft.plan.validate import validate
from weft.planners.portfolio import PLANNERS, optimize
from weft.testing import assert_same_rows
from weft.testing.strategies import events, periodic_windows, windows, workloads

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from weft.plan import Scope

Item = TypeVar("Item")
RELAXED = settings(
    deadline=None, max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow]
)
CONDITIONS = ("i > 0", "i >= 2", "i = 3", "i < -1", "flag", "x IS NULL", "k = 'a'", "k <> 'b'")
INDEPENDENT = ("i > 0", "flag", "x IS NULL", "k = 'a'", "km < 9")
statistics = st.builds(
    weft.Statistics, rate=st.sampled_from([1e4, 1e6, 1e8]), keys=st.sampled_from([1, 3, 1000])
)


@st.composite
def filters(draw: st.DrawFn) -> str:
    """Some conditions, all of which or one of which must hold."""
    chosen = draw(st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=3, unique=True))
    joined = draw(st.sampled_from([" AND ", " OR "])).join(chosen)
    more = draw(st.sampled_from([None, *CONDITIONS]))
    return joined if more is None else f"({joined}) AND {more}"


def kept(where: str | None, table: pa.Table) -> list[bool]:
    read = compiled(where or "true = true")
    return [read(row) is True for row in table.to_pylist()]


@RELAXED
@given(st.lists(filters(), min_size=1, max_size=4), events())
def test_the_weakest_filter_keeps_what_any_of_them_keeps(texts, table) -> None:
    either = [any(row) for row in zip(*(kept(text, table) for text in texts), strict=True)]
    found = weakest(texts)
    note(str(found))
    assert kept(found, table) == either
    assert all(implies(text, found) for text in texts)


@RELAXED
@given(filters(), filters(), events())
def test_what_a_filter_implies_holds_wherever_it_does(stronger, weaker, table) -> None:
    if implies(stronger, weaker):
        pairs = zip(kept(stronger, table), kept(weaker, table), strict=True)
        assert all(second for first, second in pairs if first)


@RELAXED
@given(data=st.data(), planner=st.sampled_from([*PLANNERS, "auto"]))
def test_scopes_of_any_filters_together_give_the_rows_of_each(data, planner) -> None:
    """Whatever costs say: all that may share is put together, and every engine has its rows."""
    kinds = data.draw(st.sampled_from([periodic_windows(), windows()]))
    workload = data.draw(workloads(kinds, most=8))
    table, known = data.draw(events()), data.draw(statistics)
    key_sets = data.draw(st.sampled_from([None, "together"]))
    plan = optimize(workload, planner, "local", known, filters="together", key_sets=key_sets)
    note(plan.explain("verbose"))
    wanted = ReferenceEngine().answer(workload, {"events": table})
    validate(plan.nodes)
    for engine in (ReferenceEngine(), LocalEngine()):
        got = engine.run(plan, {"events": table})
        for query in workload:
            assert_same_rows(query, got[query.name], wanted[query.name], engine.name)
    assert weft.Plan.from_json(plan.explain("json")) == plan


def partitions(items: tuple[Item, ...]) -> Iterator[list[tuple[Item, ...]]]:
    """Every way to put items into groups."""
    if not items:
        yield []
        return
    first, *rest = items
    for smaller in partitions(tuple(rest)):
        yield [(first,), *smaller]
        for at, group in enumerate(smaller):
            yield [*smaller[:at], (first, *group), *smaller[at + 1 :]]


@RELAXED
@given(
    # None follows from another: what they keep is drawn, and would contradict that.
    chosen=st.lists(st.sampled_from([None, *INDEPENDENT]), min_size=2, max_size=4, unique=True),
    parts=st.lists(st.sampled_from([1e-4, 0.01, 0.1, 0.5, 0.9]), min_size=4, max_size=4),
    wide=st.booleans(),
    rate=st.sampled_from([1e3, 1e5]),
    keys=st.sampled_from([1, 100, 100_000]),
    engine=st.sampled_from(["local", "spark"]),
)
@example(
    # The two that keep most stand alone, and the others together.
    chosen=["i > 0", "flag", "x IS NULL", "k = 'a'"],
    parts=[0.0001, 0.0001, 0.1, 0.1],
    wide=True,
    rate=1e3,
    keys=1,
    engine="local",
)
@example(
    chosen=["i > 0", "flag", None, "x IS NULL"],
    parts=[0.0001, 0.01, 0.0001, 0.1],
    wide=False,
    rate=1e3,
    keys=100_000,
    engine="spark",
)
def test_filters_share_within_a_twentieth_of_the_best_way(
    chosen, parts, wide, rate, keys, engine
) -> None:
    told = {text: part for text, part in zip(chosen, parts, strict=False) if text is not None}
    # All is known, so the cheapest plan is chosen, and not the one that is safest to assume.
    known = weft.Statistics(
        rate=rate, keys=keys, kept=told, events=int(1800 * rate), duration="30 minutes"
    )
    calls = (
        {"n": agg.count(), "s": agg.sum("x"), "lo": agg.min("x")} if wide else {"n": agg.count()}
    )
    ask = {"source": "events", "time": "ts", "keys": ["k"], "aggs": calls}
    windows = {"m": weft.tumbling("1 minute"), "h": weft.hopping("10 minutes", "1 minute")}
    workload = weft.Workload(
        weft.Query(f"q{at}", where=text, windows=windows, **ask) for at, text in enumerate(chosen)
    )
    scopes = scopes_of(workload)
    prices: dict[Scope, float] = {}

    def cost(group: tuple[Scope, ...]) -> float:
        scope = mixed(group, scopes)
        if scope not in prices:
            names = {demand.query for demand in scope.demands}
            part = weft.Workload(query for query in workload if query.name in names)
            plan = optimize(part, "auto", engine, known, filters="together")
            prices[scope] = plan.cost
        return prices[scope]

    best = min(sum(map(cost, groups)) for groups in partitions(scopes))
    plan = optimize(workload, "auto", engine, known)
    note(plan.explain())
    assert plan.cost <= 1.05 * best


@RELAXED
@given(
    chosen=st.lists(
        st.sampled_from([(), ("k",), ("flag",), ("k", "flag"), ("k", "i")]),
        min_size=2,
        max_size=4,
        unique=True,
    ),
    counts=st.tuples(*[st.sampled_from([1, 20, 3_000, 10**6])] * 5),
    rate=st.sampled_from([1.0, 1e3, 1e5]),
    wide=st.booleans(),
    often=st.booleans(),
    engine=st.sampled_from(["local", "spark"]),
)
@example(  # the keys of one are among those of two others, and the rows of these are few and many
    chosen=[("k",), ("k", "flag"), ("k", "i")],
    counts=(3_000, 10**6, 1, 1, 1),
    rate=1e3,
    wide=False,
    often=False,
    engine="local",
)
@example(  # windows that overlap much: kernels are cheaper, alone and from slices of the finest
    chosen=[("k", "flag"), ("k",), ("flag",)],
    counts=(3_000, 20, 20, 1, 1),
    rate=1e5,
    wide=True,
    often=True,
    engine="spark",
)
@example(  # what is regrouped for kernels would be read once more, beside what Catalyst runs
    chosen=[(), ("k",), ("flag",)],
    counts=(1, 1, 20, 1, 1),
    rate=1.0,
    wide=False,
    often=True,
    engine="spark",
)
def test_key_sets_are_regrouped_within_a_twentieth_of_the_best_way(
    chosen, counts, rate, wide, often, engine
) -> None:
    """Of every way to put key sets into groups whose coarser ones regroup slices of the finest."""
    drawn = {keys: count if keys else 1 for keys, count in zip(chosen, counts, strict=False)}
    # More columns have no fewer values.
    told = {
        keys: max(count for others, count in drawn.items() if set(others) <= set(keys))
        for keys in drawn
    }
    known = weft.Statistics(rate=rate, duration="1 day", keys=100, key_sets=tuple(told.items()))
    calls = {"n": agg.count(), "s": agg.sum("x")} if wide else {"n": agg.count()}
    slide = "1 minute" if often else "1 hour"
    windows = {"m": weft.tumbling("1 hour"), "h": weft.hopping("6 hours", slide)}
    ask = {"source": "events", "time": "ts", "aggs": calls, "windows": windows}
    queries = [weft.Query(f"q{at}", keys=list(keys), **ask) for at, keys in enumerate(chosen)]

    @cache
    def together(some: tuple[weft.Query, ...]) -> float:
        return optimize(weft.Workload(some), "auto", engine, known, key_sets="together").cost

    best = min(sum(map(together, groups)) for groups in partitions(tuple(queries)))
    plan = optimize(weft.Workload(queries), "auto", engine, known)
    note(plan.explain())
    assert plan.cost <= 1.05 * best


@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize("filters", ["together", "apart", None])
def test_more_may_be_unknown_of_one_filter_than_of_another(engine, filters) -> None:
    """Of what a filter keeps the rate follows from the part that it keeps."""
    ask = {"source": "s", "keys": ["k"], "windows": {"m": "1 minute"}, "aggs": {"n": agg.count()}}
    workload = weft.Workload(
        weft.Query(f"q{at}", where=where, **ask) for at, where in enumerate([None, "a = 1"])
    )
    known = weft.Statistics(keys=5, duration="1 day")
    plan = optimize(workload, "auto", engine, known, filters=filters)
    assert {emit.query for emit in plan.emits} == {"q0", "q1"}


def test_what_all_filters_ask_stays_in_the_one_scan() -> None:
    ask = {"source": "s", "windows": {"m": "1 minute"}, "aggs": {"n": agg.count()}}
    texts = ["day = 3 AND action = 'buy'", "action = 'error' AND day = 3"]
    workload = weft.Workload(weft.Query(f"q{i}", where=t, **ask) for i, t in enumerate(texts))
    plan = optimize(workload, "slice", "local", filters="together")
    (scan,) = (node for node in plan.nodes if isinstance(node, Scan))
    assert scan.where == "day = 3 AND (action = 'buy' OR action = 'error')"
    assert [query.where for query in plan.queries] == texts


def test_a_filter_that_keeps_little_may_read_by_itself() -> None:
    calls = {"n": agg.count(), "s": agg.sum("x"), "lo": agg.min("x"), "hi": agg.max("x")}
    hops = {"h": weft.hopping("10 minutes", "1 minute")}
    ask = {"source": "s", "windows": hops, "aggs": calls, "keys": ["k"]}
    filters = [None, "a = 1", "b = 1"]
    workload = weft.Workload(weft.Query(f"q{i}", where=t, **ask) for i, t in enumerate(filters))
    kept = {"a = 1": 0.5, "b = 1": 1e-6}
    known = weft.Statistics(rate=1e4, keys=100_000, kept=kept)
    plan = optimize(workload, "auto", "spark", known)
    assert [scan.where for scan in plan.scans] == [None, "b = 1"]
    assert len(optimize(workload, "auto", "spark", known, filters="together").scans) == 1
    assert len(optimize(workload, "auto", "spark", known, filters="apart").scans) == 3


def test_a_filter_never_makes_a_query_dearer_than_all_events() -> None:
    ask = {"source": "s", "windows": {"h": weft.hopping("10 minutes", "1 minute")}, "keys": ["k"]}
    for number in (None, 100_000):
        known = weft.Statistics(rate=1e4, keys=100, kept={"b = 1": 1e-6}, events=number)
        costs = [
            optimize(
                weft.Query("q", where=where, aggs={"n": agg.count()}, **ask), statistics=known
            ).cost
            for where in ("b = 1", None)
        ]
        assert costs[0] < costs[1]


def test_windows_that_events_delimit_have_a_scan_of_their_own() -> None:
    ask = {"source": "s", "aggs": {"n": agg.count()}}
    workload = weft.Workload(
        [
            weft.Query("a", where="x > 1", windows={"s": weft.session("1 minute")}, **ask),
            weft.Query("b", where="x > 2", windows={"s": weft.session("1 minute")}, **ask),
        ]
    )
    assert len(optimize(workload, "auto", "local", filters="together").scans) == 2


def test_every_form_of_explain_tells_the_conditions_and_who_shares() -> None:
    ask = {"source": "s", "windows": {"m": "1 minute"}, "aggs": {"n": agg.count()}}
    workload = weft.Workload([weft.Query("a", **ask), weft.Query("b", where="x > 1", **ask)])
    plan = optimize(workload, "auto", "local", filters="together")
    for form in ("text", "verbose"):
        told = plan.explain(form)
        assert "count(*), count(*) where x > 1" in told
        assert "query 'b' window 'm' where x > 1: n = count(*)" in told
        assert "note: a, b share one read and its slices: their 2 filters are conditions" in told
    other = weft.Query("b", where="x > 1", **{**ask, "windows": {"h": "7 seconds"}})
    mixed = weft.Workload([weft.Query("a", **ask), other])
    told = optimize(mixed, "subsume", "local", filters="together").explain()
    assert "note: a, b share one read: their 2 filters are conditions on partials" in told
    assert '"where": "x > 1"' in plan.explain("json")
    assert "count(*) where x #62; 1" in plan.explain("mermaid")
    assert "count(*) where x &gt; 1" in plan.explain("html")
