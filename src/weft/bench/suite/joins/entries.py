"""Joins: the figures of the paper, the speed of the local engine, and Spark against stock Spark."""

from __future__ import annotations

from typing import Any

from weft.bench.frame import Column, Entry, Limit, Row, Sheet, Table
from weft.bench.suite.joins.figures import FIGURES, TWO
from weft.bench.suite.joins.spark import AUCTIONS
from weft.cost.joins.tuples import placement_name, placements

_LARGE_BATCH = 20_000  # tuples of both inputs


def _two_way(quick: bool) -> Sheet:
    """Time all placements in turn on one machine state, and keep each one's best round."""
    from weft.bench.suite.joins.runs import streams_of, timed_join

    streams = streams_of(TWO, 20_000 if quick else 400_000)
    best: dict[str, float] = {}
    answers: dict[str, Any] = {}
    for _ in range(1 if quick else 3):
        for early in placements(2):
            plan = placement_name(early)
            seconds, answers[plan], _ = timed_join(streams, early, "hash", 1, _LARGE_BATCH)
            best[plan] = min(best.get(plan, seconds), seconds)
    rows: tuple[Row, ...] = tuple(
        {
            "plan": plan,
            "tuples a second": streams.timed_tuples / seconds,
            "times late": best["LAP"] / seconds,
        }
        for plan, seconds in best.items()
    )
    wrong = [f"{plan} differs from LAP" for plan in answers if answers[plan] != answers["LAP"]]
    return Sheet(rows, tuple(wrong))


SPEED = Table(
    name="joins/two_way",
    question="How many tuples a second pass a two-way hash join with windows of 5,000?",
    columns=(Column("plan"), Column("tuples a second", ",.0f"), Column("times late", ".2f")),
    compute=_two_way,
    limits=(
        Limit("tuples a second", at_least=1e6, rows={"plan": "EAP11"}, at_quick=False),
        Limit("times late", at_least=3.0, rows={"plan": "EAP11"}, at_quick=False),
    ),
)

ENTRIES: tuple[Entry, ...] = (FIGURES, SPEED, AUCTIONS)
