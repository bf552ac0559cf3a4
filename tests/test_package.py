"""What `pip install weft-spark` gives: a wheel with its types, and all of weft but Spark."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from importlib.metadata import distribution
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]

LOCAL_RUN = """
import pyarrow as pa, weft
ts = pa.array([0, 60_000_000, 3_600_000_000], pa.timestamp("us", "UTC"))
events = pa.table({"ts": ts, "x": [1, 2, 3]})
ask = weft.Query("q", source="t", time="ts", windows={"1h": "1 hour"}, aggs={"n": "sum(x)"})
print(weft.run(ask, {"t": events})["n"].to_pylist())
hop = "SELECT MAX(x) AS m FROM t GROUP BY window(ts, '1 hour', '20 minutes')"
print(weft.rewrite(hop).split()[0])
for needs_more in (
    lambda: weft.run(ask, {"t": events}, engine="spark"),
    lambda: weft.sql("SELECT MAX(x) AS m FROM t", t=events),
):
    try:
        needs_more()
    except weft.UnsupportedError as error:
        print(error)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def environment(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel and the packages that it asks for, and no others."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    for name in needed_packages():
        link_package(name, site)
    return folder


def needed_packages() -> list[str]:
    spec = spec_from_file_location("pin", ROOT / "scripts" / "pin.py")
    assert spec is not None
    assert spec.loader is not None
    pin: Any = module_from_spec(spec)
    spec.loader.exec_module(pin)
    return list(pin.pins(("weft-spark",)))


def link_package(name: str, site: Path) -> None:
    installed = distribution(name)
    tops = {file.parts[0] for file in installed.files or () if file.parts[0] != ".."}
    for top in tops - {"__pycache__", "bin"}:
        if not (site / top).exists():
            (site / top).symlink_to(Path(str(installed.locate_file(top))))


def test_the_wheel_has_the_package_its_types_and_its_prices(built: Path) -> None:
    (wheel,) = built.glob("weft_spark-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        told = next(name for name in names if name.endswith("METADATA"))
        metadata = message_from_string(packed.read(told).decode())
        commands = packed.read(told.replace("METADATA", "entry_points.txt")).decode()
    assert {"weft/__init__.py", "weft/py.typed", "weft/ui/static/weft.js"} <= names
    assert "weft = weft.cli:main" in commands.splitlines()
    classifiers = set(metadata.get_all("Classifier") or ())
    python = f"Programming Language :: Python :: {sys.version_info[0]}.{sys.version_info[1]}"
    assert {python, "Typing :: Typed", "Development Status :: 4 - Beta"} <= classifiers
    assert (metadata["License-Expression"], metadata["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    assert any(name.startswith("weft/cost/coefficients/") for name in names)
    assert metadata["Name"] == "weft-spark"
    extras = set(metadata.get_all("Provides-Extra") or ())
    lakes = {"kafka", "delta", "iceberg", "postgresql"}
    assert {"spark", "bench", "duckdb", "ui", "pipelines"} | lakes <= extras
    core = [r for r in metadata.get_all("Requires-Dist") or () if "extra ==" not in r]
    assert not any("pyspark" in need or "pandas" in need for need in core)
    (source,) = built.glob("weft_spark-*.tar.gz")
    with tarfile.open(source) as packed_source:
        assert any(name.endswith("src/weft/__init__.py") for name in packed_source.getnames())


def test_the_core_runs_without_spark_and_says_what_spark_needs(environment: Path) -> None:
    python = environment / "bin" / "python"
    run = subprocess.run(
        [python, "-I", "-c", LOCAL_RUN], capture_output=True, text=True, check=True
    )
    rows, text, *refusal = run.stdout.splitlines()
    assert (rows, text) == ("[3, 3]", "WITH")
    assert refusal == [
        "the engine spark needs pyspark, which is not installed",
        "hint: pip install 'weft-spark[spark]'",
        "a statement over tables in this process needs duckdb, which is not installed",
        "hint: pip install 'weft-spark[duckdb]'",
    ]


def test_the_command_tells_its_help_in_under_300_ms_of_processor_time(environment: Path) -> None:
    code = (
        "import sys, time; sys.argv = ['weft', '--help']\n"
        "from weft.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    status = end.code\n"
        "print(status, time.process_time(), file=sys.stderr)"
    )
    python = environment / "bin" / "python"
    times = []
    for _ in range(3):  # the first one writes byte code
        run = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
        assert "Usage" in run.stdout
        status, seconds = run.stderr.split()
        assert status == "0"
        times.append(float(seconds))
    assert min(times) < 0.3


def test_a_command_that_needs_spark_says_so_without_a_traceback(environment: Path) -> None:
    python = environment / "bin" / "python"
    command = [python, "-I", "-m", "weft", "demo"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "needs pyspark, which is not installed" in run.stderr
    assert "hint: pip install 'weft-spark[spark]'" in run.stderr
    assert "Traceback" not in run.stderr
