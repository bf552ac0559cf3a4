"""Every window from events, as stock engines do: the baseline, and always a candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.planners.base import Proposal

if TYPE_CHECKING:
    from weft.plan import Scope
    from weft.planners.base import Context


def propose(scope: Scope, context: Context) -> Proposal:
    """Fold every event into each of its instances, window by window; nothing is shared."""
    reasons = dict.fromkeys(scope.windows, "an independent plan shares nothing")
    return Proposal(scope.emits({}), reasons=reasons if len(scope.windows) > 1 else {})
