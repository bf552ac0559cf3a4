"""TriWeave: events are cut once at the edges of all windows, and trees cut those slices again.

The three-level plan of Shein & Chrysanthis: worth it where events far outnumber edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.planners.weave import propose_trees

if TYPE_CHECKING:
    from weft.plan import Scope
    from weft.planners.base import Context, NoProposal, Proposal


def propose(scope: Scope, context: Context) -> Proposal | NoProposal:
    """Let trees make their slices from one shared slicing."""
    return propose_trees(scope, context, "triweave")
