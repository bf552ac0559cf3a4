"""The oracle of joins: per instant, the windows' contents, matched, grouped, aggregated.

No plan, no early aggregation, no index: every row of every input is tried with every other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

from weft.aggregates.base import repeated
from weft.aggregates.distinct import canonical
from weft.engines.reference.events import Key, Rows, time_us
from weft.engines.reference.instances import Event
from weft.engines.reference.oracle import ResultRow, aggregate, fold, ordered
from weft.engines.scalar.casts import converter
from weft.engines.scalar.expressions import compiled
from weft.engines.scalar.rows import EventRow, guessed_types
from weft.errors import InternalError
from weft.expression import column
from weft.plan import Join
from weft.plan.joins import JOINT, JoinShape, join_query, merged_name
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from weft.aggregates import Partial
    from weft.plan import Emit
    from weft.query import JoinInput, JoinQuery

Values = tuple[Any, ...]  # of the join's variables; NOT_THERE where an input has none
NOT_THERE = object()


@dataclass(frozen=True, slots=True)
class Matchable:
    """What can be matched: it has a part of the key, and values of the join's variables."""

    key: dict[int, Any]  # by its place in the query's keys
    values: Values
    carried: EventRow  # what aggregates over several inputs read of it


Row = TypeVar("Row", bound=Matchable)


@dataclass(frozen=True, slots=True)
class Tuple(Matchable):
    """One row of an input that passes its filter, with its event."""

    event: Event


def evaluate_join(
    query: JoinQuery, sources: Mapping[str, Rows], types: Sequence[pa.DataType] | None = None
) -> list[ResultRow]:
    """Return all results of a join, in (end, start, key) order.

    `types` are those in which the variables are compared; without them, values as they are.

    >>> from weft.parsing import parse
    >>> (query,) = parse('''SELECT COUNT(*) AS n, SUM(b.x) AS total
    ...     FROM a TIMESTAMP BY ts [RANGE 4 MICROSECONDS SLIDE 2 MICROSECONDS],
    ...          b TIMESTAMP BY ts [RANGE 2 MICROSECONDS SLIDE 2 MICROSECONDS]
    ...     WHERE a.k = b.k''')
    >>> left = [{"ts": 0, "k": 1}, {"ts": 1, "k": 1}, {"ts": 2, "k": 2}]
    >>> right = [{"ts": 1, "k": 1, "x": 10}, {"ts": 3, "k": 1, "x": 5}]
    >>> for row in evaluate_join(query, {"a": left, "b": right}):
    ...     print(row.start_us, row.end_us, row.values)
    -2 2 (2, 20)
    0 4 (2, 10)
    """
    shape = JoinShape.of(query)
    results: list[ResultRow] = []
    for instant, inside in _contents(query, shape, sources, types):
        groups: dict[Key, list[tuple[Tuple, ...]]] = {}
        for match in matches(inside):
            groups.setdefault(_key(shape, match), []).append(match)
        start = shape.instants.start(instant)
        for key, found in groups.items():
            together = [_side_by_side(match) for match in found]
            values = tuple(
                aggregate(
                    call,
                    together if side == JOINT else [match[side].event for match in found],
                )
                for side, call in shape.calls
            )
            results.append(ResultRow(key, query.label, start, instant, values))
    return ordered(results, [query.label])


def read_side(
    shape: JoinShape,
    side: int,
    given: JoinInput,
    rows: Rows,
    types: Sequence[pa.DataType] | None = None,
) -> list[Tuple]:
    """Filter the rows of an input; drop those without a time, and those with a NULL to join on."""
    keep = compiled(given.where) if given.where is not None else None
    keys = {at: compiled(o.text) for at, o in enumerate(shape.keys) if o.side == side}
    found: list[Tuple] = []
    for row in rows:
        if keep is not None and keep(row) is not True:
            continue
        at_us: int | None = 0
        if given.window is not None:
            if given.time is None:
                raise InternalError(f"the time column of {given.source!r} was not looked up")
            at_us = time_us(row[given.time], given.time)
        values = _values(shape, side, row, types)
        if at_us is None or values is None:
            continue
        own = row if isinstance(row, EventRow) else dict(row)
        key = {at: canonical(read(row)) for at, read in keys.items()}
        found.append(Tuple(key, values, _carried(shape, side, row), Event(at_us, own)))
    return sorted(found, key=lambda t: t.event.time_us)


def _carried(shape: JoinShape, side: int, row: Mapping[str, Any]) -> EventRow:
    """Pick the columns that aggregates over several inputs read, named as in a match."""
    names = {name: merged_name(shape.aliases[side], name) for name in shape.carried_columns(side)}
    types = row.types if isinstance(row, EventRow) else dict(guessed_types(row, names))
    return EventRow(
        {merged: row[name] for name, merged in names.items()},
        {merged: types[name] for name, merged in names.items()},
    )


def _key(shape: JoinShape, match: Sequence[Matchable]) -> Key:
    parts = {at: value for row in match for at, value in row.key.items()}
    return tuple(parts[at] for at in range(len(shape.keys)))


def _side_by_side(match: Sequence[Matchable]) -> Event:
    """Show a match as one event, of which no aggregate may ask the time."""
    merged = EventRow({}, {})
    for row in match:
        merged.update(row.carried)
        merged.types = {**merged.types, **row.carried.types}
    return Event(0, merged)


