"""What stock Spark gives for a statement, and how rows are compared with it."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

RELATIVE, NEAR_ZERO = 1e-9, 1e-12


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


def assert_same(got: DataFrame, wanted: DataFrame, *, ordered: bool) -> None:
    """Compare names, types, nullability and rows; doubles within a relative 1e-9."""
    assert described(got) == described(wanted)
    rows, others = (list(map(plain, frame.collect())) for frame in (got, wanted))
    if not ordered:
        rows, others = (sorted(found, key=_order) for found in (rows, others))
    assert len(rows) == len(others)
    for place, (row, other) in enumerate(zip(rows, others, strict=True)):
        assert close(row, other), (place, row, other)


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
