"""A standalone cluster, its workers with no weft but what the job ships: the main example runs."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from places.spark_cluster import clean_environment, cluster, python_without_weft, submitted

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.slow]
JOB = '''
import pyarrow as pa
import weft
from pyspark.sql import SparkSession
from weft.compare import first_difference
from weft.generate import sensors

session = SparkSession.builder.getOrCreate()
table = sensors(2_000, 7, devices=5, rate=10.0)
frame = session.createDataFrame(table).repartition(4)
workload = weft.parse("""
    -- name: lows
    SELECT device, System.Window().Id, MIN(temp) AS lo FROM readings TIMESTAMP BY ts
    GROUP BY device, Windows(Window('20s', TumblingWindow(second, 20)),
                             Window('1m/5s', HoppingWindow(second, 60, 5)));
    -- name: visits
    SELECT device, COUNT(*) AS n FROM readings GROUP BY device, session_window(ts, '2 seconds')
""")
wanted = weft.run(workload, {"readings": table}, engine="local")
for strategy in ("native", "columnar"):
    got = weft.run(workload, {"readings": frame}, strategy=strategy)
    for query in workload:
        difference = first_difference(
            query, got[query.name].toArrow(), wanted[query.name], strategy
        )
        assert difference is None, difference

def where(batches):
    import os, weft
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"path": [weft.__file__], "pid": [os.getppid()]})

homes = frame.mapInArrow(where, "path string, pid long").distinct().collect()
assert {row.path for row in homes} and all(".zip" in row.path for row in homes), homes
print("executors", len({row.pid for row in homes}))
session.stop()
'''


# Events pass through a function that kills its worker, or the executor above it, a few times.
KILLED_JOB = '''
import os, signal, sys, uuid
from pathlib import Path
import pyarrow.parquet as pq
import weft
from pyspark.sql import SparkSession
from weft.compare import first_difference
from weft.generate import sensors

place = Path(sys.argv[1])
session = SparkSession.builder.getOrCreate()
session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 100)
table = sensors(4_000, 7, devices=5, rate=10.0)
(query,) = weft.parse("""
    -- name: lows
    SELECT device, System.Window().Id, MIN(temp) AS lo, COUNT(*) AS n FROM readings TIMESTAMP BY ts
    GROUP BY device, Windows(Window('20s', TumblingWindow(second, 20)),
                             Window('1m/5s', HoppingWindow(second, 60, 5)))
""")
query = query.with_watermark("5 seconds")

def killing(marks, of_executor):
    def passed(batches):
        for at, batch in enumerate(batches):
            mark = Path(marks) / uuid.uuid4().hex
            if at == 1 and len(list(Path(marks).iterdir())) < 2:
                mark.touch()
                # The parent of a worker is its daemon, and the daemon's is the executor.
                daemon = os.getppid()
                status = Path(f"/proc/{daemon}/status").read_text()
                executor = int(status.split("PPid:")[1].split()[0])
                os.kill(executor if of_executor else os.getpid(), signal.SIGKILL)
            yield batch
    return passed

def through(frame, name, of_executor):
    marks = place / name
    marks.mkdir()
    return frame.mapInArrow(killing(str(marks), of_executor), frame.schema), marks

def same(got, wanted, what):
    difference = first_difference(query, got, wanted, what)
    assert difference is None, difference

everything = weft.run(query, {"readings": table}, engine="local")
pq.write_table(table, place / "all.parquet")
whole = session.read.parquet(str(place / "all.parquet"))
(place / "in").mkdir()
for at in range(4):
    path = place / "in" / f"{at}.parquet"
    pq.write_table(table.slice(at * 1000, 1000), path)
    os.utime(path, (1_700_000_000 + at,) * 2)
stream = session.readStream.schema(whole.schema).option("maxFilesPerTrigger", 1)
from weft.sessions.replay import closed_rows
closed = closed_rows(query, everything, table)
assert closed.num_rows > 100
for of_executor in (False, True):
    name = "executor" if of_executor else "worker"
    for strategy in ("native", "columnar"):
        frame, marks = through(whole, f"batch {strategy} {name}", of_executor)
        got = weft.run(query, {"readings": frame}, strategy=strategy).toArrow()
        same(got, everything, f"batch {strategy} {name}")
        assert len(list(marks.iterdir())) >= 1
        what = f"stream {strategy} {name}"
        frame, marks = through(stream.parquet(str(place / "in")), what, of_executor)
        out, checkpoint = place / f"out {what}", place / f"checkpoint {what}"
        weft.start(
            query, {"readings": frame}, out, checkpoint, "once", strategy
        ).awaitTermination()
        same(session.read.parquet(str(out)).drop("batch").toArrow(), closed, what)
        assert len(list(marks.iterdir())) >= 1
        print("survived", strategy, name)
session.stop()
'''


@pytest.mark.soak
@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="submits a job of its own")
def test_the_package_ships_to_a_cluster_with_py_files(tmp_path: Path) -> None:
    alone = [str(python_without_weft(tmp_path)), "-c", "import weft"]
    found = subprocess.run(alone, env=clean_environment(), capture_output=True, check=False)
    assert found.returncode != 0
    with cluster(tmp_path) as address:
        settings = {
            "spark.cores.max": "2",
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.sql.shuffle.partitions": "2",
        }
        printed = submitted(tmp_path, address, JOB, settings, patience_s=240)
    assert "executors 2" in printed


@pytest.mark.soak
@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="submits a job of its own")
def test_workers_and_executors_that_are_killed_change_no_row(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with cluster(tmp_path) as address:
        settings = {
            "spark.cores.max": "2",
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.sql.shuffle.partitions": "2",
        }
        told = submitted(tmp_path, address, KILLED_JOB, settings, str(place), patience_s=600)
    assert told.count("survived") == 4
