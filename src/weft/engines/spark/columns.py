"""Columns of Spark as keys, filters and aggregates: computed by Spark, known to weft by a name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.aggregates import AggregateCall, aggregate_function
from weft.aggregates.names import aggregate_name
from weft.aggregates.spark_sketches import MERGED_BY
from weft.errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from weft.query import AskedAggregates

    By = Sequence[str | Column] | Mapping[str, str | Column]
    Aggs = AskedAggregates | Sequence[Column] | Mapping[str, AggregateCall | str | Column]


class Asked(NamedTuple):
    """What is left to weft once Spark has computed columns."""

    frame: DataFrame
    by: By
    where: str | None
    aggs: AskedAggregates


def computed(frame: DataFrame, by: By, where: str | Column | None, aggs: Aggs) -> Asked:
    """Filter rows and add keys and arguments where these are columns of Spark's."""
    if where is not None and not isinstance(where, str):
        frame, where = frame.where(where), None
    added: dict[str, Column] = {}
    keys = _keys(frame, by, added)
    calls = _calls(frame, aggs, added)
    return Asked(frame.withColumns(added) if added else frame, keys, where, calls)


def _keys(frame: DataFrame, by: By, added: dict[str, Column]) -> By:
    listed = () if isinstance(by, str) else by.values() if isinstance(by, Mapping) else by
    if all(isinstance(key, str) for key in listed):
        return by
    if not isinstance(by, Mapping):
        # A column without a name of its own has the one that Spark gives it.
        by = {(key if isinstance(key, str) else frame.select(key).columns[0]): key for key in by}
    keys: dict[str, str | Column] = {}
    for name, key in by.items():
        keys[name] = key if isinstance(key, str) else _place(added, "key", key)
    return keys


def _place(added: dict[str, Column], role: str, column: Column) -> str:
    name = f"weft_{role}_{len(added)}"
    added[name] = column
    return name


def _calls(frame: DataFrame, aggs: Aggs, added: dict[str, Column]) -> AskedAggregates:
    if not isinstance(aggs, Mapping):
        if isinstance(aggs, str) or not isinstance(aggs, Sequence):
            return aggs  # which the query refuses
        aggs = {frame.select(call).columns[0]: call for call in aggs}
    own = {name: call for name, call in aggs.items() if isinstance(call, AggregateCall | str)}
    reader = _Reader(added)
    return {name: own[name] if name in own else reader.call(c) for name, c in aggs.items()}  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Reader:
    """Reads aggregates off columns: the function, and arguments that Spark computes before."""

    added: dict[str, Column]
    _known: dict[str, str] = field(default_factory=dict)  # the text of a column -> its place

    def call(self, column: Column) -> AggregateCall | str:
        node = _Node.of(column).without_alias()
        if node.text is not None:
            return node.text
        name = aggregate_name(node.function or "")
        if name is None:
            raise QueryError(
                f"{column} is not an aggregate that weft knows",
                hint="give one by itself, such as F.avg('x'), and compute with the result; or "
                "write the query for weft.sql",
            )
        if node.distinct:
            name = f"{name}_distinct"
        wanted = aggregate_function(name).parameters
        if (node.function or "").casefold() == "count_if":
            counted = _only_if(node.arguments[0].column())
            return AggregateCall("count", (_place(self.added, "argument", counted),))
        columns, numbers = _split(name, node.arguments)
        places = tuple(map(self._argument, columns))
        if name in MERGED_BY:
            return AggregateCall(name, (*places, *(str(int(number)) for number in numbers)))
        if name == "percentile" and any(number != 1 for number in numbers[wanted:]):
            raise QueryError(
                "a percentile of values with frequencies is not computed here",
                hint="leave the frequency out, or write the query for weft.sql",
            )
        return AggregateCall(name, places, numbers[:wanted])

    def _argument(self, node: _Node) -> str:
        column = node.column()
        # Functions of users may look alike and not be; columns of the source that do are.
        if node.named and str(column) in self._known:
            return self._known[str(column)]
        place = _place(self.added, "argument", column)
        if node.named:
            self._known[str(column)] = place
        return place


