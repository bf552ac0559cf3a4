"""What a statement selects: keys, columns of the window, aggregates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from weft.aggregate_text import aggregate_call
from weft.expression import spelled, stripped
from weft.parsing.aggregates import AggregateReader, holds_aggregate
from weft.parsing.scope import Scope, comparable, unknown_function
from weft.parsing.windows import is_window_function
from weft.query import WINDOW_COLUMNS

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

    from weft.aggregates import AggregateCall
    from weft.errors import QueryError
    from weft.parsing.script import Statement

_START, _END = 1, 2  # positions in WINDOW_COLUMNS; the label is at 0
_FIELDS = {"start": _START, "end": _END}
# Texts as sqlglot prints them, in capitals.
_SYSTEM = {
    "SYSTEM.WINDOW().ID": 0,
    "SYSTEM.WINDOW().START": _START,
    "SYSTEM.WINDOW().END": _END,
    "SYSTEM.TIMESTAMP()": _END,
    "SYSTEM.TIMESTAMP": _END,
}
_NAMES = {"window": 0, "session_window": 0, "window_start": _START, "window_end": _END}


@dataclass(frozen=True, slots=True)
class Item:
    """One element of SELECT without its alias and parentheses."""

    node: exp.Expr
    alias: str | None
    whole: exp.Expr


@dataclass(frozen=True, slots=True)
class Key:
    """One grouping key: its canonical text, and the form in which SELECT is compared with it."""

    text: str
    compared: str
    name: str
    node: exp.Expr


@dataclass(frozen=True, slots=True)
class Projection:
    """The result columns of a statement."""

    keys: dict[str, str]
    aggs: dict[str, AggregateCall]
    window_columns: tuple[str, str, str]


def items_of(scope: Scope, select: exp.Select) -> list[Item]:
    """Split SELECT into its items; `*` is none."""
    items = []
    for whole in select.expressions:
        named = isinstance(whole, exp.Alias)
        node = stripped(whole.this if named else whole)
        if node.is_star:
            raise scope.script.error(
                "SELECT * has no meaning for windows",
                hint="name the keys and the aggregates, such as SELECT device, MIN(temp)",
                at=node,
            )
        items.append(Item(node, whole.alias if named else None, whole))
    return items


def grouping_elements(
    scope: Scope, statement: Statement, items: list[Item]
) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Split GROUP BY into keys and windows, with ordinals and aliases of SELECT looked up."""
    group = statement.tree.args.get("group")
    if group is None:
        return [], []
    for extra in ("all", "grouping_sets", "cube", "rollup", "totals"):
        if group.args.get(extra):
            raise _no_grouping_sets(scope, statement.token(TokenType.GROUP_BY))
    keys: list[exp.Expr] = []
    windows: list[exp.Expr] = []
    for element in group.expressions:
        if isinstance(element, exp.Cube | exp.Rollup | exp.GroupingSets):
            raise _no_grouping_sets(scope, statement.token(TokenType.GROUP_BY))
        node = _looked_up(scope, stripped(element), items)
        (windows if is_window_function(node) else keys).append(node)
    return keys, windows


def _no_grouping_sets(scope: Scope, at: Token) -> QueryError:
    return scope.script.error(
        "GROUP BY takes expressions and windows only",
        hint="write a statement for each grouping you need",
        at=at,
    )


def _looked_up(scope: Scope, element: exp.Expr, items: list[Item]) -> exp.Expr:
    if element.is_int and isinstance(element, exp.Literal):
        position = int(element.name)
        if not 1 <= position <= len(items):
            raise scope.script.error(
                f"GROUP BY {position} points at no item of SELECT",
                hint=f"SELECT has {len(items)} item(s), counted from 1",
                at=element,
            )
        return _groupable(scope, items[position - 1], element)
    if isinstance(element, exp.Column) and not element.table and not scope.has_column(element.name):
        for item in items:
            if item.alias is None or item.alias.casefold() != element.name.casefold():
                continue
            # A column of the source goes before an alias, as in Spark; an alias over a column of
            # its own name shows that there is one.
            read = {column.name.casefold() for column in item.node.find_all(exp.Column)}
            if element.name.casefold() not in read:
                return _groupable(scope, item, element)
    return element


def _groupable(scope: Scope, item: Item, element: exp.Expr) -> exp.Expr:
    if holds_aggregate(item.node):
        raise scope.script.error(
            "an aggregate cannot be grouped by",
            hint=f"group by columns of events; if {element.name} is one, call the aggregate by "
            "another name",
            at=element,
        )
    return item.node


def read_keys(scope: Scope, nodes: list[exp.Expr]) -> list[Key]:
    """Check the keys of GROUP BY; the name is the one a key has when it is not selected."""
    keys: dict[str, Key] = {}
    for node in nodes:
        text = scope.scalar(node, "grouping key")
        name = node.name if isinstance(node, exp.Column) else text
        compared = comparable(node)
        if compared in keys:
            hint = "write it once"
            raise scope.script.error(f"{text} is grouped by twice", hint=hint, at=node)
        keys[compared] = Key(text, compared, name, node)
    return list(keys.values())


