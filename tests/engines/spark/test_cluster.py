"""A standalone cluster, its workers with no weft but what the job ships: the main example runs.

One master and two workers of the installed pyspark, on this machine. The Python of the executors
sees the packages that weft needs, and not weft itself.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

import weft

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.spark, pytest.mark.slow]
HOST = "127.0.0.1"
SPARK_HOME = Path(pyspark.__file__).parent
SPARK_CLASS = SPARK_HOME / "bin" / "spark-class"
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # six of them start on this machine
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


def free_port() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])


def clean_environment() -> dict[str, str]:
    """Return this process's environment without the Pythons that it names."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "PYTHON"))}
    return kept | {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": HOST}


@contextmanager
def started(folder: Path, *command: str) -> Iterator[None]:
    """Run a daemon of Spark's as long as the block runs."""
    environment = clean_environment()
    environment |= {"SPARK_WORKER_DIR": str(folder), "SPARK_DAEMON_MEMORY": "256m"}
    environment["SPARK_DAEMON_JAVA_OPTS"] = QUICK_JAVA
    with (folder / "daemon.log").open("a") as log:
        daemon = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
    try:
        yield
    finally:
        daemon.terminate()
        daemon.wait(30)


def wait_for(port: int) -> None:
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens on port {port}")


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Start one master and two workers, and return the master's address."""
    port = free_port()
    address = f"spark://{HOST}:{port}"
    ports = ("--host", HOST, "--webui-port", "0")
    deploy = "org.apache.spark.deploy"
    master = (str(SPARK_CLASS), f"{deploy}.master.Master", *ports, "--port", str(port))
    worker = (str(SPARK_CLASS), f"{deploy}.worker.Worker", *ports, "--cores", "1")
    with started(folder, *master):
        wait_for(port)
        with (
            started(folder, *worker, "--memory", "1g", address),
            started(folder, *worker, "--memory", "1g", address),
        ):
            yield address


def python_without_weft(folder: Path) -> Path:
    """Make a Python that finds the installed packages, and not the project beside them."""
    packages = sysconfig.get_paths()["purelib"]
    script = folder / "python"
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec "{sys.executable}" -S "$@"\n'
    )
    script.chmod(0o755)
    return script


@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="submits a job of its own")
def test_the_package_ships_to_a_cluster_with_py_files(tmp_path: Path) -> None:
    package = Path(weft.__file__).parent
    archive = shutil.make_archive(str(tmp_path / "weft"), "zip", package.parent, package.name)
    job = tmp_path / "job.py"
    job.write_text(JOB)
    executor_python = python_without_weft(tmp_path)
    alone = [str(executor_python), "-c", "import weft"]
    found = subprocess.run(alone, env=clean_environment(), capture_output=True, check=False)
    assert found.returncode != 0
    with cluster(tmp_path) as address:
        settings = {
            "spark.cores.max": "2",
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": QUICK_JAVA,
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "spark.driver.host": HOST,
            "spark.pyspark.python": str(executor_python),
            "spark.pyspark.driver.python": sys.executable,
        }
        options = [
            word for name, value in settings.items() for word in ("--conf", f"{name}={value}")
        ]
        submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", address, *options]
        done = subprocess.run(
            [*submit, "--py-files", archive, str(job)],
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    assert "executors 2" in done.stdout
