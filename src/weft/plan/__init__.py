"""The plan language: nodes, scopes, validation, EXPLAIN."""

from __future__ import annotations

from weft.plan.body import ENGINES, FORMATS, STRATEGIES, Candidate, Share, StrategyChoice
from weft.plan.nodes import FOLD, PICK, RANGES, STAIR, Emit, Join, JoinSide, Node, Roll, Scan, Slice
from weft.plan.plan import Plan
from weft.plan.scope import Demand, Scope, scopes_of

__all__ = [
    "ENGINES",
    "FOLD",
    "FORMATS",
    "PICK",
    "RANGES",
    "STAIR",
    "STRATEGIES",
    "Candidate",
    "Demand",
    "Emit",
    "Join",
    "JoinSide",
    "Node",
    "Plan",
    "Roll",
    "Scan",
    "Scope",
    "Share",
    "Slice",
    "StrategyChoice",
    "scopes_of",
]
