"""A Kafka broker of its own: one Java process, started with a new log and gone afterwards."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from weft.engines.spark.connectors import Artifact, fetched

if TYPE_CHECKING:
    from collections.abc import Iterator

JARS = Path(__file__).with_name("kafka_jars.txt")
PATIENCE_S = 60
# Records of tests have times of years ago, and would be removed as too old.
SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/log
log.retention.ms=-1
num.partitions=1
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""
LOGGING = """\
Configuration:
  Appenders:
    Console: {name: out, PatternLayout: {pattern: "%p %c{1}: %m%n"}}
  Loggers:
    Root: {level: warn, AppenderRef: {ref: out}}
"""


def broker_jars() -> list[Path]:
    """Return the files that a broker needs; the first time, they come from Maven."""
    lines = JARS.read_text().splitlines()
    return fetched(Artifact.of(line) for line in lines if not line.startswith("#"))


@contextmanager
def kafka_broker(folder: Path) -> Iterator[str]:
    """Run a broker, and say where it listens."""
    port, controller = free_port(), free_port()
    settings, log = folder / "server.properties", folder / "said"
    settings.write_text(SETTINGS.format(port=port, controller=controller, folder=folder))
    (folder / "log4j2.yaml").write_text(LOGGING)
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    format_words = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
    with log.open("w") as said:
        subprocess.run(java(folder, *format_words), check=True, stdout=said, stderr=said)
        broker = subprocess.Popen(
            java(folder, "kafka.Kafka", str(settings)), stdout=said, stderr=said
        )
    try:
        latest = time.monotonic() + PATIENCE_S
        while not listens(port):
            assert broker.poll() is None, log.read_text()
            assert time.monotonic() < latest, log.read_text()
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        broker.kill()  # its log goes as well
        broker.wait()


def java(folder: Path, *words: str) -> list[str]:
    """Return a command that lives for a minute, and needs no better compiler."""
    home = os.environ.get("JAVA_HOME")
    path = ":".join(map(str, broker_jars()))
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
    logging = f"-Dlog4j2.configurationFile={folder / 'log4j2.yaml'}"
    return [
        str(Path(home, "bin", "java")) if home else "java",
        *options,
        logging,
        "-cp",
        path,
        *words,
    ]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


def listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0
