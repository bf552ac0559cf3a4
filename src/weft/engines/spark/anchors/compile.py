"""From a plan of features to one lazy DataFrame: a shuffle and a sort for each set of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from weft.engines.features import common_type
from weft.engines.spark.anchors.executor import Described, Feeder
from weft.engines.spark.anchors.outputs import named, outputs_of
from weft.engines.spark.anchors.shipment import as_of_shipment, clustered, rolling_shipment
from weft.engines.spark.columnar.hosted_operator import customs_of
from weft.engines.spark.columnar.pickles import dumped
from weft.engines.spark.executors import prepare_executors
from weft.engines.spark.session import spark_schema, types_of
from weft.errors import UnsupportedError
from weft.expression import column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from weft.engines.spark.anchors.shipment import Shipment
    from weft.plan.anchors import FeaturePlan
    from weft.query import Keys


def run_features(
    plan: FeaturePlan, sources: Mapping[str, DataFrame], handed: Sequence[str] | None = None
) -> DataFrame:
    """Return the points with their features, lazily; rows come in no particular order.

    `handed` names the columns of the points that are handed on, if not all of them.
    """
    for name, frame in sources.items():
        if frame.isStreaming:
            raise UnsupportedError(
                f"the {name} are a stream, and features of points are computed in batch",
                hint="pass a table, such as what the stream has written so far; weft.rolling takes "
                "streams",
            )
    points = sources[plan.points.source]
    prepare_executors(points.sparkSession)
    own = points.columns if handed is None else list(handed)
    if plan.points.rolling:
        points = _with_features(plan, points, rolling_shipment(plan, points, own))
    else:
        groups: dict[Any, list[Any]] = {}
        for scope in plan.scopes:
            scan, keys, _ = scope
            types = _key_types(keys, points, sources[scan.source])
            groups.setdefault((tuple(name for name, _ in keys), types), []).append(scope)
        for (_, types), scopes in groups.items():
            shipment = as_of_shipment(plan, points, scopes, types, sources)
            points = _with_features(plan, points, shipment)
    names = [*own, *(name for name, _, _ in plan.features.outputs)]
    return points.select(*(F.col(column(name)) for name in names))


def _key_types(keys: Keys, points: DataFrame, events: DataFrame) -> tuple[pa.DataType, ...]:
    """Return the types in which keys are compared, as Spark tells those of both tables."""
    own = types_of(points, [column(name) for name, _ in keys])
    theirs = types_of(events, [text for _, text in keys])
    pairs = zip(keys, own, theirs, strict=True)
    return tuple(common_type(name, a, b) for (name, _), a, b in pairs)


def _with_features(plan: FeaturePlan, points: DataFrame, shipment: Shipment) -> DataFrame:
    """Send rows through the kernels; return the points with the columns of this shipment."""
    asked = outputs_of(plan, shipment)
    described = Described(
        keys=shipment.keys,
        rolling=plan.points.rolling,
        payload=tuple(dict.fromkeys(shipment.payload)),
        trails=tuple(shipment.own(plan, s) for s in range(len(shipment.trails))),
        outputs=tuple((one.source, one.trail, one.call) for one in asked),
        types=tuple(one.type for one in asked),
    )
    customs = tuple(customs_of(one.call for one in asked))
    sent = {field.name: field for field in shipment.frame.schema}
    found = pa.schema([pa.field(f"f{i}", one.type) for i, one in enumerate(asked)])
    result = StructType(
        [
            *(StructField(name, sent[name].dataType) for name in described.payload),
            *spark_schema(found).fields,
        ]
    )
    rows = clustered(plan, shipment).frame
    rows = rows.mapInArrow(Feeder(dumped((described, customs))), result)
    return named(rows, points, shipment, asked)
