"""From a plan of rolling windows over a stream to a streaming DataFrame of complete rows."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from weft.engines.local.anchors.rolling_rows import RollingRows
from weft.engines.local.state.custom_partials import NO_PICKLES
from weft.engines.spark.anchors.outputs import named, outputs_of
from weft.engines.spark.anchors.shipment import rolling_shipment, tie_columns
from weft.engines.spark.columnar.hosted_operator import check_partials_kept, customs_of
from weft.engines.spark.columnar.pickles import dumped
from weft.engines.spark.executors import prepare_executors
from weft.engines.spark.session import arrow_schema, spark_schema
from weft.engines.spark.streaming.anchors.processor import (
    FIGURES,
    OUTPUT_SCHEMA,
    RollingProcessor,
)
from weft.engines.spark.streaming.columnar.bucket_numbers import BUCKET, Buckets
from weft.engines.spark.streaming.columnar.executor_batches import (
    PACKED_SCHEMA,
    PAYLOAD,
    Packer,
    Unpacker,
)
from weft.engines.spark.streaming.columnar.strategy import METRICS, buckets_of, check_store
from weft.engines.spark.streaming.watermark import DELAY_KEY, watermarked
from weft.expression import column
from weft.plan.anchors.node_json import nodes_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from weft.plan.anchors import FeaturePlan


def rolling_stream(
    plan: FeaturePlan, source: DataFrame, handed: Sequence[str] | None = None
) -> DataFrame:
    """Return each row of a stream with its features, once the watermark has passed its time.

    `handed` names the columns of the stream that are handed on, if not all of them.
    """
    session = source.sparkSession
    check_store(session)
    prepare_executors(session)
    scan = plan.trails[0].events
    assert scan.time is not None
    timed = watermarked(source, scan.source, scan.time, scan.watermark_us)
    shipment = rolling_shipment(plan, timed, source.columns if handed is None else handed)
    asked = outputs_of(plan, shipment)
    schema = arrow_schema(shipment.frame.schema)
    rows = RollingRows(
        schema=pa.schema([pa.field(field.name, field.type) for field in schema]),
        keys=shipment.keys,
        payload=tuple(dict.fromkeys(shipment.payload)),
        trails=tuple(shipment.own(plan, 0)),
        outputs=tuple((f"f{i}", one.trail, one.call) for i, one in enumerate(asked)),
        types=tuple(one.type for one in asked),
        ties=tie_columns(plan, shipment.frame),
    )
    if rows.slice_us is not None:
        check_partials_kept((one.call for one in asked), schema, NO_PICKLES)
    customs = tuple(customs_of(one.call for one in asked))
    buckets = buckets_of(session).each
    names = {name: f"c{i}" for i, name in enumerate(shipment.frame.columns)}
    packed = _in_buckets(shipment.frame, names, shipment.keys, buckets).mapInArrow(
        Packer((names,), Buckets(buckets)), PACKED_SCHEMA
    )
    processor = RollingProcessor(dumped((rows, customs)), _fingerprint(plan, rows, buckets))
    moved = packed.groupBy(BUCKET).transformWithState(
        processor, OUTPUT_SCHEMA, outputMode="append", timeMode="EventTime"
    )
    told = moved.observe(METRICS, *(F.sum(name).alias(name) for name in FIGURES))
    blobs = told.where(f"{PAYLOAD} IS NOT NULL").select(PAYLOAD)
    complete = blobs.mapInArrow(Unpacker(), spark_schema(rows.output))
    # Rows come behind the watermark: nobody is to take them for late.
    return _without_watermark(named(complete, timed, shipment, asked))


def _in_buckets(
    frame: DataFrame, names: Mapping[str, str], keys: Sequence[str], buckets: int
) -> DataFrame:
    """Give the columns of each row the names they travel under, beside the bucket of its key."""
    hashed = f"cast(pmod(xxhash64({', '.join(keys)}), {buckets}) AS int)" if keys else "0"
    columns = [F.expr(column(name)).alias(sent) for name, sent in names.items()]
    return frame.select(*columns, F.expr(hashed).alias(f"{BUCKET}0"))


def _without_watermark(rows: DataFrame) -> DataFrame:
    kept = [
        {key: value for key, value in (field.metadata or {}).items() if key != DELAY_KEY}
        for field in rows.schema
    ]
    columns = zip(rows.columns, kept, strict=True)
    return rows.select(
        *(F.col(f"`{name.replace('`', '``')}`").alias(name, metadata=own) for name, own in columns)
    )


def _fingerprint(plan: FeaturePlan, rows: RollingRows, buckets: int) -> str:
    """Name what a checkpoint is for: what is asked, of which rows, and where their keys are."""
    told = nodes_to_json(plan.features)
    for scan in told["scans"]:
        del scan["watermark_us"]  # rows may be less late, or more, from one day to the other
    for trail in told["trails"]:
        del trail["techniques"]
    types = [[field.name, str(field.type)] for field in rows.schema]
    text = json.dumps([told, types, buckets], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
