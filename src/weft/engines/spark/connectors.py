"""Jars that Spark does not bring along: found for the installed Spark, fetched once, and kept.

Maven may lack a connector for the newest Spark; then the nearest earlier one is taken, which the
docs say for each version that was tried. Jars stay in a folder of the user's: `WEFT_JARS`, or
`weft/jars` in the cache folder. Jars that are there need no network.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weft.errors import InputError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

MAVEN = "https://repo1.maven.org/maven2"
_PATIENCE_S = 60
_MISSING = 404


@dataclass(frozen=True, slots=True)
class Artifact:
    """A jar of Maven's: its group, its name, and the versions that will do, best first."""

    group: str
    name: str
    versions: tuple[str, ...]

    @staticmethod
    def of(coordinates: str) -> Artifact:
        """Read `group:name:version`, with further versions after commas.

        >>> Artifact.of("org.example:thing:2.0,1.9").paths
        ('org/example/thing/2.0/thing-2.0.jar', 'org/example/thing/1.9/thing-1.9.jar')
        """
        group, name, versions = coordinates.split(":")
        return Artifact(group, name, tuple(dict.fromkeys(versions.split(","))))

    @property
    def paths(self) -> tuple[str, ...]:
        """Where a repository has it."""
        folder = f"{self.group.replace('.', '/')}/{self.name}"
        return tuple(f"{folder}/{v}/{self.name}-{v}.jar" for v in self.versions)


@dataclass(frozen=True, slots=True)
class Connector:
    """What lets Spark read and write a format: a class that it has then, and its jars."""

    name: str
    probe: str
    jars: tuple[str, ...]

    def artifacts(self, spark: str) -> list[Artifact]:
        """Name its jars for a version of Spark; releases from 4.0 on are built with Scala 2.13."""
        scala = "2.12" if spark.startswith("3.") else "2.13"
        return [Artifact.of(text.format(spark=spark, scala=scala)) for text in self.jars]


KAFKA = Connector(
    "kafka",
    "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    (
        "org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark},4.2.0,4.1.3,4.0.2,3.5.8",
        "org.apache.spark:spark-token-provider-kafka-0-10_{scala}:{spark},4.1.0-preview1,4.0.0,3.5.4",
        "org.apache.kafka:kafka-clients:3.9.2",
        "org.apache.commons:commons-pool2:2.13.1",
    ),
)
AVRO = Connector(
    "avro",
    "org.apache.spark.sql.avro.AvroDataToCatalyst",
    ("org.apache.spark:spark-avro_{scala}:{spark},4.1.1,4.0.2,3.5.7",),
)


def jar_folder() -> Path:
    """Return where jars are kept."""
    given = os.environ.get("WEFT_JARS")
    if given:
        return Path(given).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache, "weft", "jars").expanduser()


def fetched(artifacts: Iterable[Artifact]) -> list[Path]:
    """Return the files of jars; those that are not kept yet come from Maven, and are checked."""
    folder = jar_folder()
    return [_kept(folder, artifact) or _fetch(folder, artifact) for artifact in artifacts]


def _kept(folder: Path, artifact: Artifact) -> Path | None:
    places = (folder / Path(path).name for path in artifact.paths)
    return next((place for place in places if place.is_file()), None)


def _fetch(folder: Path, artifact: Artifact) -> Path:
    root = os.environ.get("WEFT_MAVEN", MAVEN).rstrip("/")
    for path in artifact.paths:
        url = f"{root}/{path}"
        try:
            content, told = _read(url), _read(f"{url}.sha1").split()[0].decode()
        except urllib.error.HTTPError as error:
            if error.code == _MISSING:
                continue
            raise _unreachable(folder, artifact, str(error)) from error
        except OSError as error:
            raise _unreachable(folder, artifact, str(error)) from error
        if hashlib.sha1(content, usedforsecurity=False).hexdigest() != told:
            raise _unreachable(folder, artifact, f"{url} came damaged")
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / Path(path).name
        passing = place.with_suffix(f".{os.getpid()}.part")
        passing.write_bytes(content)
        passing.replace(place)  # nobody finds half a jar
        return place
    raise _unreachable(folder, artifact, f"{root} has none of {', '.join(artifact.versions)}")


def _read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=_PATIENCE_S) as answer:
        content: bytes = answer.read()
    return content


def _unreachable(folder: Path, artifact: Artifact, reason: str) -> InputError:
    wanted = Path(artifact.paths[0]).name
    return InputError(
        f"{artifact.group}:{artifact.name} cannot be fetched: {reason}",
        hint=f"put {wanted} into {folder}, or name a folder that has it with WEFT_JARS, or a "
        "mirror of Maven with WEFT_MAVEN",
    )


def with_jars(connectors: Iterable[Connector]) -> dict[str, str]:
    """Return the settings of a session that is started with the jars of connectors."""
    import pyspark

    jars = [jar for one in connectors for jar in fetched(one.artifacts(pyspark.__version__))]
    return {"spark.jars": ",".join(map(str, jars))} if jars else {}


def connect(session: SparkSession, connector: Connector) -> None:
    """Let a session read and write a format, if it does not by itself.

    A server of Spark Connect has to be started with the jars: it is asked to do its best.
    """
    from pyspark.sql.utils import is_remote

    if is_remote() or _has(session, connector.probe):
        return
    version = session.version.removesuffix("-SNAPSHOT")
    for jar in fetched(connector.artifacts(version)):
        # Also for the executors, and for streams that are started from now on.
        session.sql(f"ADD JAR '{jar}'").collect()
    if not _has(session, connector.probe):
        raise UnsupportedError(
            f"Spark {version} has no {connector.name}, and did not take it while it runs",
            hint=f"start Spark with spark.jars={','.join(map(str, jar_folder().glob('*.jar')))}",
        )


def _has(session: SparkSession, name: str) -> bool:
    """Tell whether the driver finds a class, where data sources are looked for too."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    jvm = session.sparkContext._jvm
    assert jvm is not None
    try:
        jvm.org.apache.spark.util.Utils.classForName(name, False, False)
    except Py4JJavaError:
        return False
    return True
