"""Races over clicks: what is the same whichever engine runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.bench.frame import Bar, Case, Contender, Race
from weft.bench.suite.mixed.inputs import EVENTS, QUICK_EVENTS, disjoint, mixed_24, one_query, rare

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.query import Workload


@dataclass(frozen=True)
class Races:
    """The races of one engine: queries together (`weft`) against each by itself (`apart`)."""

    engine: str
    inputs: Callable[[Callable[[], Workload]], Callable[..., Any]]
    same: Callable[[Any, Any], str]
    apart: Contender
    together: Contender

    def mixed_24(self, peer: str, contenders: dict[str, Contender], least: float) -> Race:
        """Race twenty-four queries against a peer, which is to take `least` times as long."""
        return self._race(
            "mixed_24",
            "What do 24 queries of four key sets, three filters and two windows cost together?",
            mixed_24,
            contenders=contenders,
            baseline=peer,
            bars=(Bar("weft", peer, least), Bar("weft", "apart", 2.0)),
            rounds=3,
        )

    def no_worse(self) -> tuple[Race, ...]:
        """Race where sharing does not pay: it must not lose."""
        asked = (
            ("rare_filter", "Does a filter that keeps one event in 2,000 lose by others?", rare),
            ("disjoint_filters", "Do filters without an event in common lose?", disjoint),
            ("one_filter", "Does a query by itself lose anything?", one_query),
        )
        return tuple(
            self._race(
                name,
                question,
                workload,
                contenders={"apart": self.apart, "weft": self.together},
                baseline="apart",
                bars=(Bar("weft", "apart", 0.95),),
                rounds=5,
            )
            for name, question, workload in asked
        )

    def _race(
        self, name: str, question: str, workload: Callable[[], Workload], **settings: Any
    ) -> Race:
        return Race(
            name=f"{self.engine}/{name}",
            question=question,
            inputs=self.inputs(workload),
            expected=None,
            full=(Case(f"{EVENTS:,} events", {"events": EVENTS}, EVENTS),),
            quick=(Case(f"{QUICK_EVENTS:,} events", {"events": QUICK_EVENTS}, QUICK_EVENTS),),
            same=self.same,
            item="event",
            **settings,
        )
