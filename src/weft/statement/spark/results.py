"""Tables of results: what weft computed for a block, as Spark would have grouped it."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from weft.aggregates.spark_sketches import MERGED_BY
from weft.statement.blocks import TRUNCATED
from weft.statement.projection import GROUPING_ID, call_column, grouping_column
from weft.statement.relations import Obstacle
from weft.statement.sharing import PRESENT, WINDOW_COLUMNS
from weft.statement.spark.schema import nullable, some_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from weft.statement.sharing import Group, Member

TIMES = (T.TimestampType, T.TimestampNTZType)
# Types that are equal, ordered and summed alike on every way that Spark and weft compute them.
_PLAIN = (T.IntegralType, T.DecimalType, T.StringType, T.BooleanType, T.DateType, *TIMES)
REAL = (T.FloatType, T.DoubleType)
_AVERAGES = ("avg", "avg_distinct")
_MOST_DIGITS = 33  # of decimals whose average has room for five more
# How Spark tells the column of a window, which `window_time` and windows over windows read.
_MARKS = {"window": "spark.timeWindow", "session_window": "spark.sessionWindow"}


def plain_type(type: T.DataType) -> bool:
    """Tell whether values of a type are equal, ordered and summed in Spark as in weft."""
    return isinstance(type, _PLAIN) and not (
        isinstance(type, T.StringType) and type.simpleString() != "string"
    )


def obstacle_of(group: Group, member: Member, events: DataFrame) -> str | None:
    """Say which type of a key or an argument keeps a block from being shared."""
    query, *_ = group.queries(member)
    types = {field.name: field.dataType for field in events.schema.fields}
    for key in group.key_names(member).values():
        if not isinstance(types[key], _PLAIN):
            return f"a key is of type {types[key].simpleString()}"
    for _, call in query.aggs:
        if call.function == "count" or call.function in MERGED_BY:
            continue
        for argument in call.args:
            kind = types[argument]
            long = isinstance(kind, T.DecimalType) and kind.precision > _MOST_DIGITS
            if not isinstance(kind, (*_PLAIN, *REAL)) or (long and call.function in _AVERAGES):
                return f"{call.function} is over type {kind.simpleString()}"
    if group.own_conditions(member):
        for asked in member.projection.calls.values():
            if asked.counts_null:
                return f"{asked.function} counts NULL, and other blocks keep other events"
    return None


def united(
    group: Group, member: Member, results: Mapping[str, DataFrame], events: DataFrame
) -> DataFrame:
    """Return the results of all sets that a block groups by; keys that a set leaves are NULL."""
    block = member.block
    if not block.sets:
        return results[member.query]
    keys = group.key_names(member)
    parts = []
    for query, bits in zip(member.queries, member.grouping_bits, strict=True):
        own = results[query]
        rest = [F.col(name) for name in own.columns if name not in keys]
        listed = [
            F.col(name) if name in own.columns else _none_of(events.schema[column].dataType, name)
            for name, column in keys.items()
        ]
        told = [F.lit(bit).cast("tinyint").alias(grouping_column(i)) for i, bit in enumerate(bits)]
        whole = F.lit(int("".join(map(str, bits)), 2)).cast("bigint").alias(GROUPING_ID)
        parts.append(own.select(*listed, *rest, *told, whole))
    return reduce(lambda a, b: a.unionByName(b), parts)


def _none_of(kind: T.DataType, name: str) -> Column:
    return F.lit(None).cast(kind).alias(name)


def table_of(group: Group, member: Member, result: DataFrame, answers: T.StructType) -> DataFrame:
    """Return the results of a block: keys, the window as Spark has it, aggregates."""
    window = member.block.window.name
    _, start, end = WINDOW_COLUMNS
    columns = [F.col(name) for name in result.columns if name.startswith("weft_k")]
    # As Spark has it: only a window that overlaps others may be NULL by its type, any bound may.
    bounds = [nullable(F.col(start)).alias("start"), nullable(F.col(end)).alias("end")]
    if window != TRUNCATED:
        whole = F.struct(*bounds)
        if member.block.window.overlaps:
            whole = nullable(whole)
        columns.append(
            whole.alias(window, metadata={_MARKS[window]: True} if window in _MARKS else {})
        )
    else:
        columns.append(bounds[0].alias(window))
    readings = {
        call_column(number): F.expr(call.reading.format(call_column(number)))
        for number, call in enumerate(member.projection.calls.values())
        if call.reading != "{0}"
    }
    result = result.withColumns(readings) if readings else result
    fields = {field.name: field for field in result.schema.fields}
    for number in range(len(member.projection.nodes)):
        own, wanted = fields[call_column(number)], answers[group.answer(member, number)]
        if own.dataType != wanted.dataType:
            raise Obstacle(
                f"an aggregate would be of type {own.dataType.simpleString()}, not "
                f"{wanted.dataType.simpleString()}"
            )
        column = F.col(own.name)
        if own.nullable and not wanted.nullable:
            column = F.coalesce(column, some_of(own.dataType)).alias(own.name)
        columns.append(column)
    if member.block.sets:
        told = [grouping_column(number) for number in range(len(member.block.numbered))]
        columns += [F.col(name) for name in (*told, GROUPING_ID)]
    if group.own_conditions(member):
        result = result.where(F.col(PRESENT) > 0)
    return result.select(*columns)
