"""Where the rows of a stream go: files, tables, functions; written anew, nothing comes twice.

After a crash Spark runs the last micro-batch again, with the number it had and the same events.
A sink that knows what it wrote under a number therefore writes each row exactly once.
"""

from weft.engines.spark.streaming.sinks.base import Origin, Sink, ToldSink
from weft.engines.spark.streaming.sinks.files import FileSink, TableSink
from weft.engines.spark.streaming.sinks.functions import FunctionSink
from weft.engines.spark.streaming.sinks.kafka import KafkaSink
from weft.engines.spark.streaming.sinks.routes import (
    Route,
    SinkRoots,
    as_sink,
    routes_of,
    routes_with,
)
from weft.engines.spark.streaming.sinks.upserts import UpsertSink

__all__ = [
    "FileSink", "FunctionSink", "KafkaSink", "Origin", "Route", "Sink", "SinkRoots", "TableSink",
    "ToldSink", "UpsertSink", "as_sink", "routes_of", "routes_with",
]  # fmt: skip
