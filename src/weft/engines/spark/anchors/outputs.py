"""The features of a shipment: what executors compute of which rows, and what users call it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.engines.spark.columnar.hosted_operator import result_type
from weft.engines.spark.native.events import check_argument
from weft.engines.spark.session import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from weft.aggregates import AggregateCall
    from weft.engines.spark.anchors.shipment import Shipment
    from weft.plan.anchors import FeaturePlan


@dataclass(frozen=True, slots=True)
class Output:
    """One feature: the source of its events, the place of its trail there, its call and type."""

    name: str
    source: int
    trail: int
    call: AggregateCall  # its arguments are columns of the shipment
    type: pa.DataType


def outputs_of(plan: FeaturePlan, shipment: Shipment) -> list[Output]:
    """Return the features of a shipment; refuse arguments that an aggregate does not take."""
    schema = arrow_schema(shipment.frame.schema)
    sent = {field.name: field for field in shipment.frame.schema}
    outputs: list[Output] = []
    for source, trails in enumerate(shipment.trails):
        named = {own: text for text, own in shipment.arguments[source].items()}
        types = {text: sent[own].dataType for own, text in named.items()}
        for name, at, asked in plan.outputs_of(trails):
            call = shipment.call(asked, source)
            check_argument(replace(call, args=tuple(named[own] for own in call.args)), types)
            type = result_type(call, schema)
            outputs.append(Output(name, source, trails.index(at), call, type))
    return outputs


def named(
    rows: DataFrame, points: DataFrame, shipment: Shipment, outputs: Sequence[Output]
) -> DataFrame:
    """Give columns of executors the names that users know: those of the points, then features."""
    return rows.select(
        *(
            F.col(own).alias(field.name, metadata=field.metadata)
            for own, field in zip(shipment.payload, shipment.handed(points), strict=True)
        ),
        *(F.col(f"f{i}").alias(one.name) for i, one in enumerate(outputs)),
    )
