"""The local engine's operator inside Spark executors: described on the driver, opened there.

A scope of a plan, the schema of its events, custom aggregates and user-defined windows become
bytes. An executor opens them and feeds Arrow batches; what closes comes back as rows of one
schema for all queries of the scope: `node`, keys, `start`, `end`, and a column per aggregate.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle

from weft.aggregates.base import add_custom, aggregate_function, is_built_in, monoid
from weft.engines.local.engine import types_of
from weft.engines.local.operator import ScopeOperator
from weft.engines.local.state.custom_partials import NO_PICKLES, Trust, check_plain
from weft.engines.local.windows.events import read_scan
from weft.engines.local.windows.timed_plan import is_timed
from weft.engines.schema import call_type, expression_type
from weft.engines.spark.columnar.pickles import dumped
from weft.engines.spark.columnar.user_code import Code, load_code, user_windows
from weft.engines.spark.common_rows import matching
from weft.engines.spark.sql.fan_out import NODE, START
from weft.errors import DataError, QueryError
from weft.plan import Emit, Node, Roll
from weft.plan.custom_json import customs_to_json, find_customs
from weft.plan.node_json import nodes_from_json, nodes_to_json
from weft.plan.nodes import scan_below, topological
from weft.window.user import place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from weft.aggregates import AggregateCall, AggregateFunction, Monoid
    from weft.engines.local.output.closed import Closed
    from weft.engines.local.windows.close import Types
    from weft.window import Window

END = "end"


@dataclass(frozen=True)
class HostedScope:
    """What an executor needs to run the operator of one scope.

    `emits` have the same scan and keys; `source` is the schema of the batches that will come.
    """

    emits: tuple[Emit, ...]
    source: pa.Schema

    @cached_property
    def calls(self) -> tuple[AggregateCall, ...]:
        """The aggregates asked by any query, each once: those of the columns after `end`."""
        return tuple(dict.fromkeys(call for emit in self.emits for _, call in emit.outputs))

    @cached_property
    def output(self) -> pa.Schema:
        """The schema of rows: the number of the emit, keys, bounds in microseconds, aggregates."""
        keys = [expression_type(text, self.source) for _, text in self.emits[0].keys]
        values = [result_type(call, self.source) for call in self.calls]
        return pa.schema(
            [
                pa.field(NODE, pa.int32()),
                *(pa.field(f"k{i}", type) for i, type in enumerate(keys)),
                pa.field(START, pa.int64()),
                pa.field(END, pa.int64()),
                *(pa.field(f"v{i}", type) for i, type in enumerate(values)),
            ]
        )

    def to_json(self) -> dict[str, Any]:
        """Describe the scope without any code: windows and aggregates of users are named."""
        nodes = topological(self.emits)
        source = base64.b64encode(self.source.serialize().to_pybytes()).decode()
        return {
            "custom": customs_to_json(nodes),
            "windows": sorted({place_of(type(window)) for window in user_windows(nodes)}),
            "nodes": nodes_to_json(nodes),
            "source": source,
        }

    @staticmethod
    def from_json(told: Mapping[str, Any], code: Code = ()) -> HostedScope:
        """Read a description; what it names is in `code`, or known or importable here."""
        load_code(code, {*told["custom"], *told["windows"]})
        find_customs(told["custom"])
        nodes = nodes_from_json(told["nodes"])
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(told["source"])))
        return HostedScope(tuple(node for node in nodes if isinstance(node, Emit)), schema)

    def check_kept(self, trust: Trust) -> None:
        """Refuse custom aggregates whose partials no state can hold, before there is one."""
        check_partials_kept(self.calls, self.source, trust)

    def dump(self) -> bytes:
        """Write the description; user-defined windows and aggregates go along by value.

        It is part of a closure, from a driver to its executors, and never a file.
        """
        nodes = topological(self.emits)
        described = (_packed(nodes), len(self.emits), self.source, tuple(customs_of(self.calls)))
        return dumped(described)

    @staticmethod
    def load(described: bytes) -> HostedScope:
        """Read a description, and make its custom aggregates known in this process."""
        packed, emits, source, customs = cloudpickle.loads(described)
        for own, function in customs:
            add_custom(own, function)
        nodes = _unpacked(packed)
        found = tuple(node for node in nodes if isinstance(node, Emit))
        assert len(found) == emits
        return HostedScope(found, source)

    def open(self) -> Host:
        """Make a fresh operator."""
        scan = scan_below(self.emits[0])
        nodes = topological(self.emits)
        operator = ScopeOperator.of(scan, self.emits[0].keys, nodes, self.emits)
        return Host(self, operator, types_of(self.emits, self.source))

    def reopen(self, chunks: Mapping[str, bytes], trust: Trust = NO_PICKLES) -> Host:
        """Make the operator again whose state these chunks are."""
        scan, keys, nodes = scan_below(self.emits[0]), self.emits[0].keys, topological(self.emits)
        operator = ScopeOperator.restored(scan, keys, nodes, self.emits, chunks, trust)
        return Host(self, operator, types_of(self.emits, self.source))

    def taking_over(self, before: Host, latest_us: int) -> Host:
        """Make an operator that goes on from another plan's; no event before was after `latest_us`.

        It keeps the slices that both plans cut alike; others start with the next events.
        """
        from weft.engines.local.state.takeover import take_over

        host = self.open()
        take_over(host.operator, before.operator, before.operator.watermark_us, latest_us)
        return host


class Host:
    """An operator at work: batches in, rows of closed windows out."""

    def __init__(self, scope: HostedScope, operator: ScopeOperator, types: Types) -> None:
        self.operator = operator
        self._scope, self._types = scope, types
        numbers: dict[str, list[int]] = {}
        for number, emit in enumerate(scope.emits):
            numbers.setdefault(emit.query, []).append(number)
        self._numbers = {query: np.array(own, np.int32) for query, own in numbers.items()}
        self._outputs = {e.query: [call for _, call in e.outputs] for e in scope.emits}

    def process(self, batch: pa.Table) -> int | None:
        """Take events and return their latest time; an error leaves the state as it was."""
        timed = read_scan(self.operator.scan, batch)
        self.operator.process(timed)
        return int(timed.times_us.max()) if timed.times_us.size else None

    def advance(self, to_us: int | None) -> pa.Table:
        """Move the watermark, None to the end of time, and return the rows that closed."""
        closed = self.operator.advance(to_us, self._types)
        parts = [self._rows(one) for one in closed if one.keys.size]
        return pa.concat_tables(parts) if parts else self._scope.output.empty_table()

    @property
    def is_empty(self) -> bool:
        """True when nothing is open that a later watermark could close."""
        return self.operator.nbytes == 0

    def changed(self, events: pa.Table) -> pa.Table:
        """Return open windows as they are now, of those that these events changed.

        Windows that events delimit may still merge, and are left out until they close.
        """
        current = Host(self._scope, self.operator.saved(), self._types).advance(None)
        known = [n for n, emit in enumerate(self._scope.emits) if is_timed(_window_of(emit))]
        current = current.filter(pc.is_in(current[NODE], pa.array(known, pa.int32())))
        touched = self._scope.open()
        touched.process(events)
        identity = current.column_names[: current.column_names.index(END) + 1]
        return matching(current, touched.advance(None), identity)

    def _rows(self, closed: Closed) -> pa.Table:
        schema, rows = self._scope.output, closed.keys.size
        own = dict(zip(self._outputs[closed.query], closed.values, strict=True))
        values = [own.get(call) for call in self._scope.calls]
        columns: list[Any] = [
            pa.array(self._numbers[closed.query][closed.places]),
            *self.operator.codes.decode(closed.keys),
            pa.array(closed.starts_us),
            pa.array(closed.ends_us),
            *(pa.nulls(rows) if value is None else value for value in values),
        ]
        pairs = zip(columns, schema, strict=True)
        return pa.table([_typed(column, field.type) for column, field in pairs], schema=schema)


def _window_of(emit: Emit) -> Window:
    roll = emit.inputs[0]  # all Rolls of an emit are over one window
    assert isinstance(roll, Roll)
    return roll.window


def _typed(column: Any, type: pa.DataType) -> Any:
    if column.type == type:
        return column
    try:
        return column.cast(type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataError(
            f"a result of type {column.type} does not fit the column's type {type}",
            hint="let the `lower` of a custom aggregate return one type, whatever the partial",
        ) from None


def _packed(nodes: Sequence[Node]) -> list[tuple[type[Node], tuple[object, ...]]]:
    """Write nodes one by one, inputs as places in the list: a chain of thousands is no deeper."""
    at = {node: _Place(i) for i, node in enumerate(nodes)}

    def placed(value: Any) -> object:
        if isinstance(value, Node):
            return at[value]
        if isinstance(value, tuple) and value and isinstance(value[0], Node):
            return tuple(at[one] for one in value)
        return value

    return [
        (type(node), tuple(placed(getattr(node, name)) for name in node.__match_args__))
        for node in nodes
    ]


class _Place(int):
    """The place of a node in the list."""


def _unpacked(packed: Iterable[tuple[Any, tuple[object, ...]]]) -> list[Node]:
    nodes: list[Node] = []

    def read(value: object) -> object:
        if isinstance(value, _Place):
            return nodes[value]
        if isinstance(value, tuple) and value and isinstance(value[0], _Place):
            return tuple(nodes[place] for place in value)
        return value

    for kind, values in packed:
        nodes.append(kind(*map(read, values)))
    return nodes


def customs_of(calls: Iterable[AggregateCall]) -> Iterable[tuple[Monoid, AggregateFunction]]:
    """List the user's own aggregates among the calls, for executors to know them too."""
    for name in dict.fromkeys(call.function for call in calls):
        if not is_built_in(name):
            yield monoid(name), aggregate_function(name)