def _values(
    shape: JoinShape, side: int, row: Mapping[str, Any], types: Sequence[pa.DataType] | None
) -> Values | None:
    """Read the variables of a row; None where one is NULL, or its columns differ."""
    values: list[Any] = []
    for at, variable in enumerate(shape.variables):
        own = [_value(row, name, None if types is None else types[at]) for name in variable[side]]
        if any(value is None for value in own) or len(set(own)) > 1:
            return None
        values.append(own[0] if own else NOT_THERE)
    return tuple(values)


def _value(row: Mapping[str, Any], name: str, type: pa.DataType | None) -> Any:
    value = compiled(name)(row)
    if type is not None and isinstance(row, EventRow):
        known = next(t for n, t in row.types.items() if column(n) == name)
        convert = converter(known, type)
        value = value if convert is None else convert(value)
    return canonical(value)


def _contents(
    query: JoinQuery,
    shape: JoinShape,
    sources: Mapping[str, Rows],
    types: Sequence[pa.DataType] | None,
) -> Iterator[tuple[int, list[list[Tuple]]]]:
    """Yield every instant, with what all inputs have inside their windows then."""
    contents = [
        read_side(shape, side, given, sources[given.source], types)
        for side, given in enumerate(query.inputs)
    ]
    for instant in _instants(shape, contents):
        yield instant, [_content(shape, side, rows, instant) for side, rows in enumerate(contents)]


def _instants(shape: JoinShape, contents: Sequence[Sequence[Tuple]]) -> list[int]:
    """List the instants at which the first stream that moves has an instance with events."""
    side, window = next(
        (i, w) for i, w in enumerate(shape.windows) if isinstance(w, PeriodicWindow)
    )
    ends = {end for row in contents[side] for _, end in window.instances(row.event.time_us)}
    found = {t for end in ends for t in shape.instants.between(end, end + window.slide_us)}
    return sorted(found)


def _content(shape: JoinShape, side: int, rows: Sequence[Tuple], instant: int) -> list[Tuple]:
    start, end = shape.instants.bounds(side, instant)
    return [
        row
        for row in rows
        if (start is None or start <= row.event.time_us)
        and (end is None or row.event.time_us < end)
    ]


def matches(inside: Sequence[Sequence[Row]]) -> Iterator[tuple[Row, ...]]:
    """Try every row of every input with every other; yield those equal in all variables."""
    partial: list[tuple[Row, ...]] = [()]
    for rows in inside:
        partial = [
            (*before, row)
            for before in partial
            for row in rows
            if all(_agree(other.values, row.values) for other in before)
        ]
    yield from partial


def _agree(a: Values, b: Values) -> bool:
    # NaN equals itself, and there is but one of it.
    return all(
        x is y or x == y or x is NOT_THERE or y is NOT_THERE for x, y in zip(a, b, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Group(Matchable):
    """One row of an aggregation set, or one tuple: what a probe finds, and for how many tuples."""

    count: int
    partials: dict[Partial, Any]


def interpret_join(
    emit: Emit, sources: Mapping[str, Rows], types: Sequence[pa.DataType] | None = None
) -> list[ResultRow]:
    """Evaluate a join as its plan says: early inputs as aggregation sets, coalesced by counts."""
    query, join = join_query(emit), emit.inputs[0]
    assert isinstance(join, Join)
    shape = JoinShape.of(query)
    results: list[ResultRow] = []
    for instant, inside in _contents(query, shape, sources, types):
        sets = [
            aggregation_set(rows, side.partials, early=side.early)
            for rows, side in zip(inside, join.sides, strict=True)
        ]
        start = shape.instants.start(instant)
        for key, known in _coalesced(shape, sets).items():
            values = tuple(
                call.lower(tuple(known[side if p.args else 0, p] for p in call.partials))
                for side, call in shape.calls
            )
            results.append(ResultRow(key, emit.label, start, instant, values))
    return ordered(results, [emit.label])


def aggregation_set(
    rows: Sequence[Tuple], partials: Sequence[Partial], *, early: bool
) -> list[Group]:
    """Group rows by their keys and variables where the input is early; else each stands alone."""
    groups: dict[Any, list[Tuple]] = {}
    for at, row in enumerate(rows):
        apart = tuple(map(canonical, row.carried.values()))
        own = (tuple(row.key.values()), row.values, apart) if early else at
        groups.setdefault(own, []).append(row)
    return [
        Group(
            found[0].key,
            found[0].values,
            found[0].carried,
            len(found),
            {p: fold(p, [row.event for row in found]) for p in partials},
        )
        for found in groups.values()
    ]


def _coalesced(
    shape: JoinShape, inside: Sequence[Sequence[Group]]
) -> dict[Key, dict[tuple[int, Partial], Any]]:
    """Match groups; what one input contributes counts as often as the others have tuples."""
    totals: dict[Key, dict[tuple[int, Partial], Any]] = {}
    for match in matches(inside):
        known = totals.setdefault(_key(shape, match), {})
        tuples = prod(group.count for group in match)
        contributions = [
            ((side, partial), value, tuples // group.count)
            for side, group in enumerate(match)
            for partial, value in group.partials.items()
        ]
        contributions += [
            ((JOINT, partial), fold(partial, [_side_by_side(match)]), tuples)
            for partial in shape.partials_of(JOINT)
        ]
        for owner, value, times in contributions:
            monoid = owner[1].monoid
            often = repeated(monoid, value, times)
            known[owner] = monoid.combine(known.get(owner, monoid.identity), often)
    return totals
