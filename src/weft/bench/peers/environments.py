"""Who takes part, and where: here, or in an environment of its own in the user's cache."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path

_MAVEN = "https://repo1.maven.org/maven2/org/apache/"
_MARK = "made-from.txt"
_FLINK, _HADOOP = "2.3.0", "3.4.2"


@dataclass(frozen=True)
class Peer:
    """A contender: its script among the runners, and what its own environment is made from.

    `most_copies` bounds the events it is given, counted once for each instance they are in: one
    that takes microseconds for each would take the whole run.
    """

    name: str
    title: str
    runner: str
    packages: tuple[str, ...] = ()
    jars: tuple[str, ...] = ()
    most_copies: int | None = None
    cluster: bool = False  # made for a cluster, and compared with weft on Spark


PEERS = {
    peer.name: peer
    for peer in (
        Peer("weft", "weft, in the process", "weft_local"),
        Peer("weft-spark", "weft, on Spark", "weft_spark", cluster=True),
        Peer("stock-spark", "Spark, stock", "spark_stock", cluster=True),
        Peer("expert-spark", "Spark, by an expert's hand", "spark_expert", cluster=True),
        Peer("segment-tree", "Spark, its segment tree on", "spark_tree", cluster=True),
        Peer(
            "flink",
            "Flink SQL",
            "flink_sql",
            (f"apache-flink=={_FLINK}",),
            (
                f"flink/flink-sql-parquet/{_FLINK}/flink-sql-parquet-{_FLINK}.jar",
                f"hadoop/hadoop-client-api/{_HADOOP}/hadoop-client-api-{_HADOOP}.jar",
                f"hadoop/hadoop-client-runtime/{_HADOOP}/hadoop-client-runtime-{_HADOOP}.jar",
            ),
            cluster=True,
        ),
        Peer("duckdb", "DuckDB", "duckdb_sql"),
        Peer("polars", "Polars", "polars_frames"),
        Peer("pandas", "pandas", "pandas_frames", most_copies=20_000_000),
        Peer(
            "bytewax",
            "Bytewax",
            "bytewax_flow",
            ("bytewax==0.21.1", "pyarrow==26.0.1"),
            most_copies=100_000,
        ),
        Peer("pathway", "Pathway", "pathway_tables", ("pathway==0.33.0",), most_copies=60_000),
    )
}


class Unavailable(Exception):
    """A peer's environment cannot be made; the text says why."""


def interpreter(peer: Peer) -> Path:
    """Return the Python that runs a peer; its environment is made the first time."""
    if not peer.packages:
        return Path(sys.executable)
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(cache, "weft", "peers", peer.name).expanduser()
    wanted = "\n".join((*peer.packages, *peer.jars))
    mark = folder / _MARK
    if not mark.is_file() or mark.read_text(encoding="utf-8") != wanted:
        _make(peer, folder)
        mark.write_text(wanted, encoding="utf-8")
    return folder / "bin" / "python"


def _make(peer: Peer, folder: Path) -> None:
    python = folder / "bin" / "python"
    words = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in ([sys.executable, "-m", "venv", str(folder)], [*words, *peer.packages]):
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            said = [line for line in made.stderr.splitlines() if line.strip()]
            raise Unavailable(said[-1] if said else f"{command[1:]} failed")
    jars = folder / "jars"
    jars.mkdir(exist_ok=True)
    for jar in peer.jars:
        try:
            urllib.request.urlretrieve(_MAVEN + jar, jars / Path(jar).name)
        except OSError as reason:
            raise Unavailable(f"{Path(jar).name}: {reason}") from reason
