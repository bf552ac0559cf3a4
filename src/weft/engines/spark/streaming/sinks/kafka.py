"""Topics as sinks: a record for each row, with headers that tell a row written twice.

A micro-batch that is run again after a crash writes its rows again. Headers name the stream, the
number of the micro-batch and the row: a consumer that leaves out what it has seen under them has
each row exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.engines.spark.connectors import AVRO, KAFKA, connect
from weft.engines.spark.streaming.avro_schema import avro_schema
from weft.engines.spark.streaming.kafka import Topic, check_servers, schema_text
from weft.engines.spark.streaming.sinks.base import QUERY, named
from weft.errors import InputError, QueryError, suggest
from weft.targets.base import RowIdentity, checked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from weft.engines.spark.streaming.sinks.base import Origin

FORMATS = ("json", "avro")
EXACTLY_ONCE, AT_LEAST_ONCE = DELIVERIES = ("exactly-once", "at-least-once")
STREAM_HEADER, BATCH_HEADER, ROW_HEADER = "weft-stream", "weft-batch", "weft-row"
_OPTIONS = ("format", "delivery", "key", "schema")
# All digits that instants have, and NULLs as such: a row reads back as it was.
_JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}


@dataclass(frozen=True, slots=True)
class KafkaSink:
    """A topic; rows are records of JSON or Avro, the keys of the query are their keys.

    `key` names the columns that tell rows apart, where the query does not. `schema` is the Avro
    schema to write with; without one it is `avro_schema` of the columns. `options` are those of
    the client.
    """

    servers: str
    topic: str
    format: str = "json"
    delivery: str = EXACTLY_ONCE
    key: tuple[str, ...] = ()
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for word, known in ((self.format, FORMATS), (self.delivery, DELIVERIES)):
            if word not in known:
                raise QueryError(
                    f"a topic cannot be written with {word!r}",
                    hint=suggest(word, known, f"use one of {', '.join(known)}"),
                )

    @staticmethod
    def of(text: str) -> KafkaSink:
        """Read `kafka://host:port/topic?format=json&delivery=exactly-once`."""
        topic = Topic.of(text)
        asked = {name: topic.options[name] for name in _OPTIONS if name in topic.options}
        key = tuple(filter(None, asked.pop("key", "").split(",")))
        if "schema" in asked:
            asked["schema"] = schema_text(asked["schema"])
        others = {name: v for name, v in topic.options.items() if name not in _OPTIONS}
        for name in others:
            if not name.startswith("kafka."):
                raise InputError(
                    f"option {name!r} of the topic is unknown",
                    hint=suggest(name, _OPTIONS, f"known are {', '.join(_OPTIONS)}, and kafka.*"),
                )
        return KafkaSink(topic.servers, topic.name, key=key, options=others, **asked)

    def __str__(self) -> str:
        return str(Topic(self.servers, self.topic))

    def check(self, query: str, identity: RowIdentity | None) -> None:
        """Refuse rows that could not be told apart, unless some may come twice; and no broker."""
        check_servers(self.servers)
        if self.delivery == EXACTLY_ONCE:
            checked(self.key, query, identity, self)

    def write_from(self, rows: DataFrame, batch_id: int, origin: Origin) -> None:
        """Write a record for each row."""
        session = rows.sparkSession
        connect(session, KAFKA)
        if self.format == "avro":
            connect(session, AVRO)
        identity = RowIdentity(self.key) if self.key else origin.identity
        whole = named(rows, origin.query if origin.shared else None)
        columns = [_record_key(identity).alias("key"), self._value(whole).alias("value")]
        if self.delivery == EXACTLY_ONCE:
            assert identity is not None  # checked before the stream started
            columns.append(_headers(batch_id, origin, identity).alias("headers"))
        records = whole.select(*columns).write.format("kafka").options(**self.options)
        records.option("kafka.bootstrap.servers", self.servers).option("topic", self.topic).save()

    def _value(self, rows: DataFrame) -> Column:
        row = F.struct(*(F.col(f"`{name}`") for name in rows.columns))
        if self.format == "json":
            return F.to_json(row, _JSON)
        from pyspark.sql.avro.functions import to_avro

        return to_avro(row, self.schema or avro_schema(rows.schema))


def _record_key(identity: RowIdentity | None) -> Column:
    """Return the text of the key, or of several as JSON; rows without any have no key."""
    keys = identity.keys if identity is not None else ()
    if not keys:
        return F.lit(None).cast("string")
    if len(keys) == 1:
        return F.col(f"`{keys[0]}`").cast("string")
    return F.to_json(F.struct(*(F.col(f"`{name}`") for name in keys)), _JSON)


def _headers(batch_id: int, origin: Origin, identity: RowIdentity) -> Column:
    telling = [F.lit(origin.query).alias(QUERY)] if origin.shared else []
    telling += [F.col(f"`{name}`") for name in identity.columns]
    row = F.md5(F.to_json(F.struct(*telling), _JSON).cast("binary"))
    named_values = {
        STREAM_HEADER: F.lit(origin.stream),
        BATCH_HEADER: F.lit(str(batch_id)),
        ROW_HEADER: row,
    }
    return F.array(
        *(
            F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))
            for name, value in named_values.items()
        )
    )
