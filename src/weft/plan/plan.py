"""The plan as users hold it: what it says, shown in every form, written and read back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.errors import QueryError
from weft.plan.body import FORMATS, Format, PlanBody

_FRAME_PX = 560  # of a plan in a notebook; the page scrolls inside


@dataclass(frozen=True)
class Plan(PlanBody):
    """What an engine runs; engines obey it and never decide again."""

    def explain(self, format: Format = "text") -> str:
        """Print the plan: as text, verbose text, JSON, a mermaid graph, an HTML page, an SVG."""
        from weft.plan.render.explain import render

        if format not in FORMATS:
            raise QueryError(
                f"a plan cannot be explained as {format!r}",
                hint=f"use one of {', '.join(FORMATS)}",
            )
        return render(self, format)

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        """Show the plan in a notebook: the page, in a frame of its own."""
        from html import escape

        shown = escape(self.explain("html"), quote=True)
        return (
            f'<iframe srcdoc="{shown}" sandbox="" title="plan" width="100%" height="{_FRAME_PX}" '
            'style="border:0"></iframe>'
        )

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values; `from_json` reads them back."""
        from weft.plan.plan_json import plan_to_json

        return plan_to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read a plan that `explain("json")` wrote; custom aggregates must be defined before."""
        from weft.plan.plan_json import plan_from_json

        return plan_from_json(cls, text)
