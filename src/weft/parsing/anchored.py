"""Statements whose windows end at events: aggregates OVER frames, SlidingWindow, [RANGE r].

SELECT *, SUM(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING
                       AND CURRENT ROW) AS spend FROM t             a row for each row
SELECT k, COUNT(*) FROM t GROUP BY k, SlidingWindow(minute, 10)     a row for each change
SELECT k, COUNT(*) FROM t [RANGE 10 MINUTES] GROUP BY k             a row for each new event
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from weft.aggregate_text import aggregate_call
from weft.errors import QueryError
from weft.expression import stripped
from weft.parsing.aggregates import AggregateReader
from weft.parsing.bind import checked_select, source_of, tables_of, time_column
from weft.parsing.brackets import bracket_duration
from weft.parsing.literals import text_duration
from weft.parsing.projection import Projector, grouping_elements, items_of, read_keys
from weft.parsing.scope import Scope
from weft.parsing.script import Script
from weft.parsing.windows import WindowReader
from weft.window.frame import HERE, Distance, Frame
from weft.window.trailing import Trailing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.aggregates import AggregateCall
    from weft.parsing.script import Statement

_FORM = "(PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW)"


@dataclass(frozen=True, slots=True)
class OverCall:
    """One aggregate OVER a frame: the column of its results, and what it is computed from."""

    column: str
    call: AggregateCall
    keys: tuple[str, ...]
    order: str
    descends: bool
    nulls_first: bool
    frame: Frame


@dataclass(frozen=True, slots=True)
class OverStatement:
    """Rows of a table with aggregates OVER frames: items are names and expressions, None a star."""

    source: str
    where: str | None
    items: tuple[tuple[str, str] | None, ...]
    calls: tuple[OverCall, ...]


@dataclass(frozen=True, slots=True)
class SlidingStatement:
    """Aggregates of a window that slides with the events, grouped by keys.

    A row stands for each instant at which events come and, with `departures`, at which they leave.
    """

    source: str
    time: str | None
    keys: tuple[tuple[str, str], ...]
    where: str | None
    window: Trailing
    aggs: dict[str, AggregateCall]
    window_columns: tuple[str, str, str]
    departures: bool

    def time_among(self, timestamps: Sequence[str]) -> str:
        """Return the column of event time: the one that is named, or the only timestamp."""
        if self.time is not None:
            return self.time
        if len(timestamps) != 1:
            several = f"there are several: {', '.join(timestamps)}"
            raise QueryError(
                f"which timestamp of {self.source!r} counts is not said, and "
                f"{several if timestamps else 'there is none'}",
                hint=f"name it: FROM {self.source} TIMESTAMP BY ts",
            )
        return timestamps[0]


def anchored_statement(text: str) -> OverStatement | SlidingStatement | None:
    """Read a statement whose windows end at events; None where it is of another kind.

    >>> text = "SELECT k, SUM(x) OVER (ORDER BY ts ROWS 2 PRECEDING) AS s FROM t"
    >>> found = anchored_statement(text)
    >>> found.items, str(found.calls[0].frame.window("instant", "UTC"))
    ((('k', 'k'), ('s', 'weft_a0')), 'ROWS 3 up to t')
    >>> str(anchored_statement("SELECT COUNT(*) FROM t [RANGE 10 MINUTES]").window)
    'TRAIL 10m [t-10m, t]'
    >>> anchored_statement("SELECT COUNT(*) FROM t [RANGE 10 MINUTES SLIDE 1 MINUTE]") is None
    True
    """
    script = Script(text)
    statements = script.statements()
    tree = statements[0].tree
    if len(statements) > 1 or not isinstance(tree, exp.Select):
        return None
    if not tree.args.get("group") and any(item.find(exp.Window) for item in tree.expressions):
        return _over_statement(script, statements[0])
    if _slides(tree):
        return _sliding_statement(script, statements[0])
    return None


def _scope(script: Script, statement: Statement) -> tuple[exp.Select, exp.Table, Scope]:
    select = checked_select(script, statement)
    first, *others = tables_of(script, statement, select)
    if others:
        raise script.error(
            "windows that end at events stand over one table",
            hint="join the tables first, and name the result",
            at=others[0],
        )
    return select, first, Scope(script, (source_of(script, first, None),))


def _condition(scope: Scope, select: exp.Select) -> str | None:
    where = select.args.get("where")
    return None if where is None else scope.scalar(stripped(where.this), "filter")


def _over_statement(script: Script, statement: Statement) -> OverStatement:
    select, table, scope = _scope(script, statement)
    if table.args.get("stream_window"):
        raise script.error("OVER has a window of its own", hint="remove the brackets", at=table)
    calls: list[OverCall] = []
    items: list[tuple[str, str] | None] = []
    for whole in select.expressions:
        if isinstance(whole, exp.Star):
            items.append(None)
            continue
        named = isinstance(whole, exp.Alias)
        node = exp.Paren(this=(whole.this if named else whole).copy())
        for over in list(node.find_all(exp.Window)):
            found = _over_call(scope, over, f"weft_a{len(calls)}")
            calls.append(found)
            over.replace(exp.column(found.column))
        text = scope.scalar(stripped(node), "column")
        if not named and not isinstance(whole, exp.Column):
            raise script.error(
                "this column has no name", hint="give it one: ... AS total", at=whole
            )
        items.append((whole.alias_or_name, text))
    where = _condition(scope, select)
    return OverStatement(scope.sources[0].name, where, tuple(items), tuple(calls))


def _over_call(scope: Scope, over: exp.Window, name: str) -> OverCall:
    script = scope.script
    written = aggregate_call(over.this)
    if written is None:
        raise script.error(
            f"{over.this.name or 'this function'} is no aggregate and is not computed OVER rows",
            hint="aggregates stand OVER frames; on Spark every function does",
            at=over,
        )
    call, _ = AggregateReader(scope).read(over.this, written)
    order, spec = over.args.get("order"), over.args.get("spec")
    if order is None or len(order.expressions) != 1 or spec is None:
        _refuse_frame(script, over)
    (by,) = order.expressions
    keys = tuple(scope.scalar(key, "key") for key in over.args.get("partition_by") or ())
    return OverCall(
        name,
        call,
        keys,
        scope.scalar(by.this, "order"),
        bool(by.args.get("desc")),
        bool(by.args.get("nulls_first")),
        _frame(script, spec, over),
    )


def _refuse_frame(script: Script, at: exp.Expr) -> NoReturn:
    raise script.error(
        "OVER needs an order by one value and a frame that begins before its row and ends there",
        hint=f"write OVER {_FORM}; on Spark every frame is computed",
        at=at,
    )


def _frame(script: Script, spec: exp.WindowSpec, over: exp.Window) -> Frame:
    kind = str(spec.args["kind"]).upper()
    if kind not in ("RANGE", "ROWS") or spec.args.get("exclude"):
        _refuse_frame(script, over)
    first = _distance(script, spec.args.get("start"), spec.args.get("start_side"), over)
    last = HERE
    if spec.args.get("end"):
        last = _distance(script, spec.args["end"], spec.args.get("end_side"), over)
    return Frame("ROWS" if kind == "ROWS" else "RANGE", first, last)


def _distance(
    script: Script, bound: exp.Expr | str | None, side: str | None, over: exp.Window
) -> Distance:
    if isinstance(bound, str) and bound.upper() == "CURRENT ROW":
        return HERE
    if not isinstance(bound, exp.Expr) or str(side).upper() != "PRECEDING":
        _refuse_frame(script, over)
    if isinstance(bound, exp.Literal) and bound.is_int:
        return Distance(int(bound.name), "number")
    return Distance(text_duration(script, bound).value, "interval")


def _slides(select: exp.Select) -> bool:
    group = select.args.get("group")
    elements = [] if group is None else [stripped(e) for e in group.expressions]
    if any(e.name.casefold() == "slidingwindow" for e in elements if isinstance(e, exp.Anonymous)):
        return True
    source = select.args.get("from_")
    bracket = None if source is None else source.this.args.get("stream_window")
    return bracket is not None and bracket.args["kind"] == "RANGE" and not bracket.args.get("slide")


def _sliding_statement(script: Script, statement: Statement) -> SlidingStatement:
    select, table, scope = _scope(script, statement)
    items = items_of(scope, select)
    key_nodes, windows = grouping_elements(scope, statement, items)
    keys = read_keys(scope, key_nodes)
    bracket = table.args.get("stream_window")
    if len(windows) + (bracket is not None) != 1:
        raise script.error(
            "this query has a second window",
            hint="a window that slides with the events stands alone",
            at=windows[-1],
        )
    by = table.args.get("timestamp_by")
    if bracket is not None:
        window = Trailing(bracket_duration(script, bracket), "both")
    else:
        window = WindowReader(scope).sliding(windows[0])
    projector = Projector(scope, keys, windows)
    for item in items:
        projector.add(item)
    found = projector.finish(statement)
    return SlidingStatement(
        scope.sources[0].name,
        time_column(scope, [] if by is None else [by]),
        tuple(found.keys.items()),
        _condition(scope, select),
        window,
        found.aggs,
        found.window_columns,
        departures=bracket is None,
    )
