"""Expressions of Spark SQL, read one node at a time into values of DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from weft.statement.calls import is_aggregate
from weft.statement.local import operators
from weft.statement.local.aggregates import OVER_ALONE, aggregated, ranked
from weft.statement.local.column_types import (
    INSTANT,
    LENGTH,
    WALL_TIME,
    is_time,
    spark_name,
)
from weft.statement.local.functions import called
from weft.statement.local.literals import interval, literal, typed_literal
from weft.statement.local.scope import Scope, fields_of
from weft.statement.local.values import Value, can_fail, cast, together
from weft.statement.relations import Obstacle
from weft.statement.syntax import PlainInterval, ShortCast, TypedLiteral, is_call, written_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.statement.local.scope import Rows

    Subquery = Callable[[exp.Expr, Scope], Rows]

_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "<=>",
}
_TYPES: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "BYTE": pa.int8(),
    "SMALLINT": pa.int16(),
    "SHORT": pa.int16(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "LONG": pa.int64(),
    "FLOAT": pa.float32(),
    "REAL": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": INSTANT,
    "TIMESTAMP_LTZ": INSTANT,
    "TIMESTAMP_NTZ": WALL_TIME,
}


@dataclass(frozen=True)
class Expressions:
    """Reads expressions in a scope; a query inside one is read by `subquery`."""

    scope: Scope
    subquery: Subquery
    windows: Mapping[str, exp.Expr] = field(default_factory=dict)  # of the WINDOW clause

    def value(self, node: exp.Expr) -> Value:
        """Read an expression, or raise the obstacle that there is to reading it."""
        if isinstance(node, exp.Window):
            return self._over(node)
        if is_aggregate(node):
            return self._aggregate(node, "")
        if isinstance(node, exp.Anonymous):
            if is_call(node, "struct"):
                return called("struct", [self._field(a) for a in node.expressions])
            return called(str(node.this).casefold(), [self.value(a) for a in node.expressions])
        sign = _ARITHMETIC.get(type(node))
        if sign is not None:
            return operators.arithmetic(sign, self.value(node.this), self.value(node.expression))
        sign = _COMPARISONS.get(type(node))
        if sign is not None:
            return operators.comparison(sign, self.value(node.this), self.value(node.expression))
        rule = _NODES.get(type(node))
        if rule is None:
            raise Obstacle(f"{written_of(node)} is not among what agrees with Spark here")
        return rule(self, node)

    def _field(self, node: exp.Expr) -> Value:
        """Read a field of a struct, which may be named there."""
        if isinstance(node, exp.Alias):
            return self.value(node.this).named(node.alias)
        return self.value(node)

    def condition(self, node: exp.Expr) -> str:
        """Read a condition."""
        value = self.value(node)
        if value.type not in (pa.bool_(), pa.null()):
            raise Obstacle(f"{written_of(node)} is of type {spark_name(value.type)}, no condition")
        return value.sql

    def _aggregate(self, node: exp.Expr, over: str) -> Value:
        kept = ""
        call = node
        if isinstance(call, exp.Filter):
            kept = f" FILTER (WHERE {self.condition(call.expression.this)})"
            call = call.this
        if not isinstance(call, exp.Anonymous):
            raise Obstacle(f"{written_of(node)} is not among what agrees with Spark here")
        arguments = list(call.expressions)
        distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
        if distinct:
            arguments = arguments[0].expressions
        if is_call(call, "count"):
            arguments = [a for a in arguments if not isinstance(a, exp.Star)]
        values = [self.value(argument) for argument in arguments]
        return aggregated(str(call.this).casefold(), values, distinct, kept + over)

    def _over(self, node: exp.Window) -> Value:
        over = f" OVER ({self._frame(node)})"
        if is_call(node.this, *OVER_ALONE):
            values = [self.value(a) for a in node.this.expressions]
            return ranked(str(node.this.this).casefold(), values, over)
        return self._aggregate(node.this, over)

    def _frame(self, node: exp.Expr) -> str:
        named = node.args.get("alias")
        if named is not None and isinstance(node, exp.Window) and not node.args.get("order"):
            known = self.windows.get(named.name.casefold())
            if known is None:
                raise Obstacle(f"no window is named {named.name}")
            node = known
        parts = [self._partition(p) for p in node.args.get("partition_by") or ()]
        order = node.args.get("order")
        spec = node.args.get("spec")
        said = [f"PARTITION BY {', '.join(parts)}"] if parts else []
        keys = order.expressions if order is not None else []
        ranged = spec is not None and spec.args["kind"] == "RANGE"
        bounds = [spec.args.get("start"), spec.args.get("end")] if spec is not None else []
        distances = [bound for bound in bounds if isinstance(bound, exp.Expr)]
        if keys:
            timed = ranged and bool(distances)
            said.append("ORDER BY " + ", ".join(self.ordered(k, timed=timed) for k in keys))
        if spec is not None:
            edges = [self._bound(spec, side, keys) for side in ("start", "end")]
            said.append(f"{spec.args['kind']} BETWEEN {edges[0]} AND {edges[1]}")
        return " ".join(said)

    def _partition(self, node: exp.Expr) -> str:
        value = self.value(node)
        operators.comparable(value.type, "PARTITION BY")
        return value.sql

    def ordered(self, node: exp.Expr, *, timed: bool = False, sql: str | None = None) -> str:
        """Write one key of ORDER BY; NULL comes first or last as Spark has it."""
        if not isinstance(node, exp.Ordered):  # without a word on its direction
            node = exp.Ordered(this=node, nulls_first=True)
        value = self.value(node.this) if sql is None else None
        if value is not None:
            operators.orderable(value.type, "ORDER BY")
            sql = f"epoch_us({value.sql})" if timed and is_time(value.type) else value.sql
        direction = "DESC" if node.args.get("desc") else "ASC"
        nulls = "FIRST" if node.args.get("nulls_first") else "LAST"
        return f"{sql} {direction} NULLS {nulls}"

    def _bound(self, spec: exp.Expr, side: str, keys: list[exp.Expr]) -> str:
        bound = spec.args.get(side)
        if bound is None:
            return "CURRENT ROW"
        if not isinstance(bound, exp.Expr):
            words = f"{bound} {spec.args.get(f'{side}_side') or ''}".strip()
            return "CURRENT ROW" if str(bound).startswith("CURRENT") else words
        value = self.value(bound)
        ranged = spec.args["kind"] == "RANGE"
        over_time = ranged and len(keys) == 1 and is_time(self.value(keys[0].this).type)
        if (value.type == LENGTH) != over_time or (ranged and not over_time):
            raise Obstacle("a frame of this RANGE is Spark's")
        if not ranged:
            operators.literal_number(value, "a bound of ROWS")
        return f"{value.sql} {spec.args[f'{side}_side']}"

    def column(self, node: exp.Column) -> Value:
        """Look a name up."""
        if isinstance(node.this, exp.Star):
            raise Obstacle(f"{written_of(node)} is no single value")
        return self.scope.lookup([part.name for part in node.parts])

    def _dot(self, node: exp.Expr) -> Value:
        return fields_of(self.value(node.this), [node.name])

    def _logic(self, node: exp.Expr) -> Value:
        word = "AND" if isinstance(node, exp.And) else "OR"
        left, right = self.value(node.this), self.value(node.expression)
        for value, part in ((left, node.this), (right, node.expression)):
            if value.type not in (pa.bool_(), pa.null()):
                raise Obstacle(f"{written_of(part)} is no condition")
        names = None if None in (left.name, right.name) else f"({left.name} {word} {right.name})"
        sql = f"({left.sql} {word} {right.sql})"
        if can_fail(right.sql):
            # Spark asks the left side first, and where it decides, the right one never fails.
            decided = f"NOT {left.sql}" if word == "AND" else left.sql
            sql = f"(CASE WHEN {decided} THEN {word == 'OR'} ELSE {sql} END)"
        return Value(sql, pa.bool_(), names)

    def _not(self, node: exp.Expr) -> Value:
        inner = self.value(node.this)
        if inner.type not in (pa.bool_(), pa.null()):
            raise Obstacle(f"{written_of(node.this)} is no condition")
        name = f"(NOT {inner.name})" if inner.name else None
        return Value(f"(NOT {inner.sql})", pa.bool_(), name)

    def _is(self, node: exp.Expr) -> Value:
        value = self.value(node.this)
        negated = " NOT" if node.args.get("negate") else ""
        if isinstance(node.expression, exp.Null):
            name = f"({value.name} IS{negated} NULL)" if value.name else None
            return Value(f"({value.sql} IS{negated} NULL)", pa.bool_(), name)
        if isinstance(node.expression, exp.Boolean) and value.type == pa.bool_():
            word = "TRUE" if node.expression.this else "FALSE"
            return Value(f"({value.sql} IS{negated} {word})", pa.bool_())
        raise Obstacle(f"{written_of(node)} is not among what agrees with Spark here")

    def _in(self, node: exp.Expr) -> Value:
        value = self.value(node.this)
        query = node.args.get("query")
        if query is not None:
            rows = self.subquery(query, self.scope)
            if len(rows.columns) != 1:
                raise Obstacle("IN reads a query of several columns")
            one, two = operators.alike(value, Value("c0", rows.columns[0].type), "IN")
            return Value(f"({one.sql} IN (SELECT {two.sql} FROM ({rows.sql}) AS s))", pa.bool_())
        same = together([value, *(self.value(v) for v in node.expressions)], "IN")
        operators.comparable(same[0].type, "IN")
        listed = ", ".join(v.sql for v in same[1:])
        return Value(f"({same[0].sql} IN ({listed}))", pa.bool_())

    def _between(self, node: exp.Expr) -> Value:
        value, low, high = (self.value(node.args[part]) for part in ("this", "low", "high"))
        above = operators.comparison(">=", value, low)
        below = operators.comparison("<=", value, high)
        made = f"({above.sql} AND {below.sql})"
        return Value(f"(NOT {made})" if node.args.get("negate") else made, pa.bool_())

    def _like(self, node: exp.Expr) -> Value:
        value, pattern = self.value(node.this), self.value(node.expression)
        plain = isinstance(pattern.literal, str) and "\\" not in pattern.literal
        if value.type != pa.string() or not plain:
            raise Obstacle("LIKE is of a text and a pattern that is written out, without escapes")
        negated = "NOT " if node.args.get("negate") else ""
        return Value(f"({negated}{value.sql} LIKE {pattern.sql})", pa.bool_())

    def _case(self, node: exp.Expr) -> Value:
        tests = []
        for branch in node.args["ifs"]:
            if node.this is not None:
                compared = operators.comparison("=", self.value(node.this), self.value(branch.this))
                tests.append(compared.sql)
            else:
                tests.append(self.condition(branch.this))
        default = node.args.get("default")
        ends = [self.value(branch.args["true"]) for branch in node.args["ifs"]]
        ends += [self.value(default)] if default is not None else []
        same = together(ends, "CASE")
        said = "".join(
            f" WHEN {test} THEN {end.sql}" for test, end in zip(tests, same, strict=False)
        )
        otherwise = f" ELSE {same[-1].sql}" if default is not None else ""
        return Value(f"(CASE{said}{otherwise} END)", same[0].type)

    def _cast(self, node: exp.Expr) -> Value:
        target = type_named(node.args["to"])
        value = self.value(node.this)
        made = cast(value, target, trial=isinstance(node, exp.TryCast))
        name = None
        if value.name is not None and not isinstance(node, exp.TryCast):
            name = f"CAST({value.name} AS {spark_name(target).upper()})"
        return Value(made.sql, made.type, name)

    def _function(self, name: str, node: exp.Expr, *parts: str) -> Value:
        if any(value for part, value in node.args.items() if part not in parts):
            raise Obstacle(f"{written_of(node)} is not among what agrees with Spark here")
        given = [node.args[part] for part in parts if node.args.get(part) is not None]
        return called(name, [self.value(argument) for argument in given])

    def _extract(self, node: exp.Expr) -> Value:
        return called(node.name.casefold(), [self.value(node.expression)]).named(None)

    def _element(self, node: exp.Expr) -> Value:
        raise Obstacle(f"{written_of(node)} may be out of bounds; use get(array, place)")

    def _scalar(self, node: exp.Expr) -> Value:
        rows = self.subquery(node, self.scope)
        if len(rows.columns) != 1:
            raise Obstacle("a query in place of a value has several columns")
        return Value(f"(SELECT c0 FROM ({rows.sql}) AS s)", rows.columns[0].type)

    def _exists(self, node: exp.Expr) -> Value:
        rows = self.subquery(node.this, self.scope)
        return Value(f"EXISTS ({rows.sql})", pa.bool_())

    def _paren(self, node: exp.Expr) -> Value:
        return self.value(node.this)

    def _joined(self, node: exp.Expr) -> Value:
        return called("concat", [self.value(node.this), self.value(node.expression)])

    def _unequal(self, node: exp.Expr) -> Value:
        same = operators.comparison("<=>", self.value(node.this), self.value(node.expression))
        return Value(f"(NOT {same.sql})", pa.bool_())


def type_named(node: exp.Expr) -> pa.DataType:
    """Return the type that CAST names."""
    word = written_of(node).upper().replace(" ", "")
    if word in _TYPES:
        return _TYPES[word]
    if word.startswith("DECIMAL(") and word.endswith(")"):
        digits, _, scale = word[8:-1].partition(",")
        return pa.decimal128(int(digits), int(scale or 0))
    raise Obstacle(f"CAST to {word} is Spark's")


_Rule = Callable[[Expressions, Any], Value]
_NODES: dict[type[exp.Expr], _Rule] = {
    exp.Literal: lambda self, node: literal(node),
    TypedLiteral: lambda self, node: typed_literal(node),
    PlainInterval: lambda self, node: interval(node),
    exp.Null: lambda self, node: Value("NULL", pa.null(), "NULL"),
    exp.Boolean: lambda self, node: Value(
        "TRUE" if node.this else "FALSE", pa.bool_(), "true" if node.this else "false"
    ),
    exp.Column: Expressions.column,
    exp.Dot: Expressions._dot,
    exp.Paren: Expressions._paren,
    exp.Neg: lambda self, node: operators.negated(self.value(node.this)),
    exp.Not: Expressions._not,
    exp.And: Expressions._logic,
    exp.Or: Expressions._logic,
    exp.Is: Expressions._is,
    exp.In: Expressions._in,
    exp.Between: Expressions._between,
    exp.Like: Expressions._like,
    exp.DPipe: Expressions._joined,
    exp.NullSafeNEQ: Expressions._unequal,
    exp.Case: Expressions._case,
    exp.Cast: Expressions._cast,
    exp.TryCast: Expressions._cast,
    ShortCast: Expressions._cast,
    exp.Substring: lambda self, node: self._function("substring", node, "this", "start", "length"),
    exp.Trim: lambda self, node: self._function("trim", node, "this"),
    exp.Extract: Expressions._extract,
    exp.Bracket: Expressions._element,
    exp.Subquery: Expressions._scalar,
    exp.Exists: Expressions._exists,
}
