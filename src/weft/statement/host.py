"""Who runs a statement around its shared blocks: what splitting asks of an engine, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlglot import exp

    from weft.plan import Plan
    from weft.statement.sharing import Group, Member


class Unshareable(Exception):
    """Which blocks of a group cannot be shared, by number, and why."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__("; ".join(reasons.values()))
        self.reasons = dict(reasons)


@dataclass(frozen=True)
class Shared:
    """A group that was shared: its plan, and the table of results of each block, by number."""

    plan: Plan
    places: Mapping[int, str]


class Host(Protocol):
    """Runs what stands around shared blocks, and reads tables of their results by name."""

    @property
    def zone(self) -> str:
        """The zone that times are read and truncated in."""

    def columns(self, query: exp.Select) -> list[str]:
        """Name the columns of a query as Spark names them, or raise the obstacle that there is."""

    def gaining(self, members: Sequence[Member]) -> list[Member]:
        """Return the blocks of a group that are better shared than run by the host."""

    def share(self, group: Group, planner: str) -> Shared:
        """Compute a group, and have tables of its results; raise `Unshareable` where it cannot."""
