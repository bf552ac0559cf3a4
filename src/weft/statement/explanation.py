"""EXPLAIN of statements: which blocks are shared, by which plans, and why others are not."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from weft.plan import Plan
from weft.query import Workload
from weft.running import engine_for, family_of, plan_for, tables_for
from weft.statement.placeholders import with_plain_names

if TYPE_CHECKING:
    from weft.plan.anchors import FeaturePlan
    from weft.query import AnyQuery
    from weft.statement.notes import Note, OverNote
    from weft.statement.placeholders import Arguments
    from weft.statement.shared import Statements

_NOTHING = "no block groups by a window, and no function is OVER a frame"


@dataclass(frozen=True)
class Explanation:
    """How statements run: a line for each block, and a shared plan for each set of events."""

    notes: tuple[Note | OverNote, ...]
    events: tuple[str, ...]  # the SELECT of the events of each plan
    plans: tuple[Plan | FeaturePlan, ...]

    @staticmethod
    def of(statements: Statements) -> Explanation:
        """Return what statements say of themselves."""
        return Explanation(statements.notes, tuple(statements.events), tuple(statements.plans))

    def __str__(self) -> str:
        lines = [str(note) for note in self.notes] or [_NOTHING]
        for events, plan in zip(self.events, self.plans, strict=True):
            lines += ["", "events:", f"  {events}", "", plan.explain()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Show in notebooks: the notes, then each plan as it shows itself."""
        told = "".join(f"<li>{escape(str(note))}</li>" for note in self.notes or (_NOTHING,))
        pages = (
            f"<p>events: <code>{escape(events)}</code></p>{_shown(plan)}"
            for events, plan in zip(self.events, self.plans, strict=True)
        )
        return f"<ul>{told}</ul>{''.join(pages)}"


def _shown(plan: Plan | FeaturePlan) -> str:
    return plan._repr_html_() if isinstance(plan, Plan) else f"<pre>{escape(plan.explain())}</pre>"


def explain(
    text_or_workload: str | Workload | AnyQuery,
    engine: str | None = None,
    planner: str = "auto",
    *,
    args: Arguments | None = None,
    **tables: Any,
) -> Plan | Explanation:
    """Tell how a workload, a query or SQL would run over these tables; nothing is computed.

    A workload, or SQL with windows of weft's own, is one plan. Any other SQL is an `Explanation`:
    what becomes of each block that groups by a window, and the shared plans. Both show themselves
    in notebooks. `args` are parameters of the text, as in `weft.sql`.
    """
    chosen = engine_for(tables, engine or (None if tables else "spark"))
    own = tables_for(chosen, tables)
    if not isinstance(text_or_workload, str):
        return plan_for(Workload.of(text_or_workload), own, chosen, planner, None)
    from weft.statement.door import (
        SparkRefusal,
        anchored_of,
        explained,
        explained_in_process,
        is_workload,
        refuse_parameters,
        sliding_over,
        speaks_to_weft,
    )

    text_or_workload = with_plain_names(text_or_workload, tables)
    if family_of(chosen) == "spark":
        sliding = sliding_over(text_or_workload, own, args)
        if sliding is not None:
            return Explanation((), (text_or_workload,), (sliding.plan,))
        try:
            return Explanation.of(explained(text_or_workload, own, planner, args))
        except SparkRefusal:
            if not is_workload(text_or_workload):
                raise
    refuse_parameters(args)
    from weft.parsing import parse
    from weft.parsing.anchored import anchored_statement

    sparks = chosen.name == "local" and not speaks_to_weft(text_or_workload)
    read = anchored_of if sparks else anchored_statement
    anchored = read(text_or_workload)
    if anchored is not None:
        from weft.features.anchored_sql import plans_of

        plans = plans_of(anchored, own, chosen.name)
        return Explanation((), (text_or_workload,) * len(plans), plans)
    if sparks:
        return Explanation.of(explained_in_process(text_or_workload, own, planner))
    return plan_for(parse(text_or_workload), own, chosen, planner, None)