def _split(name: str, arguments: tuple[_Node, ...]) -> tuple[tuple[_Node, ...], tuple[float, ...]]:
    """Tell columns from the constants behind them, and read those as numbers."""
    if name == "count":
        return tuple(a for a in arguments if not a.constant), ()
    asked = [a for a in arguments if not a.constant]
    columns = arguments[: max(len(asked), 1)]
    rest = arguments[len(columns) :]
    if name in ("first", "last") and any(not flag.value() for flag in rest):
        raise QueryError(
            f"{name} skips NULL values here; it cannot respect them",
            hint=f"say so, as in F.{name}(x, ignorenulls=True)",
        )
    if name in ("first", "last", "mode"):
        return columns, ()
    return columns, tuple(constant.number() for constant in rest)


def _only_if(condition: Column) -> Column:
    from pyspark.sql import functions as F

    return F.when(condition, F.lit(1))


class _Node(ABC):
    """A node of a column's tree, in this process or in a client of Spark Connect."""

    function: str | None = None
    distinct = False
    arguments: tuple[_Node, ...] = ()
    constant = False
    named = False  # a column of the source
    text: str | None = None  # of an expression that was given as SQL

    @staticmethod
    def of(column: Column) -> _Node:
        from pyspark.sql.classic.column import Column as ClassicColumn

        held: Any = column  # by a field of its own in each of the two
        if isinstance(column, ClassicColumn):
            return _ClassicNode(held._jc.node())
        return _ConnectNode(held._expr)

    @abstractmethod
    def without_alias(self) -> _Node: ...

    @abstractmethod
    def column(self) -> Column: ...

    @abstractmethod
    def value(self) -> Any: ...

    def number(self) -> float:
        """Read a parameter, such as the rank of a percentile."""
        value = self.value() if self.constant else None
        if not isinstance(value, int | float):
            raise QueryError(
                "what follows the column of an aggregate is not a number",
                hint="give one, as in F.percentile(x, 0.9)",
            )
        return float(value)


class _ClassicNode(_Node):
    """A node that the Java machine holds."""

    def __init__(self, node: Any) -> None:
        self._node = node
        kind = node.getClass().getSimpleName()
        self._alias = kind == "Alias"
        self.constant = kind in ("Literal", "UnresolvedStar")
        self.named = kind == "UnresolvedAttribute"
        if kind == "UnresolvedFunction":
            self.function, self.distinct = node.functionName(), node.isDistinct()
            given = node.arguments()
            self.arguments = tuple(_ClassicNode(given.apply(i)) for i in range(given.size()))
        if kind == "SqlExpression":
            self.text = node.expression()

    def without_alias(self) -> _Node:
        return _ClassicNode(self._node.child()).without_alias() if self._alias else self

    def column(self) -> Column:
        from pyspark.sql import SparkSession
        from pyspark.sql.classic.column import Column as ClassicColumn

        session = SparkSession.getActiveSession()
        assert session is not None
        java: Any = session._jvm
        return ClassicColumn(java.org.apache.spark.sql.Column(self._node))

    def value(self) -> Any:
        return self._node.value()


class _ConnectNode(_Node):
    """A node that a client of Spark Connect holds."""

    def __init__(self, node: Any) -> None:
        self._node = node
        kind = type(node).__name__
        self._alias = kind == "ColumnAlias"
        self.constant = kind in ("LiteralExpression", "UnresolvedStar")
        self.named = kind == "ColumnReference"
        if kind == "UnresolvedFunction":
            self.function, self.distinct = node._name, node._is_distinct
            self.arguments = tuple(map(_ConnectNode, node._args))
        if kind == "SQLExpression":
            self.text = node._expr

    def without_alias(self) -> _Node:
        return _ConnectNode(self._node._child).without_alias() if self._alias else self

    def column(self) -> Column:
        from pyspark.sql.connect.column import Column as ConnectColumn

        return ConnectColumn(self._node)

    def value(self) -> Any:
        return self._node._value
