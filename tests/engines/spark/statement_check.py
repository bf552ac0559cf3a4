"""What stock Spark gives for a statement, and how rows are compared with it."""

from __future__ import annotations

import datetime as dt
import math
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.engines.spark.session import arrow_schema
from weft.statement.local.column_types import spark_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

RELATIVE, NEAR_ZERO = 1e-9, 1e-12


class Case(NamedTuple):
    """A statement, and what is known of it."""

    name: str
    shared: int  # blocks of it that are shared
    blocks: int
    ordered: bool
    sql: str


def cases_in(file: Path) -> list[Case]:
    """Read the statements; the line above each names it and counts its shared blocks."""
    found = []
    for part in re.split(r"^-- name: ", file.read_text(), flags=re.MULTILINE)[1:]:
        first, _, sql = part.partition("\n")
        head = re.fullmatch(r"(.*?) \[(\d+) of (\d+)(, ordered)?\]", first)
        assert head is not None, first
        found.append(Case(head[1], int(head[2]), int(head[3]), bool(head[4]), sql.strip()))
    return found


@contextmanager
def views(spark: SparkSession, tables: Mapping[str, DataFrame]) -> Iterator[None]:
    """Have tables as views while stock Spark reads them."""
    for name, table in tables.items():
        table.createOrReplaceTempView(name)
    try:
        yield
    finally:
        for name in tables:
            spark.catalog.dropTempView(name)


# Code that Spark would generate and Java compile, for answers of a few rows.
_CODE = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@contextmanager
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Let stock Spark compute an answer to compare with, and compile nothing for it."""
    before = {name: spark.conf.get(name) for name in _CODE}
    try:
        for name, value in _CODE.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, own in before.items():
            spark.conf.set(name, own)


def said(wanted: DataFrame) -> list[Row]:
    """Return the rows of stock Spark."""
    with interpreted(wanted.sparkSession):
        return wanted.collect()


def assert_same(
    got: DataFrame, wanted: DataFrame, rows: Sequence[Row] | None = None, *, ordered: bool
) -> None:
    """Compare names, types, nullability and rows; doubles within a relative 1e-9.

    `rows` are those of `wanted`, where they are known already.
    """
    assert described(got) == described(wanted)
    assert_same_rows(got, said(wanted) if rows is None else rows, ordered=ordered)


def assert_same_rows(got: DataFrame, wanted: Sequence[Row], *, ordered: bool) -> None:
    """Compare rows; doubles within a relative 1e-9."""
    rows, others = (list(map(plain, found)) for found in (got.collect(), wanted))
    if not ordered:
        rows, others = (sorted(found, key=_order) for found in (rows, others))
    assert len(rows) == len(others)
    for place, (row, other) in enumerate(zip(rows, others, strict=True)):
        assert close(row, other), (place, row, other)


def assert_same_in_process(
    got: pa.Table, schema: StructType, wanted: Sequence[Row], *, ordered: bool
) -> None:
    """Compare a table of Arrow with what Spark says of its columns, and with its rows."""
    assert _named_types(got.schema) == _named_types(arrow_schema(schema))
    columns = [list(map(_as_collected, column.to_pylist())) for column in got.columns]
    rows, others = list(zip(*columns, strict=True)), list(map(plain, wanted))
    if not ordered:
        rows, others = (sorted(found, key=_order) for found in (rows, others))
    assert len(rows) == len(others)
    for place, (row, other) in enumerate(zip(rows, others, strict=True)):
        assert close(row, other), (place, row, other)


def _named_types(schema: pa.Schema) -> list[tuple[str, str]]:
    """Describe columns, of which Arrow does not say whether Spark takes them for NULL at times."""
    return [(field.name, spark_name(field.type)) for field in schema]


def _as_collected(value: Any) -> Any:
    """Return a value of Arrow as Spark collects it: rows are tuples, times are those of here."""
    if isinstance(value, dict):
        return tuple(map(_as_collected, value.values()))
    if isinstance(value, list):
        return tuple(map(_as_collected, value))
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone().replace(tzinfo=None)
    return value


def described(frame: DataFrame) -> list[tuple[str, str, bool]]:
    return [(f.name, f.dataType.simpleString(), f.nullable) for f in frame.schema.fields]


def plain(value: Any) -> Any:
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else value


def close(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        nan = math.isnan(left) and math.isnan(right)
        return nan or math.isclose(left, right, rel_tol=RELATIVE, abs_tol=NEAR_ZERO)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(close, left, right))
    return type(left) is type(right) and left == right


def _order(value: Any) -> str:
    """Sort rows by all but the last digits of doubles, which may differ."""
    if isinstance(value, tuple):
        return "(" + ",".join(map(_order, value)) + ")"
    return f"{value:.7e}" if isinstance(value, float) else repr(value)
