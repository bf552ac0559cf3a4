"""What a join query means: who owns which column, what must be equal, and when it is evaluated.

A join is evaluated at *instants*: the ends of the instances of its windows, all streams together.
At an instant every stream contributes its latest instance that has ended by then, a landmark
stream everything before the instant, and a table all its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from weft.aggregates import decompose
from weft.errors import InternalError
from weft.expression import canonical, inputs_of, qualified_columns, tree
from weft.plan.nodes import Emit, Join
from weft.query import JoinInput, JoinQuery
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weft.aggregates import AggregateCall, Partial
    from weft.window import LandmarkWindow

    JoinWindow = PeriodicWindow | LandmarkWindow | None


JOINT = -1  # the owner of a call that reads several inputs at once


class Owned(NamedTuple):
    """An expression of one input, as that input spells it: without the qualifier."""

    side: int
    text: str


@lru_cache(maxsize=4096)
def owned(text: str, aliases: tuple[str, ...]) -> Owned:
    """Find the input that a qualified expression reads, and drop the qualifier.

    An expression without columns belongs to the first input.

    >>> owned("b.price * 2", ("a", "b"))
    Owned(side=1, text='price * 2')
    """
    from sqlglot import exp

    node = tree(text).copy()
    sides = {aliases.index(c.table) for c in node.find_all(exp.Column)}
    if len(sides) > 1:
        raise InternalError(f"{text} reads several inputs of a join")
    for column in node.find_all(exp.Column):
        column.set("table", None)
    return Owned(sides.pop() if sides else 0, canonical(node.sql(dialect="spark")))


def merged_name(alias: str, name: str) -> str:
    """Name a column of an input among the columns of a match, where all inputs are side by side."""
    return f"{alias}.{name}"


@lru_cache(maxsize=4096)
def _over_matches(text: str) -> str:
    """Spell a qualified expression over the columns of a match.

    >>> _over_matches("a.x * b.y")
    '`a.x` * `b.y`'
    """
    from sqlglot import exp

    def merged(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        return exp.column(exp.to_identifier(merged_name(node.table, node.name), quoted=True))

    return canonical(tree(text).copy().transform(merged).sql(dialect="spark"))


@dataclass(frozen=True, slots=True)
class JoinShape:
    """Who owns what in a join.

    A *variable* is a class of columns that must all be equal; an input may have several columns
    in one class, which filters it. A call that reads several inputs is evaluated match by match;
    the columns it reads are *carried* to the join, where equal rows may stand for each other.

    >>> streams = tuple(JoinInput(name, name, "ts", PeriodicWindow(4, 2)) for name in "ab")
    >>> from weft.aggregates import AggregateCall
    >>> total = (("total", AggregateCall("sum", ("b.x",))),)
    >>> shape = JoinShape.of(JoinQuery("q", streams, (("a.k", "b.k"),), (("g", "a.g"),), total))
    >>> shape.variables, shape.keys, shape.calls[0]
    (((('k',), ('k',)),), (Owned(side=0, text='g'),), (1, AggregateCall(function='sum', \
args=('x',), parameters=(), where=None)))
    """

    aliases: tuple[str, ...]
    windows: tuple[JoinWindow, ...]
    variables: tuple[tuple[tuple[str, ...], ...], ...]  # per variable, per input, its columns
    keys: tuple[Owned, ...]
    calls: tuple[tuple[int, AggregateCall], ...]  # the owner, and the call as it spells it
    carried: tuple[tuple[str, ...], ...] = ()  # per input, columns that calls of JOINT read

    @classmethod
    def of(cls, query: JoinQuery) -> JoinShape:
        """Sort the columns of a query by their owners."""
        aliases = tuple(i.alias for i in query.inputs)
        return cls(
            aliases,
            tuple(i.window for i in query.inputs),
            _variables(query.on, aliases),
            tuple(owned(text, aliases) for _, text in query.keys),
            tuple(_owned_call(call, aliases) for _, call in query.aggs),
            tuple(_carried(query, alias) for alias in aliases),
        )

    def variables_of(self, side: int) -> tuple[int, ...]:
        """List the variables in which an input has columns."""
        return tuple(v for v, columns in enumerate(self.variables) if columns[side])

    def join_columns(self, side: int) -> tuple[str, ...]:
        """List the columns of an input that must equal others, by variable."""
        return tuple(c for columns in self.variables for c in columns[side])

    def carried_columns(self, side: int) -> tuple[str, ...]:
        """List the columns of an input that aggregates over several inputs read."""
        return self.carried[side] if self.carried else ()

    def partials_of(self, side: int) -> tuple[Partial, ...]:
        """List the partials over columns of an input, as it spells them; counts of rows excepted.

        JOINT has the partials over columns of several.

        How many rows there are is no input's own: it is the product of all counts.
        """
        own = decompose(call for owner, call in self.calls if owner == side)
        return tuple(p for p in own if p.args)

    @property
    def instants(self) -> Instants:
        """When the join is evaluated."""
        return Instants(self.windows)


def _carried(query: JoinQuery, alias: str) -> tuple[str, ...]:
    joint = [call for _, call in query.aggs if len(inputs_of(call.args)) > 1]
    read = [pair for call in joint for text in call.args for pair in qualified_columns(text)]
    return tuple(sorted({name for owner, name in read if owner == alias}))


def _owned_call(call: AggregateCall, aliases: tuple[str, ...]) -> tuple[int, AggregateCall]:
    if len(inputs_of(call.args)) > 1:
        return JOINT, replace(call, args=tuple(map(_over_matches, call.args)))
    arguments = [owned(argument, aliases) for argument in call.args]
    side = arguments[0].side if arguments else 0
    return side, replace(call, args=tuple(a.text for a in arguments))


def _variables(
    on: Sequence[tuple[str, str]], aliases: tuple[str, ...]
) -> tuple[tuple[tuple[str, ...], ...], ...]:
    classes: list[list[Owned]] = []
    for pair in on:
        merged = [owned(text, aliases) for text in pair]
        for known in [c for c in classes if set(c) & set(merged)]:
            merged = known + merged
            classes.remove(known)
        classes.append(list(dict.fromkeys(merged)))
    return tuple(
        tuple(tuple(o.text for o in found if o.side == side) for side in range(len(aliases)))
        for found in classes
    )


def end_class(window: PeriodicWindow) -> tuple[int, int]:
    """Return (residue, modulus) of the times at which instances end.

    >>> end_class(PeriodicWindow(5, 3))
    (2, 3)
    """
    return (window.offset_us + window.range_us) % window.slide_us, window.slide_us


@dataclass(frozen=True, slots=True)
class Instants:
    """The times at which a join is evaluated, and what each input contributes then.

    >>> both = Instants((PeriodicWindow(4, 2), PeriodicWindow(6, 3)))
    >>> list(both.between(4, 10)), both.bounds(1, 8)
    ([4, 6, 8, 9], (0, 6))
    """

    windows: tuple[JoinWindow, ...]

    @property
    def periodic(self) -> tuple[PeriodicWindow, ...]:
        """The windows that move."""
        return tuple(w for w in self.windows if isinstance(w, PeriodicWindow))

    @property
    def classes(self) -> tuple[tuple[int, int], ...]:
        """The distinct (residue, modulus) of instants."""
        return tuple(dict.fromkeys(map(end_class, self.periodic)))

    def between(self, first_us: int, stop_us: int) -> Iterator[int]:
        """List the instants of `[first, stop)` in order."""
        found = {
            t
            for residue, modulus in self.classes
            for t in range(first_us + (residue - first_us) % modulus, stop_us, modulus)
        }
        yield from sorted(found)

    def bounds(self, side: int, instant_us: int) -> tuple[int | None, int | None]:
        """Return `[start, end)` of what an input contributes at an instant; None is unbounded."""
        window = self.windows[side]
        if window is None:
            return None, None
        if not isinstance(window, PeriodicWindow):
            return None, instant_us
        residue, modulus = end_class(window)
        end_us = instant_us - (instant_us - residue) % modulus
        return end_us - window.range_us, end_us

    def start(self, instant_us: int) -> int:
        """Return the earliest start of the instances that meet at an instant."""
        bounds = (self.bounds(side, instant_us)[0] for side in range(len(self.windows)))
        return min(start for start in bounds if start is not None)


def join_order(shape: JoinShape) -> tuple[int, ...]:
    """Order the inputs: a window that moves first, then always one that is tied to those before.

    Windows that move go before landmarks and tables of the same ties, because they are smaller.
    """
    moving = [isinstance(window, PeriodicWindow) for window in shape.windows]
    order = [moving.index(True)]
    while len(order) < len(shape.windows):
        bound = {v for side in order for v in shape.variables_of(side)}
        rest = [side for side in range(len(shape.windows)) if side not in order]
        tied = [side for side in rest if bound & {*shape.variables_of(side)}]
        order.append(min(tied, key=lambda side: (not moving[side], side)))
    return tuple(order)


def join_query(emit: Emit) -> JoinQuery:
    """Return the query that an emit over a join answers."""
    join = emit.inputs[0]
    if not isinstance(join, Join):
        raise InternalError(f"query {emit.query!r} is no join")
    inputs = tuple(
        JoinInput(s.scan.source, s.alias, s.scan.time, s.window, s.scan.where, s.scan.watermark_us)
        for s in join.sides
    )
    return JoinQuery(emit.query, inputs, join.on, join.keys, emit.outputs, emit.window_columns)
