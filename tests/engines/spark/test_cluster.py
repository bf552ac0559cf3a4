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
