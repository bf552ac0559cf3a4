"""The plan of features as users hold it: shown as text, written as JSON and read back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from weft.errors import QueryError
from weft.plan.anchors.body import FeatureBody, validate_features
from weft.plan.anchors.node_json import features_from_json, nodes_to_json
from weft.plan.anchors.text import plan_text

FeatureFormat = Literal["text", "json"]
VERSION = 1


@dataclass(frozen=True)
class FeaturePlan(FeatureBody):
    """What an engine runs for `as_of` and `rolling`; engines obey it and never decide again."""

    def explain(self, format: FeatureFormat = "text") -> str:
        """Print the plan as text or as JSON."""
        if format == "text":
            return plan_text(self)
        if format == "json":
            return json.dumps(self.to_json(), indent=2)
        raise QueryError(
            f"a plan of features cannot be explained as {format!r}", hint="use text or json"
        )

    def __str__(self) -> str:
        return self.explain()

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values; `from_json` reads them back."""
        return {
            "weft_features": VERSION,
            "fingerprint": self.fingerprint,
            "engine": self.engine,
            "events": self.events,
            "anchors": self.anchors,
            "assumed": self.assumed,
            "costs_ns": [list(costs) for costs in self.costs_ns],
            **nodes_to_json(self.features),
        }

    @staticmethod
    def from_json(text: str) -> FeaturePlan:
        """Read a plan that `explain("json")` wrote; custom aggregates must be defined before."""
        try:
            value = json.loads(text)
            if value["weft_features"] != VERSION:
                raise ValueError(f"version {value['weft_features']}")
            plan = FeaturePlan(
                features_from_json(value),
                value["engine"],
                value["events"],
                value["anchors"],
                tuple(tuple(costs) for costs in value["costs_ns"]),
                value["assumed"],
            )
            if plan.fingerprint != value["fingerprint"]:
                raise ValueError("its nodes were changed after it was written")
        except (KeyError, TypeError, ValueError, IndexError) as reason:
            raise QueryError(
                f"the text is not a plan of features: {type(reason).__name__}: {reason}",
                hint="write plans with plan.explain('json')",
            ) from None
        validate_features(plan)
        return plan
