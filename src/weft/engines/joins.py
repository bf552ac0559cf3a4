"""What engines know of a join before they read a row: types of results and of equalities."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weft.cost.joins.tuples import SideLoad
from weft.cost.occupancy import keys_behind
from weft.engines.kinds import kind_of, wider_type
from weft.engines.schema import call_type, check_filter, expression_type, time_type
from weft.errors import InternalError, QueryError
from weft.expression import column
from weft.frames import in_microseconds
from weft.plan.joins import JOINT, JoinShape, merged_name
from weft.query import JoinQuery
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.query import Workload


def join_schema(query: JoinQuery, sources: Mapping[str, pa.Schema]) -> pa.Schema:
    """Return the columns of a join's result over sources of these schemas, with their types."""
    shape = JoinShape.of(query)
    schemas = [sources[i.source] for i in query.inputs]
    for side, schema in zip(query.inputs, schemas, strict=True):
        check_filter(side.where, schema)
    variable_types(query, sources)
    merged = match_schema(shape, schemas)
    label, start, end = query.window_columns
    instant = _instant_type(query, schemas)
    names = [name for name, _ in query.keys]
    return pa.schema(
        [
            *(
                pa.field(name, expression_type(key.text, schemas[key.side]))
                for name, key in zip(names, shape.keys, strict=True)
            ),
            pa.field(label, pa.string()),
            pa.field(start, instant),
            pa.field(end, instant),
            *(
                pa.field(alias, call_type(call, merged if side == JOINT else schemas[side]))
                for (alias, _), (side, call) in zip(query.aggs, shape.calls, strict=True)
            ),
        ]
    )


