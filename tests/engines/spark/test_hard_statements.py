"""Statements as people write them, through every door: weft.sql, weft.rewrite, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import weft
from engines.spark import statement_tables
from engines.spark.statement_check import (
    Case,
    assert_same,
    assert_same_in_process,
    assert_same_rows,
    cases_in,
    described,
    said,
    views,
)
from weft.statement import run_statements
from weft.statement.notes import Note

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.soak]
FILE = Path(__file__).with_name("hard_statements.sql")
UNTOLD = "give weft.rewrite the table as a DataFrame"  # what a text alone does not tell


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[dict[str, DataFrame]]:
    made = statement_tables.made(spark)
    made["dotted"] = made["trades"].selectExpr("sym AS `a.b`", "qty AS `c d`", "t AS `t.s`")
    sites = [("berlin", "B"), ("osaka", "O")]
    spark.createDataFrame(sites, "site string, label string").createOrReplaceTempView("kept_sites")
    spark.udf.register("shout", F.udf(lambda x: None if x is None else f"{x.upper()}!", "string"))
    with views(spark, made):
        yield made
    spark.catalog.dropTempView("kept_sites")


@pytest.fixture(scope="module")
def arrow(tables: dict[str, DataFrame]) -> dict[str, pa.Table]:
    return {name: frame.toArrow() for name, frame in tables.items()}


@pytest.mark.parametrize("case", cases_in(FILE), ids=lambda case: case.name)
def test_a_hard_statement_gives_what_spark_gives(
    case: Case, spark: SparkSession, tables: dict[str, DataFrame], arrow: dict[str, pa.Table]
) -> None:
    wanted = spark.sql(case.sql)
    rows = said(wanted)
    results, notes = run_statements(case.sql, tables)
    (got,) = results.values()
    assert_same(got, wanted, rows, ordered=case.ordered)
    blocks = [note for note in notes if isinstance(note, Note) and note.number]
    assert (sum(note.shared for note in blocks), len(blocks)) == (case.shared, case.blocks), notes
    try:
        in_process = weft.sql(case.sql, engine="local", **arrow)
    except weft.UnsupportedError:
        return  # with its reason, and no guess
    assert_same_in_process(in_process, wanted.schema, rows, ordered=case.ordered)


@pytest.mark.parametrize("case", cases_in(FILE), ids=lambda case: case.name)
def test_a_hard_statement_is_written_out(
    case: Case, spark: SparkSession, tables: dict[str, DataFrame]
) -> None:
    wanted = spark.sql(case.sql)
    rows = said(wanted)
    typed = spark.sql(weft.rewrite(case.sql, **tables))
    assert [d[:2] for d in described(typed)] == [d[:2] for d in described(wanted)]
    assert_same_rows(typed, rows, ordered=case.ordered)
    untyped = spark.sql(weft.rewrite(case.sql))
    assert untyped.columns == wanted.columns
    try:
        assert_same_rows(untyped, rows, ordered=case.ordered)
    except PySparkException as error:
        if UNTOLD not in str(error):
            raise
