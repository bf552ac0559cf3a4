"""One Spark session for all tests that need one."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import pytest

from sessions import shared_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    # Plans adapt as they run, as they do in most sessions of users; those that weft starts do not.
    return shared_session({"spark.sql.adaptive.enabled": "true"})


@pytest.fixture
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a test under another time zone of the session."""
    name = "spark.sql.session.timeZone"
    before = spark.conf.get(name)
    spark.conf.set(name, request.param)
    yield request.param
    spark.conf.set(name, before)


@pytest.fixture
def explained() -> Callable[[DataFrame], str]:
    """Return Spark's physical plan of a DataFrame as text."""

    def text(frame: DataFrame) -> str:
        printed = io.StringIO()
        with redirect_stdout(printed):
            frame.explain()
        return printed.getvalue()

    return text
