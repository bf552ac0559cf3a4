"""A plan, cut into the pieces that engines run one by one: same events, same keys."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from weft.plan.nodes import Emit, Join, Node, Roll, Scan, Slice, scan_below, topological

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.aggregates import Partial
    from weft.plan.body import PlanBody
    from weft.query import Keys


@dataclass(frozen=True)
class PlannedScope:
    """The results that read the same scan under the same keys, and all they are made from."""

    scan: Scan
    keys: Keys
    emits: tuple[Emit, ...]

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of this scope, inputs first."""
        return topological(self.emits)

    @cached_property
    def rolls(self) -> tuple[Roll, ...]:
        """The windows that are handed to users, each once."""
        found = (roll for emit in self.emits for roll in emit.inputs if isinstance(roll, Roll))
        return tuple(dict.fromkeys(found))

    @cached_property
    def partials(self) -> tuple[Partial, ...]:
        """The partials that results are made of, each once."""
        return tuple(dict.fromkeys(p for roll in self.rolls for p in roll.partials))

    @cached_property
    def queries(self) -> tuple[str, ...]:
        """The queries answered, each once."""
        return tuple(dict.fromkeys(emit.query for emit in self.emits))

    @cached_property
    def roots(self) -> tuple[tuple[Scan, Keys], ...]:
        """The scans that its nodes read, each with the keys that events are grouped by there.

        A scope that regroups slices of more keys reads events under those.
        """
        found: dict[tuple[Scan, Keys], None] = {}
        for node in self.nodes:
            for below in node.inputs:
                if isinstance(below, Scan) and isinstance(node, Slice | Roll):
                    found[below, node.keys] = None
        return tuple(found)

    @property
    def regroups(self) -> bool:
        """True when events are read under other keys than those of the results."""
        return self.roots != ((self.scan, self.keys),)

    def emits_of(self, query: str) -> tuple[Emit, ...]:
        """The results of one query."""
        return tuple(emit for emit in self.emits if emit.query == query)


def planned_scopes(plan: PlanBody) -> tuple[PlannedScope, ...]:
    """Cut a plan without joins into its scopes, in the order of first results."""
    found: dict[tuple[Scan, Keys], list[Emit]] = {}
    for emit in plan.emits:
        if not isinstance(emit.inputs[0], Join):
            found.setdefault((scan_below(emit), emit.keys), []).append(emit)
    return tuple(PlannedScope(*group, _by_query(emits)) for group, emits in found.items())


def _by_query(emits: Sequence[Emit]) -> tuple[Emit, ...]:
    """Bring the results of each query together, in the order of first results."""
    order = {query: at for at, query in enumerate(dict.fromkeys(e.query for e in emits))}
    return tuple(sorted(emits, key=lambda emit: order[emit.query]))
