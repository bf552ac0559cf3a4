"""Topics of Kafka as streams of events: records are read as JSON, as Avro, or as they are."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from weft.engines.spark.connectors import AVRO, KAFKA, connect
from weft.engines.spark.session import current_session
from weft.errors import InputError, QueryError, suggest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

SCHEME = "kafka://"
FORMATS = ("json", "avro", "plain")
MALFORMED = ("fail", "skip")
_UNITS = {"s": F.timestamp_seconds, "ms": F.timestamp_millis, "us": F.timestamp_micros}
_PATIENCE_S = 5
_UNREAD = "_weft_unread"
_PLAIN = {"key": "STRING", "value": "STRING"}
_ABOUT = ("topic", "partition", "offset", "timestamp")  # what a record has besides key and value


@dataclass(frozen=True, slots=True)
class Topic:
    """Where a topic is, and the words that were said about it."""

    servers: str
    name: str
    options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(text: str) -> Topic:
        """Read `kafka://host:port,host:port/topic?option=value&...`.

        >>> topic = Topic.of("kafka://a:9092,b:9092/clicks?format=json")
        >>> topic.servers, topic.name, dict(topic.options)
        ('a:9092,b:9092', 'clicks', {'format': 'json'})
        """
        place, _, given = text.removeprefix(SCHEME).partition("?")
        servers, _, name = place.partition("/")
        if not (servers and name) or "/" in name:
            raise InputError(
                f"{text} names no topic",
                hint="write kafka://host:9092/topic?format=json&schema=...",
            )
        return Topic(servers, name, dict(parse_qsl(given, keep_blank_values=True)))

    def __str__(self) -> str:
        return f"{SCHEME}{self.servers}/{self.name}"


def open_topic(session: SparkSession, text: str) -> DataFrame:
    """Open a topic by its place; options that are not weft's go to Spark."""
    topic = Topic.of(text)
    own = ("format", "schema", "time", "unit", "record_time", "record_key", "malformed", "start")
    ours = {name: topic.options[name] for name in own if name in topic.options}
    others = {name: value for name, value in topic.options.items() if name not in own}
    return kafka(topic.servers, topic.name, **ours, options=others, session=session)


def kafka(
    servers: str,
    topic: str,
    *,
    format: str = "json",
    schema: str | os.PathLike[str] | None = None,
    time: str | None = None,
    unit: str | None = None,
    record_time: str | None = None,
    record_key: str | None = None,
    malformed: str = "fail",
    start: str = "earliest",
    options: Mapping[str, str] | None = None,
    session: SparkSession | None = None,
) -> DataFrame:
    """Open a topic as a streaming DataFrame with the columns of its records.

    `format` is "json" with a `schema` such as `"user STRING, ts TIMESTAMP, price DOUBLE"`, "avro"
    with an Avro schema as JSON, or "plain": key and value as text, or as what the schema says
    (`"value DOUBLE"`), with topic, partition, offset and timestamp. A schema may be a file: a
    path, or `@path`.

    The event time is a field: `time` names it where it is a number of seconds, milliseconds or
    microseconds, with its `unit` "s", "ms" or "us". Or it is the record's own, as a column that
    `record_time` names; `record_key` names a column for its key.

    A record that is not of the format stops the stream, and the error says which it is; with
    `malformed="skip"` such are left out. Records without a value are no events. `start` is
    "earliest", "latest", or offsets as Spark writes them; a checkpoint goes on where it was.
    `options` are Spark's (`maxOffsetsPerTrigger`) and the client's (`kafka.security.protocol`).
    Jars that Spark lacks are fetched once, and added to the session.

        clicks = weft.kafka("localhost:9092", "clicks", schema="user STRING, ts TIMESTAMP")
        weft.start(workload, {"clicks": clicks}, sinks="out", checkpoint="state")
    """
    _check(format, FORMATS, "format")
    _check(malformed, MALFORMED, "malformed")
    check_servers(servers)
    session = session or current_session()
    connect(session, KAFKA)
    read = session.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    read = read.option("subscribe", topic).option("startingOffsets", start)
    records = read.options(**dict(options or {})).load().where("value IS NOT NULL")
    asked = None if schema is None else schema_text(schema)
    if format == "plain":
        events = _plain(records, asked, skip=malformed == "skip")
    else:
        if asked is None:
            raise QueryError(
                f"the records of {topic} are {format}, and nothing says which fields they have",
                hint="give a schema: schema='user STRING, ts TIMESTAMP'"
                if format == "json"
                else "give the Avro schema: schema='@clicks.avsc'",
            )
        if format == "avro":
            connect(session, AVRO)
        parsed = _json(asked) if format == "json" else _avro(asked)
        events = _fields(records.withColumn("_read", parsed), format, malformed)
    for name, column in ((record_time, "timestamp"), (record_key, "key")):
        if name is not None:
            own = column if format == "plain" else f"_record.{column}"
            events = events.withColumn(name, F.col(own))
    return _timed(events.drop("_record"), time, unit, topic)


