"""Statements whose windows end at events, over Arrow tables: rolled or as of, then selected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.aggregates import AggregateCall
from weft.engines.local.anchors.order import GREATEST, LEAST, shifted
from weft.engines.local.expressions.evaluate import evaluate
from weft.engines.local.values.arrow import pc
from weft.engines.local.values.frame import Frame as Columns
from weft.engines.local.windows.events import read_times
from weft.engines.schema import check_filter, expression_type, time_type
from weft.errors import QueryError, suggest
from weft.expression import column, columns_of
from weft.features.runs import bind_features, plan_bound, run_plan
from weft.frames import from_arrow, kind_of, to_arrow
from weft.parsing.anchored import OverStatement
from weft.plan.anchors import EventFeatures, FeatureQuery
from weft.time import format_us
from weft.window.trailing import Trailing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.engines.local.values.arrow import Array
    from weft.parsing.anchored import OverCall, SlidingStatement
    from weft.plan.anchors import FeaturePlan
    from weft.window.frame import Order
    from weft.window.trailing import AnchoredWindow

_ROWS, _POINTS, _TIME, _PRESENT = "rows", "points", "weft_time", "weft_present"
# Where rows without a value stand: windows of values do not go so far.
_FIRST, _LAST = LEAST + 1, GREATEST - 1
_PEERS = Trailing(1)  # of rows without a value: all of them


def run_anchored(
    statement: OverStatement | SlidingStatement, tables: Mapping[str, Any], engine: str
) -> Any:
    """Return the rows of a statement, in the kind of its table."""
    table = _table(statement, tables)
    if isinstance(statement, OverStatement):
        found = _run_over(statement, table, engine)
    else:
        found = _run_sliding(statement, table, engine)
    return from_arrow(found, kind_of(tables[statement.source]))


def plans_of(
    statement: OverStatement | SlidingStatement, tables: Mapping[str, Any], engine: str
) -> tuple[FeaturePlan, ...]:
    """Return the plans of a statement over tables; no feature is computed."""
    table = _table(statement, tables)
    if isinstance(statement, OverStatement):
        queries = [_rolling(table, calls)[:2] for calls in _by_order(statement)]
    else:
        queries = [_as_of(statement, table)]
    return tuple(plan_bound(bind_features(query, own), own, engine) for query, own in queries)


def _table(statement: OverStatement | SlidingStatement, tables: Mapping[str, Any]) -> pa.Table:
    """Return the rows that a statement reads and keeps."""
    if statement.source not in tables:
        hint = suggest(statement.source, list(tables), f"the tables are {', '.join(tables)}")
        raise QueryError(f"there is no table {statement.source!r}", hint=hint)
    table = to_arrow(tables[statement.source])
    if statement.where is None:
        return table
    check_filter(statement.where, table.schema)
    kept = _evaluated(statement.where, table).cast(pa.bool_())
    return table.filter(pc.fill_null(kept, False))


def _run_over(statement: OverStatement, table: pa.Table, engine: str) -> pa.Table:
    """Compute the calls of one order after another, then the items over their columns."""
    rows = table
    for calls in _by_order(statement):
        query, own, peers = _rolling(table, calls)
        found = _features(query, own, engine)
        edge = _FIRST if calls[0].nulls_first else _LAST
        without = pc.equal(own[_ROWS].column(_TIME), edge)
        for call in calls:
            values = found.column(call.column)
            if call.column in peers:
                values = pc.if_else(without, found.column(peers[call.column]), values)
            rows = rows.append_column(call.column, values)
    items: list[tuple[str, str]] = []
    for item in statement.items:
        items += [(name, column(name)) for name in table.column_names] if item is None else [item]
    arrays = [_evaluated(text, rows) for _, text in items]
    return pa.Table.from_arrays(arrays, names=[name for name, _ in items])


def _by_order(statement: OverStatement) -> list[list[OverCall]]:
    """Bring those calls together that share their keys and their order: one sort for all."""
    groups: dict[tuple[object, ...], list[OverCall]] = {}
    for call in statement.calls:
        by = (call.keys, call.order, call.descends, call.nulls_first)
        groups.setdefault(by, []).append(call)
    return list(groups.values())


def _rolling(
    table: pa.Table, calls: Sequence[OverCall]
) -> tuple[FeatureQuery, dict[str, pa.Table], dict[str, str]]:
    """Return the query of calls of one order, its table, and the columns of peers."""
    first = calls[0]
    order = _order(expression_type(first.order, table.schema))
    windows = {call.column: call.frame.window(order, "UTC") for call in calls}
    edge = _FIRST if first.nulls_first else _LAST
    times = _instants(_evaluated(first.order, table), edge, descends=first.descends)
    outputs = [(call.column, windows[call.column], call.call) for call in calls]
    # Rows without a value see one another, wherever their frame is to end.
    peers = {c.column: f"{c.column}_peers" for c in calls if _lags(windows[c.column])}
    outputs += [(peers[c.column], _PEERS, c.call) for c in calls if c.column in peers]
    keys = tuple((text, text) for text in dict.fromkeys(first.keys))
    asked = EventFeatures(_ROWS, _TIME, keys, None, tuple(outputs))
    query = FeatureQuery(_ROWS, _TIME, rolling=True, inputs=(asked,))
    return query, {_ROWS: table.append_column(_TIME, times)}, peers


def _features(query: FeatureQuery, tables: dict[str, pa.Table], engine: str) -> pa.Table:
    plan = plan_bound(bind_features(query, tables), tables, engine)
    found: pa.Table = run_plan(plan, tables, tables, engine)
    return found


def _as_of(
    statement: SlidingStatement, table: pa.Table
) -> tuple[FeatureQuery, dict[str, pa.Table]]:
    window, time = statement.window, _time_of(statement, table)
    outputs = [(name, window, call) for name, call in statement.aggs.items()]
    outputs.append((_PRESENT, window, AggregateCall("count")))
    asked = EventFeatures(_ROWS, time, statement.keys, None, tuple(outputs))
    query = FeatureQuery(_POINTS, _TIME, rolling=False, inputs=(asked,))
    return query, {_POINTS: _changes(statement, table, time), _ROWS: table}


def _run_sliding(statement: SlidingStatement, table: pa.Table, engine: str) -> pa.Table:
    """Aggregate as of every instant at which the window of a key changes."""
    query, tables = _as_of(statement, table)
    found = _features(query, tables, engine)
    found = found.filter(pc.greater(found.column(_PRESENT), 0))
    names = [name for name, _ in statement.keys]
    found = found.sort_by([(name, "ascending") for name in (_TIME, *names)])
    time = _time_of(statement, table)
    bounds = time_type(table.schema.field(time).type, time)
    at, range_us = found.column(_TIME).to_numpy(), statement.window.range_us
    label, begin, end = statement.window_columns
    columns: dict[str, Any] = {name: found.column(name) for name in names}
    columns |= {
        label: pa.array([f"sliding {format_us(range_us)}"] * at.size, pa.string()),
        begin: pa.array(shifted(at, -range_us)).cast(bounds),
        end: pa.array(at).cast(bounds),
    }
    columns |= {name: found.column(name) for name in statement.aggs}
    return pa.table(columns)


def _evaluated(text: str, table: pa.Table) -> Array:
    """Return the values of an expression over a table, one for each row."""
    values = evaluate(text, Columns.of(table, columns_of(text)))
    if len(values) == table.num_rows:
        return values
    # An expression without a column has one value for all rows.
    single: Array = pa.repeat(values[0], table.num_rows)
    return single


def _order(type: pa.DataType) -> Order:
    if pa.types.is_timestamp(type):
        return "instant" if type.tz else "local instant"
    if pa.types.is_date(type):
        return "day"
    if pa.types.is_integer(type):
        return "number"
    raise QueryError(
        f"rows cannot be ordered by values of type {type} before a frame",
        hint="order them by a timestamp, a date or an integer",
    )


def _instants(values: Array, edge: int, *, descends: bool) -> Array:
    times, valid = read_times(values, "ORDER BY")
    turned = -times if descends else times
    found: Array = pa.array(turned if valid is None else np.where(valid, turned, edge))
    return found


def _lags(window: AnchoredWindow) -> bool:
    return isinstance(window, Trailing) and window.lag_us > 0


def _time_of(statement: SlidingStatement, table: pa.Table) -> str:
    return statement.time_among([f.name for f in table.schema if pa.types.is_timestamp(f.type)])


def _changes(statement: SlidingStatement, table: pa.Table, time: str) -> pa.Table:
    """Return each key with each instant at which events come to its window, or leave it."""
    times, valid = read_times(Columns.of(table, [time]).columns[time], time)
    keys = {name: _evaluated(text, table) for name, text in statement.keys}
    come = pa.table({**keys, _TIME: pa.array(times)})
    if valid is not None:
        come = come.filter(pa.array(valid))
    parts = [come]
    if statement.departures:
        left = shifted(come.column(_TIME).to_numpy(), statement.window.range_us)
        parts.append(come.set_column(come.num_columns - 1, _TIME, pa.array(left)))
    return pa.concat_tables(parts).group_by(come.column_names).aggregate([])
