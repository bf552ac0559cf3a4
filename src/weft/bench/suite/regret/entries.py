"""`weft bench regret`: what is picked against the best of all plans, with and without knowledge."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from weft.bench.frame import Column, Entry, Limit, Row, Sheet, Table
from weft.bench.suite.regret.draws import number_of
from weft.bench.suite.regret.runs import NONE, TRUE, WRONG, on_local, on_spark, on_streams
from weft.calibration.stream import MICRO_BATCHES
from weft.generate.random_workloads import drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft.bench.suite.regret.runs import Regrets
    from weft.generate.random_workloads import Drawn

_WORKLOADS, _STREAMS, _QUICK = 60, 20, 2
_EVENTS = (100_000, 5_000_000)
_SPARK_EVENTS = (100_000, 2_000_000)
_STREAM_EVENTS = (100_000, 400_000)
_QUICK_EVENTS = (2_000, 20_000)


def _share(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _row(known: str, found: Sequence[Regrets]) -> Row:
    regrets = [one.regret(known) for one in found]
    slower = sum(one.stock_ms is not None and one.picked_ms[known] > one.stock_ms for one in found)
    row: dict[str, str | int | float | None] = {
        "statistics": known,
        "workloads": len(found),
        "median": _share(regrets, 0.5),
        "19 of 20": _share(regrets, 0.95),
        "worst": max(regrets),
        "slower than stock": slower,
    }
    if known == TRUE:
        row |= _accuracy(found)
    return row


def _accuracy(found: Sequence[Regrets]) -> dict[str, float]:
    """Compare what was expected of all plans with what they took."""
    from scipy.stats import spearmanr

    every = [one for regrets in found for one in regrets.timed]
    errors = [max(t.ms / t.expected_ms, t.expected_ms / t.ms) for t in every]
    order = spearmanr([t.expected_ms for t in every], [t.ms for t in every])
    return {
        "plans": len(every),
        "q-error": _share(errors, 0.5),
        "9 of 10": _share(errors, 0.9),
        "rank": float(order.statistic),
    }


def _sheet(run: Callable[[Drawn], Regrets], drawings: Sequence[Drawn]) -> Sheet:
    run(drawings[0])  # what runs first pays for code that is compiled
    found = [run(one) for one in drawings]
    rows = tuple(_row(known, found) for known in (TRUE, NONE, WRONG))
    least = min(d.events for d in drawings)
    most = max(d.events for d in drawings)
    return Sheet(rows, notes=(f"{len(drawings)} workloads over {least:,} to {most:,} events",))


def _drawings(
    quick: bool, full: int, events: tuple[int, int], watermark: str | None = None
) -> list[Drawn]:
    bounds = _QUICK_EVENTS if quick else events
    number = number_of(_QUICK if quick else full)
    return [drawn(seed, bounds, watermark) for seed in range(number)]


@cache
def _local(quick: bool, number: int) -> Sheet:
    return _sheet(on_local, _drawings(quick, number, _EVENTS))


@cache
def _spark(quick: bool, number: int) -> Sheet:
    return _sheet(on_spark, _drawings(quick, number, _SPARK_EVENTS))


@cache
def _streams(quick: bool, number: int) -> Sheet:
    drawings = _drawings(quick, number, _STREAM_EVENTS, watermark="1 second")
    return _sheet(lambda one: on_streams(one, MICRO_BATCHES), drawings)


_COLUMNS = (
    Column("statistics"),
    Column("workloads"),
    Column("median", ".2f"),
    Column("19 of 20", ".2f"),
    Column("worst", ".2f"),
    Column("slower than stock"),
    Column("plans"),
    Column("q-error", ".2f"),
    Column("9 of 10", ".2f"),
    Column("rank", ".3f"),
)


def _limit(column: str, at_most: float, *known: str) -> tuple[Limit, ...]:
    return tuple(
        Limit(column, at_most=at_most, rows={"statistics": one}, at_quick=False) for one in known
    )


_LIMITS = (
    *_limit("median", 1.03, TRUE),
    *_limit("19 of 20", 1.25, TRUE),
    *_limit("worst", 1.6, TRUE),
    *_limit("worst", 2.5, NONE, WRONG),
    *_limit("slower than stock", 0, TRUE, NONE, WRONG),
    *_limit("q-error", 1.4, TRUE),
    *_limit("9 of 10", 2.5, TRUE),
    Limit("rank", at_least=0.9, rows={"statistics": TRUE}, at_quick=False),
)


def _entry(
    name: str, where: str, compute: Callable[[bool, int], Sheet], full: int, needs: tuple[str, ...]
) -> Table:
    return Table(
        name=f"regret/{name}",
        question=f"How much slower than the best of all plans is the one that is picked, {where}?",
        columns=_COLUMNS,
        compute=lambda quick: compute(quick, number_of(full)),
        limits=_LIMITS,
        needs=needs,
    )


ENTRIES: tuple[Entry, ...] = (
    _entry("local", "on the local engine", _local, _WORKLOADS, ("scipy",)),
    _entry("spark", "on Spark", _spark, _WORKLOADS, ("pyspark", "scipy")),
    _entry("streams", "in streams on Spark", _streams, _STREAMS, ("pyspark", "scipy")),
)
