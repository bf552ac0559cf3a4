"""What an engine is: it runs plans and has no opinion on which plan is good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.plan import Node, Plan


class Unsupported(NamedTuple):
    """A node an engine cannot run, and why."""

    node: Node
    reason: str


class Engine(Protocol):
    """Runs a plan over tables; three members, and no more without a written reason."""

    @property
    def name(self) -> str:
        """The engine's name, as users give it."""
        ...

    def unsupported(self, plan: Plan) -> tuple[Unsupported, ...]:
        """Name every node this engine cannot run, and why; empty means it runs the whole plan."""
        ...

    def run(self, plan: Plan, sources: Mapping[str, Any]) -> dict[str, Any]:
        """Return the results of each query, ordered by (end, window, start, key)."""
        ...
