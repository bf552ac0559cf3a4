"""Events as they are sent to executors: expressions computed by Spark, columns by our own names.

The operator then reads plain columns, few of them, and Spark's own evaluation of keys, filters
and arguments holds whatever the strategy. User-defined windows may look at whole events; then
the source's columns go as they are, and the operator evaluates expressions by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, assert_never

from pyspark.sql.types import MapType

from weft.aggregates import AggregateCall, Partial
from weft.engines.spark.columnar.hosted_operator import HostedScope
from weft.engines.spark.native.events import TIME, check_inputs
from weft.engines.spark.session import arrow_schema
from weft.engines.spark.sql.timestamps import micros_of
from weft.engines.spark.versions import VARIANTS
from weft.errors import InternalError
from weft.expression import column
from weft.plan import Emit, Join, Node, Roll, Scan, Slice
from weft.plan.nodes import scan_below
from weft.plan.planned_scope import PlannedScope
from weft.window import CountingWindow, MeasuredWindow, PunctuatedWindow, UserWindow, Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from weft.query import Keys


@dataclass(frozen=True)
class Shipment:
    """The events of a scope on their way to executors, and the scope as it reads them there."""

    scope: PlannedScope
    frame: DataFrame
    keys: tuple[str, ...]  # Spark expressions over the frame; rows of equal keys go together
    time: str  # of the event, in microseconds: an expression over the frame
    time_type: DataType

    @staticmethod
    def of(scope: PlannedScope, source: DataFrame) -> Shipment:
        """Prepare the events that a scope reads; those without a time are dropped."""
        scan = scope.scan
        if scan.time is None:
            raise InternalError(f"the time column of {scan.source!r} was not looked up")
        name = column(scan.time)
        kept = source.where(f"{name} IS NOT NULL")
        if scan.where is not None:
            kept = kept.where(scan.where)
        type = source.schema[scan.time].dataType
        time = micros_of(name, type, scan.time)
        if any(isinstance(n, Roll) and isinstance(n.window, UserWindow) for n in scope.nodes):
            whole = Renaming(scope, {}).scope(replace(scan, where=None))
            return Shipment(whole, kept, tuple(text for _, text in scope.keys), time, type)
        names = {text: f"a{i}" for i, text in enumerate(arguments_of(scope))}
        keys = {f"k{i}": text for i, (_, text) in enumerate(scope.keys)}
        frame = kept.selectExpr(
            *(f"{text} AS {own}" for own, text in keys.items()),
            f"{time} AS {TIME}",
            *(f"{text} AS {own}" for text, own in names.items()),
        )
        types = {text: frame.schema[own].dataType for text, own in names.items()}
        check_inputs(scope.emits, types)
        read = Scan(scan.source, TIME, None, (*keys, *names.values()))
        own = Renaming(scope, names, tuple((k, k) for k in keys)).scope(read)
        return Shipment(own, frame, tuple(keys), TIME, type)

    @cached_property
    def hosted(self) -> HostedScope:
        """The scope as executors run it."""
        return HostedScope(self.scope.emits, arrow_schema(self.frame.schema))

    @property
    def order(self) -> tuple[str, ...]:
        """The expressions by which events come in order: time first, then what breaks ties.

        A DataFrame has no order of its own. Where the order of events of one instant matters,
        their values decide, so that the same events always give the same rows.
        """
        windows = [roll.window for roll in self.scope.nodes if isinstance(roll, Roll)]
        measures = [w.column for w in windows if isinstance(w, MeasuredWindow)]
        ordered = CountingWindow | PunctuatedWindow | UserWindow
        by_order = any(isinstance(w, ordered) for w in windows) or not all(
            p.laws().commutative for p in self.scope.partials
        )
        if not measures and not by_order:
            return (self.time,)
        others = [
            column(field.name)
            for field in self.frame.schema
            if not isinstance(field.dataType, (MapType, *VARIANTS))
        ]
        return tuple(dict.fromkeys((self.time, *measures, *others)))


def arguments_of(scope: PlannedScope) -> list[str]:
    """List the expressions that partials and windows look at, each once."""
    computed = (node for node in scope.nodes if isinstance(node, Slice | Roll))
    found = dict.fromkeys(arg for node in computed for p in node.partials for arg in p.reads)
    for node in scope.nodes:
        if isinstance(node, Roll) and isinstance(node.window, PunctuatedWindow):
            found[node.window.predicate] = None
        elif isinstance(node, Roll) and isinstance(node.window, MeasuredWindow):
            found[node.window.column] = None
    return list(found)


class Renaming:
    """Rewrites the nodes of a scope to read renamed columns; what has no new name stays."""

    def __init__(
        self, scope: PlannedScope, names: dict[str, str], keys: Keys | None = None
    ) -> None:
        self._scope, self._names = scope, names
        self._keys = scope.keys if keys is None else keys

    def scope(self, scan: Scan) -> PlannedScope:
        """Return the scope over another scan."""
        made: dict[Node, Node] = {}
        for node in self._scope.nodes:
            made[node] = scan if isinstance(node, Scan) else self._node(node, made)
        emits = tuple(e for emit in self._scope.emits if isinstance(e := made[emit], Emit))
        return PlannedScope(scan_below(emits[0]), self._keys, emits)

    def _node(self, node: Slice | Roll | Join | Emit, made: dict[Node, Node]) -> Node:
        inputs = tuple(made[feeder] for feeder in node.inputs)
        match node:
            case Slice():
                edges = replace(node.edges, windows=tuple(map(self._window, node.edges.windows)))
                (below,) = inputs
                assert isinstance(below, Scan | Slice)
                return Slice(below, self._keys, edges, self._partials(node.partials))
            case Roll():
                window, partials = self._window(node.window), self._partials(node.partials)
                feeders = tuple(i for i in inputs if isinstance(i, Scan | Slice | Roll))
                return Roll(feeders, window, node.read, self._keys, partials, node.technique)
            case Emit():
                outputs = tuple((alias, self._call(call)) for alias, call in node.outputs)
                rolls = tuple(i for i in inputs if isinstance(i, Roll))
                exists = None if node.exists is None else self._partials((node.exists,))[0]
                return replace(node, inputs=rolls, outputs=outputs, exists=exists)
            case Join():
                raise InternalError("a join reached the columnar strategy")
            case _:
                assert_never(node)

    def _args(self, args: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self._names.get(text, text) for text in args)

    def _partials(self, partials: tuple[Partial, ...]) -> tuple[Partial, ...]:
        """Read what Spark has computed under conditions: values that are NULL elsewhere."""
        return tuple(Partial(p.kind, self._args(p.reads)) for p in partials)

    def _call(self, call: AggregateCall) -> AggregateCall:
        return AggregateCall(call.function, self._args(call.reads), call.parameters)

    def _window(self, window: Window) -> Window:
        match window:
            case PunctuatedWindow():
                return PunctuatedWindow(self._names.get(window.predicate, window.predicate))
            case MeasuredWindow():
                return replace(window, column=self._names.get(window.column, window.column))
            case _:
                return window
