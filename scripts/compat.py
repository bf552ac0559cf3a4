"""Try weft with every Spark that people run, and write down what works: docs/versions.md.

Run by `make compat`, or for some of it `make compat ARGS="4.1.4 client dbt"`. What is not in the
pinned environment goes into folders of the user's cache, once: PySpark of each version, the client
that has no Spark, dbt. The rest is the pinned one. A way that used to work and does not is an
error.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from importlib.metadata import distributions, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSIONS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
CLIENT = "4.2.0"  # the newest there is; servers of a newer Spark take older clients
# Newer ones have a parser that is built from sources.
DBT = ("dbt-core<1.12", "dbt-duckdb<1.12")
LAKES = {"delta": "4.2.1", "iceberg": "4.1.4"}  # the newest Spark that each one's connector knows
ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "versions.md"
TRIALS = ROOT / "tests" / "compat"
PATIENCE_S = 600
HEADER = """\
# Versions of Spark

What works with which Spark, as `make compat` found it: every way of running is tried against the
reference engine, with PySpark of that version and the other packages as pinned. A hyphen means
that weft refuses, with the reason below.

"""
CLIENTS = """\
`pyspark-client` is the part of PySpark that talks to a server of Spark Connect, without Spark and
Java. Batches run with it alone; what is in Python runs by the server's Python, which needs weft.

"""
CONNECTORS = """\
The sinks `delta://` and `iceberg://` need no jar and run with every Spark above. With the newest
Spark that each lake's own connector knows, that connector reads what a stream of weft's wrote over
a restart, and weft reads what it wrote, in batch and as a stream:

