"""One streaming table of slices, and a materialized view for each query of features.sql."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import weft

PROJECT = Path(__file__).parents[1]
spark = SparkSession.active()


@weft.pipeline_table(weft.parse((PROJECT / "features.sql").read_text()))
def readings() -> DataFrame:
    events = spark.readStream.schema("ts TIMESTAMP, device STRING, temp DOUBLE")
    return events.parquet(str(PROJECT / "readings"))
