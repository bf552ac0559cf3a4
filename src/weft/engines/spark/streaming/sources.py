"""Streams by name: a directory of files, or any source that Spark has."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from weft.engines.spark.connectors import AVRO, KAFKA
from weft.engines.spark.streaming.checkpoint.places import Place
from weft.engines.spark.streaming.kafka import SCHEME as KAFKA_SCHEME
from weft.engines.spark.streaming.kafka import open_topic
from weft.errors import DataError
from weft.tables import format_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from weft.engines.spark.connectors import Connector

_OPTIONS_MARK = "://?"
_READ_OPTIONS = {"csv": {"header": "true", "inferSchema": "true"}}


def open_stream(session: SparkSession, text: str, files_per_batch: int | None = None) -> DataFrame:
    """Open a stream: a directory of parquet, csv or json files, or `FORMAT://?option=value&...`.

    `kafka://host:9092/readings?format=json&schema=...` reads a topic, with the options of
    `weft.kafka`; `rate://?rowsPerSecond=100` is Spark's own source of rows to try things with. The
    columns of a directory are those of the files that are there when the stream is opened.
    """
    if text.startswith(KAFKA_SCHEME) and _OPTIONS_MARK not in text:
        return open_topic(session, text)
    if _OPTIONS_MARK in text:
        name, _, given = text.partition(_OPTIONS_MARK)
        named = dict(parse_qsl(given, strict_parsing=bool(given)))
        return session.readStream.format(name).options(**named).load()
    place = Place.of(text)
    format = _format_of(place)
    options = _READ_OPTIONS.get(format, {})
    schema = session.read.format(format).options(**options).load(place.uri).schema
    reader = session.readStream.format(format).schema(schema).options(**options)
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    return reader.load(place.uri)


def connectors_of(places: Iterable[str]) -> list[Connector]:
    """Name what Spark needs to read and write these places, to be started with it."""
    topics = [place for place in places if place.startswith(KAFKA_SCHEME)]
    avro = any("format=avro" in place for place in topics)
    return [KAFKA, AVRO][: 1 + avro] if topics else []


def _format_of(place: Place) -> str:
    names = [name for name in place.names() if name[0] not in "._"]
    if not names:
        raise DataError(
            f"cannot tell the columns of {place}: there is no file in it",
            hint="put a first file there; others may follow while the stream runs",
        )
    return format_of(names[0])
