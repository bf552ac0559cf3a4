"""A standalone cluster of the installed pyspark on this machine: one master, two workers.

The Python of the executors sees the packages that weft needs, and not weft itself.
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

import weft
from places.kafka_broker import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HOST = "127.0.0.1"
SPARK_HOME = Path(pyspark.__file__).parent
SPARK_CLASS = SPARK_HOME / "bin" / "spark-class"
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # six of them start on this machine


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
def cluster(folder: Path, cores: int = 1) -> Iterator[str]:
    """Start one master and two workers of 1 GB, and return the master's address."""
    port = free_port()
    address = f"spark://{HOST}:{port}"
    ports = ("--host", HOST, "--webui-port", "0")
    deploy = "org.apache.spark.deploy"
    master = (str(SPARK_CLASS), f"{deploy}.master.Master", *ports, "--port", str(port))
    worker = (str(SPARK_CLASS), f"{deploy}.worker.Worker", *ports, "--cores", str(cores))
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


def submitted(
    folder: Path,
    address: str,
    job: str,
    settings: Mapping[str, str],
    *words: str,
    patience_s: int,
    shipped: bool = True,
) -> str:
    """Run a job on the cluster and return what it printed.

    weft goes along as an archive, or else executors have it, and its compiled kernels.
    """
    package = Path(weft.__file__).parent
    script = folder / "job.py"
    script.write_text(job)
    every = {
        "spark.executor.extraJavaOptions": QUICK_JAVA,
        "spark.ui.enabled": "false",
        "spark.driver.host": HOST,
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.executorEnv.PYTHONPATH": str(package.parent),
        **settings,
    }
    environment, along = clean_environment() | {"PYTHONPATH": str(package.parent)}, []
    if shipped:
        del environment["PYTHONPATH"], every["spark.executorEnv.PYTHONPATH"]
        every["spark.pyspark.python"] = str(python_without_weft(folder))
        archive = shutil.make_archive(str(folder / "weft"), "zip", package.parent, package.name)
        along = ["--py-files", archive]
    options = [word for name, value in every.items() for word in ("--conf", f"{name}={value}")]
    submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", address, *options]
    done = subprocess.run(
        [*submit, *along, str(script), *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=patience_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    return done.stdout