"""


def environment(name: str, *packages: str) -> Path:
    """Return the folder that has packages which are not pinned; they are fetched the first time."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(cache, "weft", "compat", name).expanduser()
    if not folder.is_dir():
        say(f"fetching {', '.join(packages)} into {folder}")
        unfinished = folder.with_name(f"{name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        words = ["install", "--quiet", "--target", str(unfinished), *packages]
        subprocess.run([sys.executable, "-m", "pip", *words], check=True)
        unfinished.rename(folder)
    return folder


def with_packages(*folders: Path) -> dict[str, str]:
    """Return the variables of a process that finds these packages first, and then the pinned."""
    found = {**os.environ, "WEFT_RUNS": os.devnull}
    path = (*map(str, folders), str(ROOT / "src"), os.environ.get("PYTHONPATH", ""))
    found["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    return found


def tried(version: str, remote: str | None) -> dict[str, Any]:
    """Run the trial with a version of PySpark, and return what it found."""
    return trial(version, remote, environment(version, "--no-deps", f"pyspark=={version}"))


def trial(version: str, remote: str | None, *folders: Path) -> dict[str, Any]:
    """Run the trial with the packages in these folders, and return what it found."""
    found = with_packages(*folders)
    if remote is not None:
        found["SPARK_REMOTE"] = remote
    return answered(f"Spark {version}", found, "spark_version.py")


def lake(kind: str) -> dict[str, str]:
    """Let Spark's own connector of a lake read what weft writes, and the other way round."""
    pyspark = environment(LAKES[kind], "--no-deps", f"pyspark=={LAKES[kind]}")
    return answered(kind, with_packages(pyspark, ROOT / "tests"), "lake_tables.py", kind)


def answered(what: str, variables: dict[str, str], script: str, *words: str) -> dict[str, Any]:
    """Run a trial in a process of its own, and return its last line."""
    run = subprocess.run(
        [sys.executable, str(TRIALS / script), *words],
        env=variables,
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
    )
    if run.returncode != 0:
        raise SystemExit(f"the trial of {what} ended with {run.returncode}")
    told: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return told


@contextmanager
def connect_server() -> Iterator[str]:
    """Run a Connect server of the pinned Spark as long as the block runs, and tell its address."""
    import pyspark

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    home = Path(pyspark.__file__).parent
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += [word for pair in settings.items() for word in ("--conf", "=".join(pair))]
    with tempfile.TemporaryDirectory() as place:
        server = subprocess.Popen(
            command, env=with_packages(), cwd=place, stderr=subprocess.DEVNULL
        )
        try:
            wait_for(port, server)
            yield f"sc://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(60)


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until a server listens."""
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if server.poll() is not None:
            raise SystemExit(f"the server of Spark Connect ended with {server.returncode}")
        time.sleep(0.2)
    raise SystemExit(f"no server listens on port {port}")


def client() -> dict[str, Any]:
    """Try the client that has no Spark against a server of the pinned one."""
    folder = environment(f"client-{CLIENT}", "--no-deps", f"pyspark-client=={CLIENT}")
    with tempfile.TemporaryDirectory() as place, connect_server() as address:
        # The pinned environment has it, and an environment with the client alone does not.
        Path(place, "py4j.py").write_text("raise ImportError('the client has no py4j')\n")
        told = trial(CLIENT, address, Path(place), folder)
    return {**told, "spark": f"pyspark-client {CLIENT}, server {version('pyspark')}"}


def dbt_example() -> dict[str, str]:
    """Build the example project of dbt, which tests its own model; return the versions it took."""
    folder = environment("dbt", *DBT)
    with tempfile.TemporaryDirectory() as place:
        project = shutil.copytree(ROOT / "examples" / "dbt", Path(place, "dbt"))
        found = {**with_packages(folder), "DBT_SEND_ANONYMOUS_USAGE_STATS": "0"}
        words = ["build", "--profiles-dir", ".", "--no-use-colors"]
        code = f"from dbt.cli.main import cli; cli({words!r})"
        run = subprocess.run(
            [sys.executable, "-c", code],
            env=found,
            cwd=project,
            stdout=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_S,
        )
    if run.returncode != 0 or not re.search(r"PASS=3 WARN=0 ERROR=0", run.stdout):
        raise SystemExit(f"the example of dbt fails:\n{run.stdout}")
    names = ("dbt-core", "dbt-duckdb", "duckdb")
    known = {d.metadata["Name"]: d.version for d in distributions(path=[str(folder)])}
    return {name: known[name] for name in names}


def page(
    results: list[dict[str, Any]],
    clients: list[dict[str, Any]],
    lakes: dict[str, dict[str, str]],
    dbt: dict[str, str],
) -> str:
    """Write the tables, and under them why what does not work does not."""
    others = ", ".join(f"{name} {own}" for name, own in dbt.items())
    own = "".join(f"- `{kind}://`: {of[kind]}, Spark {of['spark']}\n" for kind, of in lakes.items())
    return (
        f"{HEADER}{table(results)}\n{CLIENTS}{table(clients)}\n{CONNECTORS}{own}\n"
        f"The project of dbt in `examples/dbt` was built, and its test passed, with {others}.\n"
    )


def table(results: list[dict[str, Any]]) -> str:
    """Write one table, a column for each Spark, and the reasons under it."""
    ways: dict[str, dict[str, str]] = {}
    for told in results:
        for way, answer in told.items():
            if way not in ("spark", "connect"):
                name = f"{way}, over Connect" if told["connect"] else way
                ways.setdefault(name, {})[told["spark"]] = answer
    versions = list(dict.fromkeys(told["spark"] for told in results))
    lines = [f"| | {' | '.join(versions)} |", f"|---|{'---|' * len(versions)}"]
    reasons: list[str] = []
    for way, answers in ways.items():
        cells = []
        for one in versions:
            answer = answers.get(one, "")
            cells.append({"yes": "yes", "": ""}.get(answer, "-"))
            if answer not in ("yes", ""):
                reasons.append(f"- {way}, Spark {one}: {answer.removeprefix('no: ')}")
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join([*lines, *([""] if reasons else []), *reasons]) + "\n"


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Try what is named, or all, and write the page if it was all."""
    asked = sys.argv[1:] or (*VERSIONS, "client", *LAKES, "dbt")
    results, clients, lakes, dbt = [], [], {}, {}
    for name in asked:
        if name == "client":
            clients.append(client())
            say(json.dumps(clients[-1]))
        elif name in LAKES:
            lakes[name] = lake(name)
            say(json.dumps(lakes[name]))
        elif name == "dbt":
            dbt = dbt_example()
            say(json.dumps(dbt))
        else:
            for remote in (None, "local[2]"):
                if remote is None or not name.startswith("3."):
                    results.append(tried(name, remote))
                    say(json.dumps(results[-1]))
    if not sys.argv[1:]:
        PAGE.write_text(page(results, clients, lakes, dbt), encoding="utf-8")
        say(f"wrote {PAGE.relative_to(ROOT)}")
    every = [*results, *clients]
    broken = [t for t in every for answer in t.values() if str(answer).startswith("fails")]
    if broken:
        raise SystemExit("some ways fail without a reason of weft's: see above")


if __name__ == "__main__":
    main()
