"""Windows as other engines spell them: table functions as in Flink, and time_bucket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.errors import QueryError
from weft.statement.syntax import (
    PlainInterval,
    TableArgument,
    is_call,
    query_of,
    statements_of,
    written_of,
)
from weft.time import duration_us

if TYPE_CHECKING:
    from collections.abc import Sequence

# The arguments of each function after the table and its time, in order.
_ARGUMENTS = {
    "tumble": ("size", "offset"),
    "hop": ("slide", "size", "offset"),
    "cumulate": ("step", "size"),
    "session": ("gap",),
}
_COLUMNS = {"window_start": "start", "window_end": "end"}
CUMULATE = "cumulate_window"  # a window that Spark has no function for, while statements are read
_GROWN = "weft_grown_by_"  # names the rows of CUMULATE, and its step
# Spark has time_bucket since 4.2, and counts from here; other engines count from other days.
_ORIGIN_US = 0


class _Foreign(Exception):
    """A spelling that has no counterpart in Spark."""


def in_sparks_words(text: str) -> str | None:
    """Return statements with windows of other engines in Spark's spelling; None without any.

    >>> print(in_sparks_words("SELECT window_start, k, COUNT(*) AS n FROM "
    ...     "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTES)) "
    ...     "GROUP BY window_start, window_end, k"))
    SELECT window.start AS window_start, k, COUNT(*) AS n FROM t GROUP BY k, window(ts, '5 MINUTES')
    """
    found = statements_of(text) or {}
    made: list[str] = []
    any_changed = False
    for name, statement in found.items():
        tree = query_of(statement)
        if tree is None or not _translate(tree):
            made.append(statement)
            continue
        any_changed = True
        written = written_of(tree)
        made.append(f"-- name: {name}\n{written}" if len(found) > 1 else written)
    return ";\n".join(made) if any_changed else None


def _translate(tree: exp.Query) -> bool:
    """Change a tree in place; tell whether there was anything to change."""
    changed = False
    for table in list(tree.find_all(exp.Table)):
        call = _table_function(table)
        if call is None:
            continue
        try:
            _replace_table(table, _WindowFunction.of(call))
            changed = True
        except (_Foreign, QueryError):
            continue
    for bucket in [n for n in tree.find_all(exp.Anonymous) if is_call(n, "time_bucket")]:
        made = _bucket(bucket)
        if made is not None:
            bucket.replace(made)
            changed = True
    return changed


def _table_function(table: exp.Table) -> exp.Anonymous | None:
    call = table.this
    if is_call(call, "table") and len(call.expressions) == 1:
        call = call.expressions[0]
    return call if isinstance(call, exp.Anonymous) and is_call(call, *_ARGUMENTS) else None


@dataclass(frozen=True)
class _WindowFunction:
    """A call such as `HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '1' HOUR)`."""

    name: str
    table: exp.Expr
    partition_by: tuple[str, ...]
    time: exp.Expr
    lengths: dict[str, str]

    @staticmethod
    def of(call: exp.Anonymous) -> _WindowFunction:
        name = str(call.this).casefold()
        names = ("data", "timecol", *_ARGUMENTS[name])
        given: dict[str, exp.Expr] = {}
        for place, argument in enumerate(call.expressions):
            if isinstance(argument, exp.Kwarg):
                given[argument.name.casefold()] = argument.expression
            elif place < len(names):
                given[names[place]] = argument
        data, time = given.pop("data", None), given.pop("timecol", None)
        if not isinstance(data, TableArgument) or not is_call(time, "descriptor"):
            raise _Foreign
        assert time is not None
        by = tuple(written_of(key).casefold() for key in data.args.get("partition_by") or ())
        lengths = {word: _length(node) for word, node in given.items()}
        if set(lengths) - set(names) or not set(names[2:]) - {"offset"} <= set(lengths):
            raise _Foreign
        return _WindowFunction(name, data.this, by, time.expressions[0], lengths)

    @property
    def call(self) -> exp.Expr:
        """The window as a function of Spark's."""
        if self.name == "session":
            words: Sequence[str] = (self.lengths["gap"],)
        else:
            size = self.lengths["size"]
            words = (size, self.lengths.get("slide", size), self.lengths.get("offset", ""))
            words = words if words[2] else words[:2] if self.name == "hop" else words[:1]
        literals = [exp.Literal(this=f"'{word}'", is_string=False) for word in words]
        name = "session_window" if self.name == "session" else "window"
        return exp.Anonymous(this=name, expressions=[self.time.copy(), *literals])

    def rows(self) -> exp.Query:
        """The rows of the table, each once for every window that it is in."""
        table, time = written_of(self.table), written_of(self.time)
        window = f"window({time}, '{self.lengths['size']}')"
        if self.name == "hop":
            window = written_of(self.call)
        inner = f"SELECT *, {window} AS weft_w FROM {table}"
        if self.name != "cumulate":
            text = (
                "SELECT * EXCEPT (weft_w), weft_w.start AS window_start, weft_w.end AS window_end "
                f"FROM ({inner})"
            )
        else:
            step = duration_us(self.lengths["step"])
            since = "unix_micros(weft_w.start)"
            first = f"{since} + ((unix_micros({time}) - {since}) DIV {step} + 1) * {step}"
            ends = f"sequence({first}, unix_micros(weft_w.end), {step})"
            text = (
                "SELECT * EXCEPT (weft_w, weft_end), weft_w.start AS window_start, "
                f"timestamp_micros(weft_end) AS window_end FROM ({inner}) "
                f"LATERAL VIEW explode({ends}) {_GROWN}{step} AS weft_end"
            )
        tree = query_of(text)
        assert tree is not None
        return tree