def match_schema(shape: JoinShape, schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return the columns that aggregates over several inputs read, of all inputs side by side."""
    return pa.schema(
        [
            pa.field(merged_name(shape.aliases[side], name), schema.field(name).type)
            for side, schema in enumerate(schemas)
            for name in shape.carried_columns(side)
        ]
    )


def _instant_type(query: JoinQuery, schemas: list[pa.Schema]) -> pa.DataType:
    """The bounds of a result are times of the first stream that moves."""
    for side, schema in zip(query.inputs, schemas, strict=True):
        if isinstance(side.window, PeriodicWindow):
            if side.time is None:
                raise QueryError(
                    f"the event time of {side.alias} is not known", hint="name it: TIMESTAMP BY ..."
                )
            return time_type(schema.field(side.time).type, side.time)
    raise InternalError(f"join {query.name!r} has no window that moves")


def variable_types(query: JoinQuery, sources: Mapping[str, pa.Schema]) -> tuple[pa.DataType, ...]:
    """Return the type in which the columns of each variable are compared, or say why none is."""
    shape = JoinShape.of(query)
    found: list[pa.DataType] = []
    for variable in shape.variables:
        typed = [
            (f"{side.alias}.{column(name)}", expression_type(name, sources[side.source]))
            for side, names in zip(query.inputs, variable, strict=True)
            for name in names
        ]
        (first, known), *rest = typed
        for name, type in rest:
            if not _comparable(known, type):
                raise QueryError(
                    f"{first} is of type {known} and {name} of type {type}, which are never equal",
                    hint="join on columns of one kind, or cast one in a view of the table",
                )
        found.append(reduce(_wider, (type for _, type in typed)))
    return tuple(found)


def _comparable(a: pa.DataType, b: pa.DataType) -> bool:
    if pa.types.is_null(a) or pa.types.is_null(b) or a == b:
        return True
    if pa.types.is_timestamp(a) and pa.types.is_timestamp(b):
        return (a.tz is None) == (b.tz is None)
    return kind_of(a) == kind_of(b) != "other"


def _wider(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    if pa.types.is_null(a) or pa.types.is_null(b):
        return b if pa.types.is_null(a) else a
    wider = wider_type(a, b)
    if wider is None:
        raise InternalError(f"{a} and {b} have no common type")
    return wider


def loads_of_joins(
    workload: Workload, tables: Mapping[str, Any]
) -> dict[str, tuple[SideLoad, ...]]:
    """Measure the inputs of all joins over Arrow tables, where nobody says what they bring."""
    joins = [query for query in workload if isinstance(query, JoinQuery)]
    return {
        query.name: measured_loads(query, tables)
        for query in joins
        if all(isinstance(tables[given.source], pa.Table) for given in query.inputs)
    }


def measured_loads(query: JoinQuery, tables: Mapping[str, pa.Table]) -> tuple[SideLoad, ...]:
    """Measure what the inputs of a join bring: rates, window sizes, groups and join values.

    >>> from weft.parsing import parse
    >>> (query,) = parse('''SELECT COUNT(*) AS n
    ...     FROM a TIMESTAMP BY ts [RANGE 4 SECONDS SLIDE 1 SECOND], b WHERE a.k = b.k''')
    >>> rows = pa.table({"ts": [0, 1_000_000, 2_000_000], "k": [1, 1, 2]})
    >>> measured_loads(query, {"a": rows, "b": rows})[0]
    SideLoad(rate=1.0, window_tuples=3.0, groups=1.0, join_values=2.0, at_a_time=2.0)

    A column that is grouped by and joined on counts once.

    >>> (query,) = parse('''SELECT a.k, COUNT(*) AS n
    ...     FROM a TIMESTAMP BY ts [RANGE 4 SECONDS SLIDE 1 SECOND], b
    ...     WHERE a.k = b.k GROUP BY a.k''')
    >>> measured_loads(query, {"a": rows, "b": rows})[0]
    SideLoad(rate=1.0, window_tuples=3.0, groups=2.0, join_values=2.0, at_a_time=2.0)
    """
    shape = JoinShape.of(query)
    loads = []
    for side, given in enumerate(query.inputs):
        table = tables[given.source]
        known = {column(name): name for name in table.column_names}
        groups = [known[k.text] for k in shape.keys if k.side == side and k.text in known]
        groups += shape.carried_columns(side)
        joined = [known[name] for name in shape.join_columns(side) if name in known]
        rate = 0.0 if given.time is None else _rate(table, given.time)
        held, at_a_time = float(table.num_rows), 0.0
        if isinstance(given.window, PeriodicWindow):
            assert given.time is not None
            held = min(rate * given.window.range_us / 1e6, held)
            at_a_time = _at_a_time(table, [*groups, *joined], given.time, given.window.slide_us)
        values = _distinct(table, joined)
        loads.append(SideLoad(rate, max(held, 1.0), _distinct(table, groups), values, at_a_time))
    return tuple(loads)


def _at_a_time(table: pa.Table, names: list[str], time: str, slide_us: int) -> float:
    """Tell how many values there are within a slide, on average: those of a stream come and go."""
    import pyarrow.compute as pc

    times = in_microseconds(table[time]).cast(pa.int64(), safe=False)
    slides = pc.floor(pc.divide(times.cast(pa.float64(), safe=False), float(slide_us)))
    known = dict.fromkeys(names)
    keyed = table.select(list(known)).rename_columns([f"c{at}" for at in range(len(known))])
    cut = keyed.append_column("slide", slides)
    found = _distinct(cut, ["slide"])
    present = _distinct(cut, cut.column_names) / found
    return keys_behind(present, table.num_rows / found, _distinct(table, names))


def _rate(table: pa.Table, time: str) -> float:
    """Events per second, or one where all have the same time."""
    import pyarrow.compute as pc

    times = in_microseconds(table[time]).cast(pa.int64(), safe=False)
    first, last = pc.min(times).as_py() or 0, pc.max(times).as_py() or 0
    return (table.num_rows - 1) * 1e6 / (last - first) if last > first else 1.0


def _distinct(table: pa.Table, names: list[str]) -> float:
    if not names or not table.num_rows:
        return 1.0
    each = list(dict.fromkeys(names))
    return float(table.select(each).group_by(each).aggregate([]).num_rows)
