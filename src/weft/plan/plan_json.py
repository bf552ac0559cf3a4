"""Plans as JSON and back, without loss."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, TypeVar

from weft.errors import InternalError, QueryError
from weft.plan.body import STRATEGIES, Candidate, PlanBody, Share, StrategyChoice
from weft.plan.custom_json import customs_to_json, find_customs
from weft.plan.node_json import nodes_from_json, nodes_to_json
from weft.statistics import Statistics

VERSION = 2
P = TypeVar("P", bound=PlanBody)


def plan_to_json(plan: PlanBody) -> dict[str, Any]:
    """Return the whole plan as JSON values."""
    customs = customs_to_json(plan.nodes)
    return {
        "weft_plan": VERSION,
        "fingerprint": plan.fingerprint,
        "planner": plan.planner,
        "engine": plan.engine,
        "model": plan.model,
        "cost": plan.cost,
        "unit": plan.unit,
        "statistics": asdict(plan.statistics),
        **({"custom": customs} if customs else {}),
        "nodes": nodes_to_json(plan.nodes),
        "node_costs": list(plan.node_costs),
        "candidates": [c._asdict() for c in plan.candidates],
        "shares": [s._asdict() for s in plan.shares],
        "notes": list(plan.notes),
        "strategies": [c._asdict() for c in plan.strategies],
    }


def _choice(value: dict[str, Any]) -> StrategyChoice:
    choice = StrategyChoice(**{**value, "queries": tuple(value["queries"])})
    if choice.strategy not in STRATEGIES:
        raise ValueError(f"there is no strategy {choice.strategy!r}")
    return choice


def plan_from_json(made: type[P], text: str) -> P:
    """Read a plan back, or say why the text is not one."""
    try:
        value = json.loads(text)
        if value["weft_plan"] != VERSION:
            raise QueryError(
                f"the plan has version {value['weft_plan']}, this weft reads version {VERSION}",
                hint="plan again with this version",
            )
        statistics = dict(value["statistics"])
        statistics["lateness_us"] = tuple(statistics["lateness_us"])
        statistics["key_sets"] = tuple(
            (tuple(keys), count) for keys, count in statistics.get("key_sets", ())
        )
        statistics["kept"] = tuple((text, part) for text, part in statistics.get("kept", ()))
        find_customs(value.get("custom", {}))
        plan = made(
            nodes_from_json(value["nodes"]),
            value["planner"],
            value["engine"],
            value["model"],
            value["unit"],
            tuple(value["node_costs"]),
            tuple(Candidate(**c) for c in value["candidates"]),
            Statistics(**statistics),
            tuple(Share(**s) for s in value["shares"]),
            tuple(value["notes"]),
            tuple(_choice(c) for c in value.get("strategies", ())),
        )
        if plan.fingerprint != value["fingerprint"] or len(plan.node_costs) != len(plan.nodes):
            raise ValueError("its nodes were changed after it was written")
        return plan
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        InternalError,  # a node that no planner makes: here the text is wrong, not weft
    ) as reason:
        told = reason.message if isinstance(reason, InternalError) else str(reason)
        raise QueryError(
            f"the text is not a plan of weft: {type(reason).__name__}: {told}",
            hint="write plans with plan.explain('json')",
        ) from None
