"""Spark in batch: one shared plan against the union of stock window aggregations.

Ten million readings of ten devices at a thousand a second, in a parquet file, on two cores. The
single slice aggregate, `GROUP BY device, slice`, is the least that any plan must do.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from weft import agg
from weft.bench.frame import Bar, Case, Contender, Entry, Race
from weft.bench.suite.spark.expert import run_expert
from weft.bench.suite.spark.runs import (
    Inputs,
    inputs_of,
    readings,
    run_shared,
    run_stock,
    same_answers,
    warm_up,
    write_nowhere,
)
from weft.query import Query, Workload
from weft.window import SessionWindow, Window, hopping, session, tumbling

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weft.aggregates import AggregateCall
    from weft.bench.frame import Runner

EVENTS = 10_000_000
_QUICK_EVENTS = 100_000
_NEEDS = ("pyspark",)
_LOW = {"lo": agg.min("temp")}
_SECOND_US = 1_000_000
_DAY_S = 86_400


def _query(name: str, windows: Mapping[str, Window], aggs: Mapping[str, AggregateCall]) -> Query:
    return Query(name, source="readings", time="ts", keys=["device"], windows=windows, aggs=aggs)


def _each_tumbling(first_s: int, last_s: int) -> list[Query]:
    """One query with a tumbling window for every five seconds of range."""
    ranges = [f"{s} seconds" for s in range(first_s, last_s + 1, 5)]
    return [_query("lows", {text: tumbling(text) for text in ranges}, _LOW)]


def _one_hop(range_s: int, slide_s: int) -> list[Query]:
    return [_query("lows", {"hop": hopping(f"{range_s} seconds", f"{slide_s} seconds")}, _LOW)]


def _one_window(range_ms: int = 0, slide_ms: int = 0, gap_ms: int = 0) -> list[Query]:
    window: Window = (
        session(f"{gap_ms} milliseconds")
        if gap_ms
        else hopping(f"{range_ms} milliseconds", f"{slide_ms} milliseconds")
    )
    return [_query("one", {"only": window}, _LOW | {"mean": agg.avg("temp"), "n": agg.count()})]


def _sparse(slide_ms: int) -> list[Query]:
    """Hops that overlap tenfold, over slices that hold about one event of a key each."""
    slides = [slide_ms * n for n in (1, 2, 3)]
    hops = {f"{ms}": hopping(f"{10 * ms} milliseconds", f"{ms} milliseconds") for ms in slides}
    return [_query("lows", hops, _LOW)]


def _mixed() -> list[Query]:
    """Twenty queries with two of six aggregates each: what a team asks of one stream."""
    calls = {
        "lo": agg.min("temp"),
        "hi": agg.max("temp"),
        "total": agg.sum("temp"),
        "mean": agg.avg("temp"),
        "n": agg.count(),
        "spread": agg.stddev("temp"),
    }
    windows: list[Window] = [
        *(tumbling(f"{s} seconds") for s in (5, 10, 15, 30, 60, 120, 300, 600)),
        *(
            hopping(f"{range_s} seconds", f"{slide_s} seconds")
            for range_s, slide_s in (
                (20, 10),
                (30, 10),
                (60, 10),
                (60, 15),
                (120, 30),
                (300, 60),
                (600, 60),
                (600, 120),
            )
        ),
        *(session(f"{ms} milliseconds") for ms in (500, 1000, 2000, 5000)),
    ]
    names = list(calls)
    queries = []
    for number, window in enumerate(windows):
        chosen = (names[number % 6], names[(number + 1 + number // 6) % 6])
        kind = "session" if isinstance(window, SessionWindow) else "window"
        aggs = {name: calls[name] for name in chosen}
        queries.append(_query(f"q{number:02}", {kind: window}, aggs))
    return queries


def _features() -> list[Query]:
    """What a table of features has: a minute to a day, tumbling and overlapping."""
    units = ("1 minute", "5 minutes", "15 minutes", "1 hour", "6 hours", "1 day")
    hops = (("1 hour", "5 minutes"), ("6 hours", "1 hour"), ("1 day", "1 hour"))
    windows: dict[str, Window] = {text: tumbling(text) for text in units}
    windows |= {" / ".join(hop): hopping(*hop) for hop in hops}
    calls = {"hi": agg.max("temp"), "total": agg.sum("temp"), "mean": agg.avg("temp")}
    return [_query("features", windows, _LOW | calls | {"n": agg.count()})]


def _of_a_day(events: int, devices: int) -> Inputs:
    """Readings of a day."""
    asked = _features()
    warm_up(events, asked)
    return Inputs(readings(events, devices, events / _DAY_S), Workload(asked))


def slice_aggregate(seconds: int) -> Callable[[Inputs], Runner]:
    """Aggregate by device and slice alone, as one would by hand."""

    def start(inputs: Inputs) -> Runner:
        from pyspark.sql import functions as F

        slices = F.expr(f"unix_micros(ts) div {seconds * _SECOND_US}L").alias("slice")

        def runner() -> None:
            write_nowhere(inputs.events.groupBy("device", slices).agg(F.min("temp")))

        return runner

    return start


def _race(
    name: str,
    question: str,
    queries: Callable[..., list[Query]],
    at_least: float,
    *,
    slice_s: int | None = None,
    slices_at_least: float = 0.0,
    rounds: int = 5,
    stock_runs: int = 3,
    quick: Mapping[str, int] = MappingProxyType({}),
    **arguments: int,
) -> Race:
    """A race against stock Spark and, where one slicing serves all, its slice aggregate.

    `quick` has the arguments that differ where the race is only tried out. Runs of a second take
    more `rounds`: Java goes on compiling during the first ten of them. Stock Spark is timed
    `stock_runs` times.
    """
    contenders = {
        "stock": Contender(run_stock, _NEEDS, runs=stock_runs),
        "expert": Contender(run_expert, _NEEDS, runs=stock_runs),
        "weft": Contender(run_shared, _NEEDS),
    }
    bars = [Bar("weft", "stock", at_least), Bar("weft", "expert", 1.0)]
    if slice_s is not None:
        contenders["slices alone"] = Contender(slice_aggregate(slice_s), _NEEDS, yardstick=True)
        bars.append(Bar("weft", "slices alone", slices_at_least))
    return Race(
        name=f"spark-batch/{name}",
        question=question,
        inputs=inputs_of(queries),
        expected=None,
        contenders=contenders,
        baseline="stock",
        full=(_case(EVENTS, arguments),),
        quick=(_case(_QUICK_EVENTS, {**arguments, **quick}),),
        bars=tuple(bars),
        same=same_answers,
        rounds=rounds,
        item="event",
    )


def _case(events: int, arguments: Mapping[str, int], label: str = "") -> Case:
    return Case(label or f"{events:,} events", {"events": events, **arguments}, events)


_ONE_WINDOW: dict[str, dict[str, int]] = {
    "tumbling 1 s": {"range_ms": 1000, "slide_ms": 1000},
    "tumbling 60 s": {"range_ms": 60_000, "slide_ms": 60_000},
    "hop 20 s / 10 s": {"range_ms": 20_000, "slide_ms": 10_000},
    "session 500 ms": {"gap_ms": 500},
}


def _one_window_cases(events: int) -> tuple[Case, ...]:
    return tuple(_case(events, own, label) for label, own in _ONE_WINDOW.items())


ONE_WINDOW = Race(
    name="spark-batch/one_window",
    question="With a single window there is nothing to share: does weft cost anything?",
    inputs=inputs_of(_one_window),
    expected=None,
    contenders={
        "stock": Contender(run_stock, _NEEDS),
        "weft": Contender(run_shared, _NEEDS),
    },
    baseline="stock",
    full=_one_window_cases(EVENTS),
    quick=_one_window_cases(_QUICK_EVENTS),
    bars=(
        Bar("weft", "stock", 1 / 1.05),
        Bar("weft", "stock", 1.5, "hop *"),
        Bar("weft", "stock", 5, "session *"),
    ),
    same=same_answers,
    rounds=9,
    item="event",
)

FEATURES = Race(
    name="spark-batch/features",
    question="What does a table of features over nine windows cost, for few devices and for many?",
    inputs=_of_a_day,
    expected=None,
    contenders={
        "stock": Contender(run_stock, _NEEDS, runs=3),
        "expert": Contender(run_expert, _NEEDS, runs=3),
        "weft": Contender(run_shared, _NEEDS),
    },
    baseline="stock",
    full=(
        _case(1_000_000, {"devices": 300}, "300 devices"),
        _case(500_000, {"devices": 50_000}, "50,000 devices"),
    ),
    quick=(_case(20_000, {"devices": 50}, "50 devices"),),
    bars=(
        Bar("weft", "stock", 6, "300 *"),
        Bar("weft", "stock", 5, "50,000 *"),
        Bar("weft", "expert", 1.0),
    ),
    same=same_answers,
    rounds=9,
    item="event",
)

ENTRIES: tuple[Entry, ...] = (
    _race(
        "tumbling_20",
        "What do 20 tumbling windows cost, of 10 s to 105 s, when one costs 1?",
        _each_tumbling,
        at_least=30,
        slice_s=5,
        slices_at_least=1 / 1.25,
        rounds=31,
        first_s=10,
        last_s=105,
        quick={"last_s": 30},
    ),
    _race(
        "tumbling_80",
        "And 80 of them, of 5 s to 400 s?",
        _each_tumbling,
        at_least=65,
        slice_s=5,
        slices_at_least=1 / 1.6,
        rounds=31,
        first_s=5,
        last_s=400,
        quick={"last_s": 30},
    ),
    _race(
        "hop_600_10",
        "One hopping window that holds each event 60 times: what do slices save?",
        _one_hop,
        at_least=50,
        slice_s=10,
        slices_at_least=1 / 1.25,
        rounds=31,
        stock_runs=5,
        range_s=600,
        slide_s=10,
    ),
    _race(
        "mixed_20",
        "What do 20 queries of all kinds, sessions included, cost together?",
        _mixed,
        at_least=8,
    ),
    _race(
        "sparse",
        "And where slices hold one event each, so that nothing can be pre-aggregated?",
        _sparse,
        at_least=3,
        slide_ms=10,
    ),
    FEATURES,
    ONE_WINDOW,
)
