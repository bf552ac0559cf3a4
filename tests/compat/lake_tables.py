"""Whether Spark's own connector of a lake and weft's sink agree: `lake_tables.py delta|iceberg`.

Run with the PySpark that the connector is built for first on the path; prints a line of JSON. The
connector writes a table of events, weft reads it (in batch, and Delta's as a stream), a stream of
weft's writes its table of windows with a restart between, and the connector reads that one.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark

import weft
from compat.spark_version import EVENTS, QUERY, arrow
from weft.engines.spark.connectors import Artifact, fetched
from weft.engines.spark.session import local_session, to_spark
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JARS = {
    "delta": ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
    "iceberg": ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",),
}
SETTINGS = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "iceberg": {
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
    },
}
HALF = EVENTS.num_rows // 2


def started(kind: str, place: Path) -> SparkSession:
    """Start Spark with the connector of a lake."""
    jars = ",".join(map(str, fetched(map(Artifact.of, JARS[kind]))))
    found = {"spark.jars": jars, "spark.sql.shuffle.partitions": "2", **SETTINGS[kind]}
    if kind == "iceberg":
        found["spark.sql.catalog.lake.warehouse"] = str(place / "spark")
        os.environ["PYICEBERG_CATALOG__OURS__TYPE"] = "sql"
        os.environ["PYICEBERG_CATALOG__OURS__URI"] = f"sqlite:///{place}/catalog.db"
        os.environ["PYICEBERG_CATALOG__OURS__WAREHOUSE"] = f"file://{place}/ours"
    return local_session(2, found)


def add(kind: str, events: DataFrame, place: Path) -> None:
    """Let the connector write events."""
    if kind == "delta":
        events.write.format("delta").mode("append").save(f"{place}/events")
    elif events.sparkSession.catalog.tableExists("lake.weft.events"):
        events.writeTo("lake.weft.events").append()
    else:
        events.writeTo("lake.weft.events").create()


def read(session: SparkSession, kind: str, place: Path) -> DataFrame:
    """Let the connector read the events."""
    if kind == "delta":
        return session.read.format("delta").load(f"{place}/events")
    return session.table("lake.weft.events")


def read_stream(session: SparkSession, kind: str, place: Path) -> DataFrame:
    """Let the connector read the events as they come."""
    if kind == "delta":
        return session.readStream.format("delta").load(f"{place}/events")
    return session.readStream.format("iceberg").load("lake.weft.events")


def written(session: SparkSession, kind: str, place: Path) -> DataFrame:
    """Let the connector read what weft wrote."""
    if kind == "delta":
        return session.read.format("delta").load(f"{place}/windows")
    from pyiceberg.catalog import load_catalog

    table: Any = load_catalog("ours").load_table("weft.windows")
    return session.read.format("iceberg").load(table.metadata_location)


def closed(rows: pa.Table) -> pa.Table:
    """Keep the windows that have ended for a stream that has read all events."""
    latest_us = int(EVENTS["ts"].cast(pa.int64()).to_numpy().max()) - 5_000_000
    ends = rows["window_end"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    return rows.filter(pa.array(ends <= latest_us))


def tried(kind: str, place: Path) -> None:
    """Run all of it."""
    session = started(kind, place)
    sink = f"delta://{place}/windows" if kind == "delta" else "iceberg://ours.weft.windows"
    wanted = weft.run(QUERY, {"readings": EVENTS}, engine="reference")
    for half in (EVENTS.slice(0, HALF), EVENTS.slice(HALF)):
        add(kind, to_spark(half, session), place)
        weft.start(
            QUERY, {"readings": read_stream(session, kind, place)}, sink, place / "state", "once"
        ).awaitTermination()
    batch = arrow(weft.run(QUERY, {"readings": read(session, kind, place)}, engine="spark"))
    assert_same_rows(QUERY, batch, wanted)
    rows = arrow(written(session, kind, place))
    assert_same_rows(QUERY, closed(rows.select(wanted.schema.names)), closed(wanted))


def main() -> None:
    """Try one kind, and say with which versions it works."""
    (kind,) = sys.argv[1:]
    with tempfile.TemporaryDirectory() as place:
        tried(kind, Path(place))
    jar = JARS[kind][0].rpartition(":")
    name = f"{jar[0].rpartition(':')[2]} {jar[2]}"
    sys.stdout.write(json.dumps({kind: name, "spark": pyspark.__version__}) + "\n")


if __name__ == "__main__":
    main()
