"""A plan's graph as SVG that stands alone, for documents: light or dark as the reader's system."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from weft.plan.render.graph import Limits, drawing
from weft.plan.render.style import COLOURS, GRAPH_STYLE
from weft.plan.render.svg import svg
from weft.plan.render.words import grouped, milliseconds

if TYPE_CHECKING:
    from weft.plan.body import PlanBody

LIMITS = Limits(boxes=32, results=12, columns=5)
_LETTERS = ".graph{font-family:system-ui,Roboto,Arial,sans-serif}"


def picture(plan: PlanBody) -> str:
    """Draw the plan; the same plan gives the same bytes."""
    text = grouped if plan.expected_ms is None else milliseconds
    drawn = svg(drawing(plan, LIMITS), cost_text=text, shrinks=False)
    unit = f" {plan.unit}" if plan.expected_ms is None else ""
    named_by = escape(f"plan by {plan.planner}, cost {text(plan.cost)}{unit}")
    style = f"<title>{named_by}</title><style>{COLOURS}{_LETTERS}{GRAPH_STYLE}</style>"
    named = drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return named.replace("<defs>", f"{style}\n<defs>", 1) + "\n"