def result_type(call: AggregateCall, source: pa.Schema) -> pa.DataType:
    """Return the type of a result; that of a custom aggregate is tried out on a plain value."""
    type = call_type(call, source)
    if not pa.types.is_null(type) or is_built_in(call.function):
        return type
    lifted = _lifted(call, source)
    try:
        found: pa.DataType = pa.array([call.lower((lifted,))]).type
    except Exception as reason:  # noqa: BLE001  # the user's own functions may raise anything
        raise _untried(call, lifted, reason) from None
    return found


def check_partials_kept(calls: Iterable[AggregateCall], source: pa.Schema, trust: Trust) -> None:
    """Refuse custom aggregates whose partials no state can hold."""
    for call in calls:
        if not is_built_in(call.function):
            check_plain((monoid(call.function).identity, _lifted(call, source)), trust)


def _lifted(call: AggregateCall, source: pa.Schema) -> Any:
    """Lift a plain value of the type that a custom aggregate will get."""
    arguments: tuple[Any, ...] = ()
    try:
        arguments = tuple(_example(expression_type(text, source)) for text in call.args)
        return monoid(call.function).lift(arguments, 0)
    except Exception as reason:  # noqa: BLE001  # the user's own functions may raise anything
        raise _untried(call, arguments, reason) from None


def _untried(call: AggregateCall, value: object, reason: Exception) -> QueryError:
    return QueryError(
        f"the type of {call} is not known: on {value} its functions fail: {reason}",
        hint="let lift and lower take plain values of the column's type, such as 1",
    )


def _example(type: pa.DataType) -> Any:
    """Return a value of a type: 1, or the nearest there is to it.

    >>> _example(pa.decimal128(4, 2)), _example(pa.date32()), _example(pa.bool_())
    (Decimal('1.00'), datetime.date(1970, 1, 2), True)
    """
    if pa.types.is_temporal(type):
        ticks = pa.array([1], pa.int32() if type.bit_width == 32 else pa.int64())
        return ticks.cast(type)[0].as_py()
    return pa.array(["1"]).cast(type)[0].as_py()
