"""Joins on Spark give the rows of the definition, wherever they aggregate early."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, assume, given, note, settings

import weft
from weft.cost.joins import placement_name, placements
from weft.engines.reference.engine import ReferenceEngine
from weft.engines.spark.engine import SparkEngine
from weft.engines.spark.session import to_spark
from weft.planners.portfolio import optimize
from weft.query import JoinQuery, Workload
from weft.testing import assert_same_rows
from weft.testing.joins import joins_with_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(asked=joins_with_rows())
def test_every_placement_gives_the_rows_of_the_definition(
    spark: SparkSession, asked: tuple[JoinQuery, Mapping[str, pa.Table]]
) -> None:
    query, tables = asked
    workload = Workload([query])
    plans = {
        placement_name(early): optimize(workload, placement_name(early), "spark")
        for early in placements(len(query.inputs))
    }
    assume(not any(SparkEngine().unsupported(plan) for plan in plans.values()))
    wanted = ReferenceEngine().answer(workload, tables)[query.name]
    frames = {name: to_spark(table, spark) for name, table in tables.items()}
    every = list(plans.items())
    for name, plan in (every[0], every[1], every[-1]):
        note(plan.explain())
        got = SparkEngine().run(plan, frames)[query.name]
        assert_same_rows(query, got.toArrow(), wanted, name)


def test_an_aggregate_that_cannot_be_repeated_is_refused() -> None:
    text = """SELECT MEDIAN(a.x) AS mid FROM a TIMESTAMP BY ts [RANGE 1 HOUR SLIDE 1 HOUR],
              b TIMESTAMP BY ts [RANGE 1 HOUR SLIDE 1 HOUR] WHERE a.k = b.k"""
    plan = optimize(weft.parse(text))
    assert [problem.reason for problem in SparkEngine().unsupported(plan)] == [
        "values(a.x) has no form that a join can repeat on Spark"
    ]
