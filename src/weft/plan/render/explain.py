"""EXPLAIN: the one door to all forms in which a plan is shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, assert_never

from weft.plan.plan_json import plan_to_json

if TYPE_CHECKING:
    from weft.plan.body import Format, PlanBody


def render(plan: PlanBody, format: Format) -> str:
    """Show the plan in one of `weft.plan.FORMATS`; equal plans give equal bytes.

    >>> from weft.aggregates import AggregateCall, Partial
    >>> from weft.plan import FOLD, Emit, Plan, Roll, Scan
    >>> from weft.window import tumbling
    >>> scan = Scan("readings", "ts", None, ("temp",))
    >>> roll = Roll((scan,), tumbling("20 minutes"), FOLD, (), (Partial("min", ("temp",)),))
    >>> emit = Emit((roll,), "lows", "20m", (("lo", AggregateCall("min", ("temp",))),))
    >>> plan = Plan((scan, roll, emit), "independent", "local", "paper", "per 2h", (0, 120, 0))
    >>> print(render(plan, "text"))
    PLAN by independent for local, model paper
    cost 120 per 2h
    statistics: 1000 events/s, 100 keys (rate and keys assumed)
    <BLANKLINE>
    s0 := SCAN readings by ts                         cost 0
    w1 := TUMBLE 20m from s0: min(temp)               cost 120
    w1 -> query 'lows' window '20m': lo = min(temp)   cost 0
    """
    match format:
        case "text":
            from weft.plan.render.text import text

            return text(plan)
        case "verbose":
            from weft.plan.render.text import verbose

            return verbose(plan)
        case "json":
            return json.dumps(plan_to_json(plan), indent=2)
        case "mermaid":
            from weft.plan.render.mermaid import mermaid

            return mermaid(plan)
        case "html":
            from weft.plan.render.html import page

            return page(plan)
        case "svg":
            from weft.plan.render.picture import picture

            return picture(plan)
        case _:
            assert_never(format)
