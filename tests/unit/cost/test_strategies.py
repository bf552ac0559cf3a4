"""The strategy of a scope on Spark: what can run it, what it costs, what was asked for."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import weft
from weft import agg
from weft.aggregates import Partial
from weft.cost.strategies import (
    KEPT_AS_ROWS,
    SHIPPED_PARTIALS,
    native_obstacles,
    slices_to_ship,
)
from weft.engines.spark.sql.kinds import SPARK_KINDS, is_holistic, is_spread
from weft.plan import Plan, Scan, Slice

BUSY = weft.Statistics(rate=100_000.0, keys=10)
DAY = weft.Statistics(rate=100.0, keys=10, duration="1 day")


def plan(windows: list[Any], planner: str = "auto", **options: Any) -> Plan:
    aggs = options.pop("aggs", {"lo": agg.min("temp")})
    query = weft.Query(
        "q",
        source="readings",
        time="ts",
        keys=["device"],
        windows={str(w): w for w in windows},
        aggs=aggs,
    )
    return weft.optimize(weft.Workload([query]), planner, **options)


def test_the_cheaper_strategy_is_chosen_and_both_costs_are_told() -> None:
    (choice,) = plan([weft.tumbling("1 minute")], statistics=BUSY).strategies
    assert choice.queries == ("q",)
    assert choice.strategy == "native"
    assert choice.native < choice.columnar
    assert choice.reason == f"the other costs {choice.columnar / choice.native:.3g}x"


def test_large_overlap_of_sparse_slices_is_columnar() -> None:
    sparse = weft.Statistics(rate=1000.0, keys=1000)
    hops = [weft.hopping(f"{n} seconds", "1 second") for n in (60, 120, 180)]
    chosen = plan(hops, statistics=sparse, aggs={"s": agg.sum("temp")})
    (choice,) = chosen.strategies
    assert choice.strategy == "columnar"
    assert chosen.cost == pytest.approx(choice.columnar)
    assert choice.columnar < choice.native


def by_two_keys(strategy: str) -> Plan:
    asked: dict[str, Any] = {"source": "t", "time": "ts", "aggs": {"n": agg.count()}}
    windows = {"1h": "1 hour", "1d": "1 day"}
    queries = [weft.Query(key, keys=[key], windows=windows, **asked) for key in ("a", "b")]
    return weft.optimize(queries, statistics=DAY, strategy=strategy)


def test_native_key_sets_pay_for_one_read_and_columnar_ones_for_two() -> None:
    """As they run: Catalyst makes one chain of all scopes of a source."""
    for strategy, reads in (("native", 1), ("columnar", 2)):
        both = by_two_keys(strategy)
        alone = weft.optimize(both.queries[0], statistics=DAY, strategy=strategy)
        paid, once = (
            sum(c for n, c in zip(p.nodes, p.node_costs, strict=True) if isinstance(n, Scan))
            for p in (both, alone)
        )
        assert paid == pytest.approx(reads * once)
        chosen = next(one for one in both.candidates if one.reason.startswith("chosen"))
        assert chosen.cost == pytest.approx(both.cost)
        assert both.cost == pytest.approx(2 * alone.cost - (2 - reads) * once)


def test_sessions_have_a_read_of_their_own() -> None:
    asked: dict[str, Any] = {"source": "t", "time": "ts", "aggs": {"n": agg.count()}}
    windows = {"a": "1 hour", "b": weft.session("1 hour")}
    queries = [weft.Query(k, keys=[k], windows={k: w}, **asked) for k, w in windows.items()]
    both = weft.optimize(queries, statistics=DAY, strategy="native")
    alone = [weft.optimize(query, statistics=DAY, strategy="native") for query in queries]
    assert both.cost == pytest.approx(sum(plan.cost for plan in alone))


def test_what_is_not_in_one_chain_is_what_catalyst_keeps_as_rows_or_sorts() -> None:
    partials = [Partial(kind, ("x",)) for kind in SPARK_KINDS]
    assert {p.kind for p in partials if is_spread(p) or is_holistic(p)} == KEPT_AS_ROWS


def test_dense_events_are_shipped_as_slices_and_sparse_ones_as_they_are() -> None:
    hop = [weft.hopping("100 seconds", "1 second")]
    for rate, ships in ((1e6, "slices"), (5.0, "events")):
        known = weft.Statistics(rate=rate, keys=10)
        (choice,) = plan(hop, "slice", statistics=known, strategy="columnar").strategies
        assert choice.ships == ships


def skewed(share: float, cores: int, **options: Any) -> Plan:
    known = weft.Statistics(
        events=50_000_000, duration="1 day", keys=100_000, key_skew=share, cores=cores
    )
    windows = options.pop("windows", [weft.tumbling("10 minutes"), weft.tumbling("1 hour")])
    aggs = {"high": agg.approx_percentile("temp", 0.9)}
    return plan(windows, statistics=known, strategy="columnar", aggs=aggs, **options)


def test_events_are_salted_where_one_key_would_hold_up_the_other_cores() -> None:
    salted = skewed(0.5, 8)
    (choice,) = salted.strategies
    assert choice.ships == "events"
    assert choice.salt_us == 20 * 60 * 1_000_000  # of 22.5 minutes, the whole slices
    assert choice.reason == "forced; salted, as one key has 50% of the events"
    assert "columnar, ships events salted by 20m" in salted.explain()
    # Two cores have as much to do each if one has that key and the other all the rest.
    assert skewed(0.5, 2).strategies[0].salt_us is None
    assert skewed(0.0, 8).strategies[0].salt_us is None
    even, uneven = skewed(0.0, 8).cost, skewed(0.9, 8).cost
    assert even < uneven < even * 7.2


def test_what_has_to_be_in_order_is_not_salted_and_what_catalyst_combines_need_not_be() -> None:
    assert skewed(0.5, 8, windows=[weft.session("5 minutes")]).strategies[0].salt_us is None
    known = weft.Statistics(rate=1e5, keys=10, key_skew=0.8, cores=8)
    (choice,) = plan(
        [weft.hopping("1 hour", "1 minute")], statistics=known, strategy="columnar"
    ).strategies
    assert (choice.ships, choice.salt_us) == ("slices", None)


@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_a_strategy_can_be_forced(strategy: str) -> None:
    forced = plan([weft.tumbling("1 minute")], strategy=strategy)
    (choice,) = forced.strategies
    assert (choice.strategy, choice.reason) == (strategy, "forced")
    assert forced.cost == pytest.approx(getattr(choice, strategy))
    assert Plan.from_json(forced.explain("json")).strategies == forced.strategies
    assert f"q         {strategy}" in forced.explain()


def test_what_native_cannot_run_is_columnar_and_says_why() -> None:
    (choice,) = plan([weft.counting(3), weft.tumbling(9)], "independent").strategies
    assert choice.strategy == "columnar"
    assert choice.native is None
    assert choice.reason == "native cannot run it: COUNT 3 depends on the order of events"


def test_forcing_native_where_it_cannot_is_refused() -> None:
    with pytest.raises(weft.UnsupportedError) as refused:
        plan([weft.punctuated("temp > 3")], strategy="native")
    assert str(refused.value) == (
        "the native strategy is forced, and native cannot run it: PUNCTUATED temp > 3 depends on "
        "the order of events\n"
        "hint: leave the strategy to the plan, or force columnar, which runs everything"
    )


def test_other_engines_have_no_strategy() -> None:
    assert plan([weft.tumbling(5)], engine="local").strategies == ()
    with pytest.raises(weft.QueryError, match="the local engine has no strategy 'native'"):
        plan([weft.tumbling(5)], engine="local", strategy="native")
    with pytest.raises(weft.QueryError, match="unknown strategy 'fast'"):
        plan([weft.tumbling(5)], strategy="fast")


def test_a_run_in_this_process_has_no_strategy() -> None:
    table = pa.table({"ts": pa.array([1], pa.timestamp("us", "UTC"))})
    with pytest.raises(weft.QueryError, match="the local engine has no strategy 'columnar'"):
        weft.aggregate(
            table, windows={"w": weft.tumbling(5)}, aggs={"n": agg.count()}, strategy="columnar"
        )


def test_forced_native_is_left_with_the_planners_that_it_can_run() -> None:
    windows = [weft.tumbling(6), weft.calendar("day"), weft.session(4)]
    chosen = plan(windows, strategy="native")
    assert chosen.strategies[0].strategy == "native"
    assert math.isfinite(chosen.cost)


def test_stock_has_a_price_of_its_own_and_an_independent_plan_the_cheaper_strategy() -> None:
    hop = [weft.hopping("1000 seconds", "1 second")]
    alone = plan(hop, "independent", statistics=BUSY)
    (choice,) = alone.strategies
    assert choice.strategy == "columnar"
    priced = {candidate.planner: candidate for candidate in alone.candidates}
    assert priced["stock"].cost > choice.native > choice.columnar
    assert "without weft" in priced["stock"].reason
    counting = plan([weft.counting(10)], statistics=BUSY)
    assert "stock" not in {candidate.planner for candidate in counting.candidates}


def test_papers_count_no_strategies() -> None:
    assert plan([weft.tumbling(5)], model="paper").strategies == ()
    (choice,) = plan([weft.tumbling(5)], model="paper", strategy="columnar").strategies
    assert (choice.native, choice.columnar) == (None, None)


def test_every_scope_has_its_own_strategy() -> None:
    def query(name: str, key: str, window: Any) -> weft.Query:
        return weft.Query(
            name, source="r", time="ts", keys=[key], windows={"w": window}, aggs={"n": agg.count()}
        )

    workload = weft.Workload(
        [
            query("a", "k", weft.tumbling("5 seconds")),
            query("b", "j", weft.counting(5)),
            query("c", "k", weft.tumbling("7 seconds")),
        ]
    )
    found = {c.queries: c.strategy for c in weft.optimize(workload).strategies}
    assert found == {("a", "c"): "native", ("b",): "columnar"}


def test_slices_are_shipped_only_where_one_node_reads_events_and_catalyst_makes_its_partials() -> (
    None
):
    two = [weft.tumbling("1 minute"), weft.hopping("7 minutes", "2 minutes")]
    assert isinstance(slices_to_ship(plan(two, "slice").nodes), Slice)
    assert slices_to_ship(plan(two, "independent").nodes) is None
    assert slices_to_ship(plan([*two, weft.session(5)], "slice").nodes) is None
    for call in (agg.median("temp"), agg.count_distinct("temp")):
        assert slices_to_ship(plan(two, "slice", aggs={"v": call}).nodes) is None


def test_native_has_no_obstacle_in_any_built_in_aggregate() -> None:
    calls = [agg.count_distinct("x"), agg.median("x"), agg.approx_percentile("x", 0.5)]
    nodes = plan([weft.tumbling(5)], aggs={f"a{i}": c for i, c in enumerate(calls)}).nodes
    assert not [why for node in nodes for why in native_obstacles(node)]
    assert "distinct" not in SHIPPED_PARTIALS
