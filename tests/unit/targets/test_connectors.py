"""Jars: kept ones need no network, fetched ones are checked, and what is missing is said."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

import weft
from weft.engines.spark.connectors import AVRO, KAFKA, Artifact, fetched
from weft.engines.spark.streaming.sinks import KafkaSink, as_sink

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in a folder, and an empty folder for jars."""
    monkeypatch.setenv("WEFT_MAVEN", (tmp_path / "maven").as_uri())
    monkeypatch.setenv("WEFT_JARS", str(tmp_path / "jars"))
    return tmp_path / "maven"


def put(maven: Path, path: str, content: bytes, told: bytes | None = None) -> None:
    place = maven / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    digest = hashlib.sha1(told or content, usedforsecurity=False).hexdigest()
    place.with_suffix(".jar.sha1").write_text(f"{digest}  {place.name}\n")


def test_a_jar_is_fetched_once_and_the_folder_is_enough_afterwards(maven: Path) -> None:
    put(maven, "org/x/thing/2.0/thing-2.0.jar", b"jar")
    artifact = Artifact.of("org.x:thing:2.0")
    (jar,) = fetched([artifact])
    assert jar.read_bytes() == b"jar"
    (maven / "org/x/thing/2.0/thing-2.0.jar").unlink()
    assert fetched([artifact]) == [jar]
    assert [path.name for path in jar.parent.iterdir()] == ["thing-2.0.jar"]


def test_damaged_and_missing_jars_are_told_with_what_to_do(maven: Path, tmp_path: Path) -> None:
    put(maven, "org/x/thing/2.0/thing-2.0.jar", b"half a j", told=b"half a jar")
    with pytest.raises(weft.InputError, match="came damaged"):
        fetched([Artifact.of("org.x:thing:2.0")])
    with pytest.raises(weft.InputError, match="other cannot be fetched") as refusal:
        fetched([Artifact.of("org.x:other:1.0")])
    assert f"put other-1.0.jar into {tmp_path / 'jars'}" in str(refusal.value)
    assert not (tmp_path / "jars").exists()


def test_topics_without_a_broker_or_a_schema_are_refused_before_spark_starts() -> None:
    with pytest.raises(weft.InputError, match=r"no broker answers at .* refused"):
        weft.kafka("127.0.0.1:1", "clicks", schema="ts TIMESTAMP")
    with pytest.raises(weft.QueryError, match="unknown format 'jsn'"):
        weft.kafka("127.0.0.1:1", "clicks", format="jsn")
    with pytest.raises(weft.InputError, match="names no topic"):
        as_sink("kafka://127.0.0.1:9092")
    with pytest.raises(weft.InputError, match="option 'delivry' of the topic is unknown"):
        as_sink("kafka://127.0.0.1:9092/closed?delivry=at-least-once")
    closed = as_sink("kafka://127.0.0.1:1/closed?delivery=at-least-once")
    assert isinstance(closed, KafkaSink)
    with pytest.raises(weft.InputError, match="no broker answers"):
        closed.check("q", None)


def test_the_version_of_spark_comes_first_and_scala_follows_it() -> None:
    newest = KAFKA.artifacts("4.3.0")[0]
    assert newest.name == "spark-sql-kafka-0-10_2.13"
    assert newest.versions[:2] == ("4.3.0", "4.2.0")
    assert AVRO.artifacts("3.5.9")[0].name == "spark-avro_2.12"