class Projector:
    """Sorts the items of SELECT into keys, columns of the window, and aggregates."""

    def __init__(self, scope: Scope, keys: list[Key], windows: list[exp.Expr]) -> None:
        self._scope = scope
        self._keys = {key.compared: key for key in keys}
        self._windows = {comparable(window) for window in windows}
        self._aggregates = AggregateReader(scope)
        self._key_items: dict[str, Item] = {}
        self._window_items: dict[int, Item] = {}
        self._aggs: list[tuple[str, AggregateCall, exp.Expr]] = []

    def add(self, item: Item) -> None:
        """Find out what an item is, or refuse it."""
        written = aggregate_call(item.node)
        if written is not None:
            call, name = self._aggregates.read(item.node, written)
            self._aggs.append((item.alias or name, call, item.whole))
            return
        compared = self._compared(item.node)
        if compared in self._keys:
            self._once(item, compared, self._key_items)
            return
        column = self._window_column(item.node)
        if column is None:
            raise self._refusal(item)
        self._once(item, column, self._window_items)

    def finish(self, statement: Statement) -> Projection:
        """Return all columns, each under a name of its own, and at least one aggregate."""
        if not self._aggs:
            raise self._scope.script.error(
                "this query computes no aggregate",
                hint="select one, such as COUNT(*) or MIN(temp)",
                at=statement.tokens[0],
            )
        columns: list[tuple[str, exp.Expr | None]] = []
        keys = {}
        for compared, key in self._keys.items():
            item = self._key_items.get(compared)
            name = key.name if item is None else _key_name(item, key)
            keys[name] = key.text
            columns.append((name, key.node if item is None else item.whole))
        window_columns = list(WINDOW_COLUMNS)
        for position, default in enumerate(WINDOW_COLUMNS):
            item = self._window_items.get(position)
            window_columns[position] = default if item is None else item.alias or default
            columns.append((window_columns[position], None if item is None else item.whole))
        columns.extend((name, node) for name, _, node in self._aggs)
        self._check_names(columns)
        label, start, end = window_columns
        return Projection(keys, {name: call for name, call, _ in self._aggs}, (label, start, end))

    def _check_names(self, columns: list[tuple[str, exp.Expr | None]]) -> None:
        seen: dict[str, exp.Expr | None] = {}
        for name, node in columns:
            if name in seen:
                at = node if node is not None else seen[name]
                raise self._scope.script.error(
                    f"two result columns are named {name!r}",
                    hint="give one of them another name with AS",
                    at=at if at is not None else 0,
                )
            seen[name] = node

    def _once(self, item: Item, what: Any, seen: dict[Any, Item]) -> None:
        if what in seen:
            raise self._scope.script.error(
                "this is selected twice", hint="select it once", at=item.whole
            )
        seen[what] = item

    def _compared(self, node: exp.Expr) -> str:
        """Spell an item as keys are spelled: qualified in a join, and only there."""
        node = node.copy()
        sources = self._scope.sources
        for column in node.find_all(exp.Column):
            owners = self._scope.owners(column.name)
            if len(sources) > 1 and not column.table and len(owners) == 1:
                column.set("table", exp.to_identifier(owners[0].alias))
            elif len(sources) == 1 and column.table.casefold() == sources[0].alias.casefold():
                column.set("table", None)
        return comparable(node)

    def _window_column(self, node: exp.Expr) -> int | None:
        """Return which column of the window this is: 0 its label, 1 its start, 2 its end."""
        if is_window_function(node) and comparable(node) in self._windows:
            return 0
        if isinstance(node, exp.Dot) and comparable(node.this) in self._windows:
            return _FIELDS.get(node.expression.name.casefold())
        if isinstance(node, exp.Column) and not node.args.get("db"):
            table, name = node.table.casefold(), node.name.casefold()
            if not table and name in _NAMES:
                return _NAMES[name]
            if table in ("window", "session_window"):
                return _FIELDS.get(name)
        if isinstance(node, exp.Column | exp.Dot):
            return _SYSTEM.get(spelled(node).upper())
        return None

    def _refusal(self, item: Item) -> QueryError:
        script, node = self._scope.script, item.node
        if is_window_function(node):
            return script.error(
                f"{node.name} is selected but not grouped by",
                hint="put the same window in GROUP BY",
                at=node,
            )
        if isinstance(node, exp.Anonymous):
            return unknown_function(script, node, ())
        if isinstance(node, exp.Window) or not holds_aggregate(node):
            text = self._scope.scalar(node, "key")
            return script.error(
                f"{text} is neither grouped by nor aggregated",
                hint=f"add {text} to GROUP BY, or aggregate it, such as MAX({text})",
                at=node,
            )
        over = node.find(exp.Window)
        if over is not None:
            self._scope.scalar(over, "key")
        return script.error(
            "an expression over aggregates is not computed here",
            hint="select each aggregate by itself and compute with the result",
            at=node,
        )


def _key_name(item: Item, key: Key) -> str:
    if item.alias is not None:
        return item.alias
    return item.node.name if isinstance(item.node, exp.Column) else key.name
