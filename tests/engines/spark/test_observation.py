"""What Spark tells of a DataFrame for free is what it then does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import weft
from weft.observation import observed
from weft.tables import write_table

if TYPE_CHECKING:
    from pathlib import Path

ASK = {"source": "t", "time": "ts", "windows": {"1m": "1 minute"}, "aggs": {"n": "count(*)"}}


def seen(frame: Any) -> weft.Statistics:
    return observed([weft.Query("q", keys=["device"], **ASK)], {"t": frame})["t"]


@pytest.mark.spark
@pytest.mark.parametrize(("files", "open_cost"), [(1, "4MB"), (7, "4MB"), (12, "1k")])
def test_tasks_are_those_that_spark_makes(
    spark: Any, tmp_path: Path, files: int, open_cost: str
) -> None:
    rows = weft.generate.sensors(20_000, 1)
    for at in range(files):
        write_table(rows.slice(at * 1_000, 1_000), tmp_path / f"{at}.parquet")
    setting = "spark.sql.files.openCostInBytes"
    before = spark.conf.get(setting)
    spark.conf.set(setting, open_cost)
    try:
        frame = spark.read.parquet(str(tmp_path))
        told = seen(frame).partitions
        made = frame.rdd.getNumPartitions()
    finally:
        spark.conf.set(setting, before)
    # Files are not cut so that parts are of one size: a part more or less does not matter.
    assert told is not None
    assert abs(told - made) <= max(1, made // 4)


@pytest.mark.spark
def test_a_table_that_was_analysed_tells_its_length(spark: Any) -> None:
    rows = pa.table(
        {"ts": pa.array([1, 2, 3], pa.timestamp("us", "UTC")), "device": ["a", "b", "a"]}
    )
    spark.createDataFrame(rows).write.format("csv").mode("overwrite").saveAsTable("analysed")
    try:
        assert seen(spark.table("analysed")).events is None
        spark.sql("ANALYZE TABLE analysed COMPUTE STATISTICS")
        known = seen(spark.table("analysed"))
        assert known.events == 3
        assert "statistics of its tables" in known.told_by
    finally:
        spark.sql("DROP TABLE analysed")
