"""What an operator shows of its state, so that it can be written down and filled in again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.engines.local.values.keys import KeyCodes
    from weft.engines.local.windows.event_windows import Delimited
    from weft.engines.local.windows.flow import Flow
    from weft.engines.local.windows.slice_log import SliceLog
    from weft.engines.local.windows.timed_plan import TimedPlan
    from weft.plan import Node


class HeldState(Protocol):
    """The slices, events, keys and counters of one sharing scope."""

    plan: TimedPlan
    delimited: list[Delimited]
    codes: KeyCodes
    runs: dict[Node, list[Flow]]
    past: dict[Node, SliceLog]
    since_us: dict[Node, int]
    watermark_us: int | None

    def slices_of(self, node: Node) -> list[Flow]:
        """Return all slices that are held of a base."""
        ...

    def counters(self) -> dict[str, Any]:
        """Return what is known beside slices, keys and events, as JSON values."""
        ...

    def take_counters(self, told: Mapping[str, Any]) -> None:
        """Take back what `counters` gave."""
        ...