def check_servers(servers: str) -> None:
    """Refuse brokers of which none answers: the client would try for minutes, without a word.

    >>> check_servers("localhost")
    Traceback (most recent call last):
    weft.errors.InputError: 'localhost' is no address of a broker
    hint: write host:port, such as localhost:9092
    """
    if is_remote():  # the server's machine has to reach them, not this one
        return
    reason = ""
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdecimal():
            raise InputError(
                f"{server!r} is no address of a broker",
                hint="write host:port, such as localhost:9092",
            )
        try:
            socket.create_connection((host.strip("[]"), int(port)), _PATIENCE_S).close()
        except (OSError, OverflowError) as error:
            reason = str(error)
        else:
            return
    raise InputError(
        f"no broker answers at {servers}: {reason}",
        hint="is it running, and is that its address as this machine sees it?",
    )


def _check(word: str, known: tuple[str, ...], what: str) -> None:
    if word not in known:
        raise QueryError(
            f"unknown {what} {word!r}", hint=suggest(word, known, f"use one of {', '.join(known)}")
        )


def schema_text(schema: str | os.PathLike[str]) -> str:
    """Return a schema, which `@` or a path says to read from a file."""
    if isinstance(schema, str) and not schema.startswith("@"):
        return schema
    path = Path(os.fspath(schema).removeprefix("@")).expanduser()
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot read the schema {path}: {error.strerror}", hint="name a file of text"
        ) from error


def _json(schema: str) -> Column:
    # What a record has and the schema does not allow is not NULL: it is in a column of its own.
    return F.from_json(
        F.col("value").cast("string"),
        f"{schema.strip()}, {_UNREAD} STRING",
        {"columnNameOfCorruptRecord": _UNREAD, "mode": "PERMISSIVE"},
    )


def _avro(schema: str) -> Column:
    from pyspark.sql.avro.functions import from_avro

    try:
        json.loads(schema)
    except ValueError as error:
        raise QueryError(
            f"the Avro schema is no JSON: {error}", hint="give the text of an .avsc file, or @file"
        ) from error
    return from_avro(F.col("value"), schema, {"mode": "PERMISSIVE"})


def _fields(records: DataFrame, format: str, malformed: str) -> DataFrame:
    """Return the fields of records that were read, and stop at one that was not, or skip it."""
    known = records.schema["_read"].dataType.fieldNames()  # type: ignore[attr-defined]
    unread = F.col("_read").isNull()
    if _UNREAD in known:
        unread = unread | F.col(f"_read.{_UNREAD}").isNotNull()
    record = F.struct(F.col("timestamp"), F.col("key").cast("string").alias("key"))
    names = [name for name in known if name != _UNREAD]
    if malformed == "skip":
        told = records.where(~unread)
        return told.select(*(F.col("_read")[n].alias(n) for n in names), record.alias("_record"))
    where = F.format_string(
        f"topic %s, partition %d, offset %d: the record is not {format} of this schema",
        *(F.col(name) for name in _ABOUT[:3]),
    )
    kind = records.schema["_read"].dataType
    read = F.when(unread, F.raise_error(where).cast(kind)).otherwise(F.col("_read"))
    told = records.select(read.alias("_read"), record.alias("_record"))
    return told.select(*(F.col("_read")[n].alias(n) for n in names), "_record")


def _plain(records: DataFrame, schema: str | None, *, skip: bool) -> DataFrame:
    types = dict(_PLAIN)
    if schema is not None:
        for part in filter(None, (part.split() for part in schema.split(","))):
            if part[0] not in types or len(part) != 2:
                raise QueryError(
                    f"plain records have no column {' '.join(part)!r}",
                    hint="the schema says what key and value are: schema='value DOUBLE'",
                )
            types[part[0]] = part[1]
    columns = []
    for name, kind in types.items():
        cast = "try_cast" if skip else "cast"
        columns.append(F.expr(f"{cast}(cast({name} AS STRING) AS {kind})").alias(name))
    plain = records.select(*columns, *_ABOUT)
    return plain.where("value IS NOT NULL") if skip else plain


def _timed(events: DataFrame, time: str | None, unit: str | None, topic: str) -> DataFrame:
    if time is None:
        if unit is not None:
            raise QueryError("a unit is given, and no field that has it", hint="add time=FIELD")
        return events
    if time not in events.columns:
        raise QueryError(
            f"records of {topic} have no field {time!r}",
            hint=suggest(time, events.columns, f"the fields are {', '.join(events.columns)}"),
        )
    if unit is None:
        return events
    _check(unit, tuple(_UNITS), "unit")
    return events.withColumn(time, _UNITS[unit](F.col(time)))
