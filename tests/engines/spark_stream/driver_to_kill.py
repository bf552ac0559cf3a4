"""The driver of a stream, as a process that is killed: `driver_to_kill.py PLACE STRATEGY`.

Spark is up before the driver is told to go on, so several can wait their turn; what is killed is a
stream at work, from planning to its last commit.
"""

from __future__ import annotations

import sys
from pathlib import Path

import weft
from weft.engines.spark.session import local_session
from weft.engines.spark.streaming.sources import open_stream

SQL = """-- name: counts
SELECT k, COUNT(*) AS n, MIN(v) AS lo FROM r TIMESTAMP BY ts
GROUP BY k, Windows(Window('10s', TumblingWindow(second, 10)),
                    Window('30s', TumblingWindow(second, 30)),
                    Window('40s/10s', HoppingWindow(second, 40, 10)))
"""
READY = "ready"
# What is compiled here runs for seconds: none of it is worth a compiler's time.
LIGHT = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
    "spark.driver.memory": "512m",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def asked() -> weft.Query:
    """The query whose rows are counted after all the kills."""
    (query,) = weft.parse(SQL).queries
    assert isinstance(query, weft.Query)
    return query.with_watermark("5 seconds")


def main(place: Path, strategy: str) -> None:
    """Start Spark, wait for a line, and run the stream over all files that are there."""
    session = local_session(1, LIGHT)
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    sys.stdin.readline()
    weft.start(
        weft.Workload([asked()]),
        {"r": open_stream(session, str(place / "in"), files_per_batch=1)},
        place / "out",
        place / "checkpoint",
        "once",
        strategy,
        planner="slice",  # two states, whose commits a kill may come between
    ).awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
