"""Plans of windows at anchors: what is asked, the nodes, and the plan that holds them."""

from __future__ import annotations

from weft.plan.anchors.body import validate_features
from weft.plan.anchors.nodes import (
    PREFIX_SUMS,
    SLIDING_COUNTS,
    SLIDING_RANGES,
    TWO_STACKS,
    Features,
    Points,
    Trail,
    legal_techniques,
)
from weft.plan.anchors.plan import FeaturePlan
from weft.plan.anchors.query import EventFeatures, FeatureQuery

__all__ = [
    "PREFIX_SUMS",
    "SLIDING_COUNTS",
    "SLIDING_RANGES",
    "TWO_STACKS",
    "EventFeatures",
    "FeaturePlan",
    "FeatureQuery",
    "Features",
    "Points",
    "Trail",
    "legal_techniques",
    "validate_features",
]
