"""Plans: a statement is typed in, and its shared plan drawn; two planners side by side."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING

from weft.errors import InputError, WeftError
from weft.plan import ENGINES, Scan
from weft.plan.render import html as plan_html
from weft.plan.render.graph import drawing
from weft.plan.render.svg import svg
from weft.plan.render.words import (
    counted,
    factor_windows,
    grouped,
    milliseconds,
    node_ids,
    sentence,
    title,
)
from weft.planners.portfolio import PLANNERS
from weft.ui.frame import card, choice, error_text, field, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.plan import Emit, Plan
    from weft.plan.body import Share
    from weft.ui.settings import Settings

_OPEN_GROUPS = 60  # with so many windows at most, groups are shown open
_PLANNER_NAMES = {"auto": "auto: the cheapest", **{name: name for name in PLANNERS}}
_MOST_CHANGES = 12


@dataclass(frozen=True, slots=True)
class Asked:
    """What the form of the page says."""

    sql: str
    planner: str = "auto"
    against: str = ""  # a second planner
    engine: str = "spark"
    model: str = ""
    rate: str = ""
    keys: str = ""
    before: str = ""  # the statements of the plan that was shown last

    @staticmethod
    def of(form: Mapping[str, str]) -> Asked:
        """Read a form; fields that are not there are as if nothing was chosen."""
        known = {name: form[name].strip() for name in Asked.__slots__ if form.get(name)}
        return Asked(**{"sql": "", **known})

    def plan(self, planner: str, sql: str | None = None) -> Plan:
        """Plan the statements; nothing is run, and no table is read."""
        from weft.parsing import parse
        from weft.planners.portfolio import optimize
        from weft.statistics import Statistics

        known = Statistics(rate=_number(self.rate, "rate"), keys=_whole(self.keys))
        return optimize(
            parse(self.sql if sql is None else sql),
            planner,
            self.engine,
            known,
            self.model or None,
        )


def _number(text: str, name: str) -> float | None:
    try:
        return float(Fraction(text.replace(",", ""))) if text else None
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise InputError(
            f"cannot read {text!r} as a {name}", hint="give a number such as 2500 or 1/60"
        ) from error


def _whole(text: str) -> int | None:
    found = _number(text, "number of keys")
    return None if found is None else int(found)


def content(settings: Settings, asked: Asked, chosen_file: str = "") -> str:
    """Write the page: the form, and the plan of what it says."""
    files = settings.files()
    names = {"": "...", **{name: name.partition("/")[2] for name in files}}
    chooser = (
        '<form method="get" action="/" class="line">'
        f"{choice('file', 'file', names, chosen_file)}<button>open</button></form>"
        if files
        else ""
    )
    fields = (
        choice("planner", "planner", _PLANNER_NAMES, asked.planner),
        choice("against", "beside", {"": "none", **_PLANNER_NAMES}, asked.against),
        choice("engine", "engine", {name: name for name in ENGINES}, asked.engine),
        choice("model", "costs", {"": "ms", "paper": "as the papers count"}, asked.model),
        field("rate", "events/s", asked.rate, "1000"),
        field("keys", "keys", asked.keys, "100"),
    )
    return (
        f'<section class="card"><h1>Plan</h1>{chooser}'
        '<form method="post" action="/" data-into="plan" data-typed="1">'
        '<label class="wide">statements, separated by ;'
        f'<textarea name="sql" rows="9" spellcheck="false">{escape(asked.sql)}</textarea></label>'
        f'<input type="hidden" name="before" value="{escape(asked.sql)}">'
        f'<div class="line">{"".join(fields)}<button>plan</button></div></form></section>'
        f'<div id="plan" aria-live="polite">{answer(asked)}</div>'
    )


def answer(asked: Asked) -> str:
    """Show the plan of the statements, or what is wrong with them."""
    if not asked.sql:
        return '<p class="soft hint">Paste a statement, and its plan appears here.</p>'
    try:
        plan = asked.plan(asked.planner)
        other = asked.plan(asked.against) if asked.against else None
    except WeftError as error:
        return error_text(error)
    if other is not None:
        return (
            f'<div class="beside">{_drawn(plan)}{_drawn(other)}</div>{_compared(plan, other)}'
            f"{_rest(plan)}"
        )
    before = _before(asked)
    if before is None:
        return f"{_drawn(plan)}{_rest(plan)}"
    known = _sentences(before)
    new = frozenset(name for text, name in _sentences(plan).items() if text not in known)
    changes = card("What changed", _difference(before, plan, "before", "now"))
    return f"{changes}{_drawn(plan, new)}{_rest(plan)}"


def graph_of(plan: Plan, marked: frozenset[str] = frozenset()) -> str:
    """Draw a plan, with its costs in their unit."""
    graph = drawing(plan, plan_html.LIMITS)
    text = grouped if plan.expected_ms is None else milliseconds
    drawn = svg(graph, cost_text=text, marked=marked, shrinks=False)
    note = f'<p class="soft">{escape(graph.note)}</p>' if graph.note else ""
    kinds = {box.kind for box in graph.boxes}
    return f'{note}<div class="scroll" tabindex="0">{drawn}</div>{plan_html.legend(kinds)}'


def _drawn(plan: Plan, marked: frozenset[str] = frozenset()) -> str:
    return f'<section class="card">{plan_html.heading(plan)}{graph_of(plan, marked)}</section>'


def _rest(plan: Plan) -> str:
    text = escape(plan.explain())
    return (
        f"{plan_html.candidates(plan)}{_windows(plan)}{plan_html.strategies(plan)}"
        f"{plan_html.notes(plan)}"
        f'<details class="card"><summary>EXPLAIN as text</summary><pre>{text}</pre></details>'
    )


def _windows(plan: Plan) -> str:
    """List all windows by what they read, with what they cost and why; with a line to search."""
    groups: dict[str, list[tuple[Emit, Share | None]]] = {}
    bill = {(share.query, share.label): share for share in plan.shares}
    for emit in plan.emits:
        share = bill.get((emit.query, emit.label))
        feeder = _feeder(emit) if share is None else share.feeder
        groups.setdefault(feeder, []).append((emit, share))
    is_open = " open" if len(plan.emits) <= _OPEN_GROUPS else ""
    parts = [
        f'<details class="group"{is_open}><summary>from {escape(feeder)}: '
        f"{counted(len(emits), 'window')}</summary>{_bill(feeder, emits)}</details>"
        for feeder, emits in groups.items()
    ]
    search = (
        '<label class="line">search <input type="search" data-search="windows" '
        f'placeholder="a query, a label or a window"></label><output id="found">'
        f"{counted(len(plan.emits), 'window')}</output>"
    )
    note = "" if plan.shares else "too many to be priced one by one"
    body = f'{search}<div id="windows">{"".join(parts)}</div>'
    return card("Why is this window (not) shared?", body, note)


def _feeder(emit: Emit) -> str:
    below = emit.inputs[0].inputs[0]
    return "events" if isinstance(below, Scan) else title(below)


def _bill(feeder: str, emits: Sequence[tuple[Emit, Share | None]]) -> str:
    heads = ("query", "label", "window", "costs here", "costs alone", "why")
    rows = []
    for emit, share in emits:
        costs = ("–", "–") if share is None else (grouped(share.marginal), grouped(share.alone))
        named = (emit.query, emit.label, title(emit.inputs[0]))
        rows.append((*named, *costs, _why(feeder, share)))
    return table(heads, rows, numbers=(3, 4))


def _why(feeder: str, share: Share | None) -> str:
    if share is not None and share.reason:
        return f"not shared: {share.reason}"
    if share is not None and share.marginal < share.alone:
        saved = 1 - share.marginal / share.alone
        return f"shared: read from {feeder}, {saved:.0%} less than alone"
    return f"read from {feeder}"


def _sentences(plan: Plan) -> dict[str, str]:
    """Say of every node what it is and reads, without the numbers that nodes happen to have."""
    ids = {node: title(node) for node in node_ids(plan.nodes)}
    factors = factor_windows(plan.nodes)
    return {sentence(node, ids, factors): title(node) for node in plan.nodes}


def _before(asked: Asked) -> Plan | None:
    """Plan the statements that were shown last, if these are others."""
    if not asked.before or asked.before == asked.sql:
        return None
    try:
        return asked.plan(asked.planner, asked.before)
    except WeftError:
        return None  # what was there before was no statement yet


def _compared(plan: Plan, other: Plan) -> str:
    return card(
        f"{plan.planner} beside {other.planner}",
        _difference(plan, other, f"only {plan.planner}", f"only {other.planner}"),
    )


def _difference(one: Plan, other: Plan, only_one: str, only_other: str) -> str:
    first, second = _sentences(one), _sentences(other)
    gone = [text for text in first if text not in second]
    new = [text for text in second if text not in first]
    change = f" ({other.cost / one.cost - 1:+.1%})" if one.cost > 0 else ""
    parts = [f"<p>cost {grouped(one.cost)} → {grouped(other.cost)} {escape(one.unit)}{change}</p>"]
    for name, texts in ((only_one, gone), (only_other, new)):
        if texts:
            items = "".join(f"<li>{escape(text)}</li>" for text in texts[:_MOST_CHANGES])
            more = len(texts) - _MOST_CHANGES
            items += f"<li>... {more:,} more</li>" if more > 0 else ""
            parts.append(f"<p>{escape(name)}:</p><ul>{items}</ul>")
    return "".join(parts) if gone or new else parts[0] + "<p>the plan is the same</p>"