def _replace_table(table: exp.Table, function: _WindowFunction) -> None:
    select = table.find_ancestor(exp.Select)
    alone = select is not None and not select.args.get("joins") and not select.args.get("laterals")
    alias = table.args.get("alias")
    if select is not None and alone and function.name != "cumulate" and _grouped(select, function):
        plain = exp.Table(this=function.table.this.copy())
        for part in ("db", "catalog", "alias"):
            value = alias if part == "alias" else function.table.args.get(part)
            plain.set(part, value.copy() if value is not None else None)
        table.replace(plain)
    elif function.name != "session":
        named = alias.copy() if alias is not None else None
        table.replace(exp.Subquery(this=function.rows(), alias=named))
    else:
        raise _Foreign


def _grouped(select: exp.Select, function: _WindowFunction) -> bool:
    """Group by the window in place of its bounds, if the SELECT groups by them."""
    group = select.args.get("group")
    if group is None:
        return False
    bounds = [g for g in group.expressions if isinstance(g, exp.Column) and g.name in _COLUMNS]
    keys = {written_of(g).casefold() for g in group.expressions if g not in bounds}
    if not bounds or not set(function.partition_by) <= keys:
        return False
    call = function.call
    name = str(call.this)
    rest = [g for g in group.expressions if g not in bounds]
    group.set("expressions", [*rest, call])
    _read_bounds(select, name)
    return True


def _read_bounds(select: exp.Select, window: str) -> None:
    """Read the bounds of a window where columns of a table function are read."""
    for column in list(select.find_all(exp.Column)):
        field = _COLUMNS.get(column.name)
        if field is None or column.find_ancestor(exp.Select) is not select:
            continue
        made: exp.Expr = exp.column(field, table=window)
        if column.parent is select:
            made = exp.alias_(made, column.name)
        column.replace(made)


def _length(node: exp.Expr) -> str:
    """Write an interval as text that is a length of a window."""
    if not isinstance(node, PlainInterval):
        raise _Foreign
    text = " ".join(part.name.strip("'\"") for part in node.expressions)
    duration_us(text)
    return text


def _bucket(call: exp.Anonymous) -> exp.Expr | None:
    """Return the start of the bucket that holds a time; NULL where there is no time."""
    if len(call.expressions) != 2:
        return None
    width, time = call.expressions
    try:
        span = duration_us(_length(width))
    except (_Foreign, QueryError):
        return None
    micros = f"unix_micros({written_of(time)})"
    start = f"timestamp_micros({micros} - pmod({micros} - {_ORIGIN_US}, {span}))"
    tree = query_of(f"SELECT {start}")
    assert isinstance(tree, exp.Select)
    made: exp.Expr = tree.expressions[0]
    return made


def bucket_of(node: exp.Expr) -> tuple[exp.Expr, int, int] | None:
    """Return time, width and origin of a bucket, where an expression is the start of one."""
    start = node.expressions[0] if is_call(node, "timestamp_micros") else None
    if not isinstance(start, exp.Sub) or not is_call(start.this, "unix_micros"):
        return None
    (time,) = start.this.expressions
    position = start.expression
    if not is_call(position, "pmod") or not isinstance(position.expressions[0], exp.Sub):
        return None
    origin, width = position.expressions[0].expression, position.expressions[1]
    if position.expressions[0].this != start.this or not (origin.is_int and width.is_int):
        return None
    return time, int(width.name), int(origin.name)


def gather_cumulations(tree: exp.Expr) -> None:
    """Group rows of CUMULATE by one window in place of its bounds; the tree is ours.

    What Spark runs is in `_WindowFunction.rows`; this reads it back, so that it can be shared.
    """
    for select in list(tree.find_all(exp.Select)):
        found = _cumulation(select)
        if found is None:
            continue
        table, call = found
        group = select.args["group"]
        rest = [g for g in group.expressions if g.name not in _COLUMNS]
        group.set("expressions", [*rest, call])
        select.set("from_", exp.From(this=table.copy()))
        _read_bounds(select, CUMULATE)


def _cumulation(select: exp.Select) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the table and the window of a SELECT that groups rows of CUMULATE by both bounds."""
    source, group = select.args.get("from_"), select.args.get("group")
    if source is None or group is None or select.args.get("joins") or select.args.get("laterals"):
        return None
    bounds = {g.name for g in group.expressions if isinstance(g, exp.Column)} & set(_COLUMNS)
    rows = source.this.this if isinstance(source.this, exp.Subquery) else None
    lateral = next(iter(rows.args.get("laterals") or ()), None) if rows is not None else None
    grown = lateral.alias if lateral is not None else ""
    if rows is None or not grown.startswith(_GROWN) or bounds != set(_COLUMNS):
        return None
    inner = rows.args["from_"].this.this
    time, size = inner.expressions[1].this.expressions
    step = exp.Literal.number(grown.removeprefix(_GROWN))
    table = inner.args["from_"].this
    if source.this.alias:
        table = exp.alias_(table.copy(), source.this.alias, table=True)
    call = exp.Anonymous(this=CUMULATE, expressions=[time.copy(), size.copy(), step])
    return table, call
