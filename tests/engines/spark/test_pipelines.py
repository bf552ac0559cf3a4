"""Declarative Pipelines: the example project, run by `spark-pipelines run` as users run it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyspark
import pytest

import weft
from weft import agg
from weft.generate import sensors
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLE = Path(__file__).parents[3] / "examples" / "pipeline"
EVENTS = sensors(6_000, 5, devices=7, rate=5.0)
SHOWN = """
import sys
from pyspark.sql import SparkSession
session = SparkSession.builder.enableHiveSupport().getOrCreate()
for name in sys.argv[1:]:
    described = session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    print(*(row.data_type for row in described if row.col_name == "Comment"), sep="\\n")
"""


def run(project: Path, *command: str) -> str:
    """Run a program of Spark's in the project, with a catalog that outlives it."""
    home = Path(pyspark.__file__).parent
    kept = {k: v for k, v in os.environ.items() if k != "SPARK_REMOTE"}
    settings = ("spark.sql.catalogImplementation=hive", "spark.ui.enabled=false")
    program, *words = command
    options = [word for setting in settings for word in ("--conf", setting)]
    done = subprocess.run(
        [home / "bin" / program, *words[:1], *options, *words[1:]]
        if program == "spark-pipelines"
        else [home / "bin" / program, *options, *words],
        cwd=project,
        env={**kept, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    return done.stdout + done.stderr


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="starts a server of its own")
def test_the_example_keeps_slices_and_views_as_events_come(tmp_path: Path) -> None:
    project = shutil.copytree(EXAMPLE, tmp_path / "pipeline")
    spec = project / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("/tmp/weft-pipeline", str(tmp_path / "storage")))
    (project / "readings").mkdir()
    workload = weft.parse((project / "features.sql").read_text())
    seen = []
    for part in (EVENTS.slice(0, 3_500), EVENTS.slice(3_500)):  # the second has late events too
        seen.append(part)
        pq.write_table(part, project / "readings" / f"{len(seen)}.parquet")
        run(project, "spark-pipelines", "run")
        wanted = weft.run(workload, {"readings": pa.concat_tables(seen)}, engine="reference")
        for query in workload:
            got = ds.dataset(project / "spark-warehouse" / query.name, format="parquet").to_table()
            assert_same_rows(query, got, wanted[query.name])
    slices = ds.dataset(project / "spark-warehouse" / "readings_slices", format="parquet")
    assert 0 < slices.count_rows() < EVENTS.num_rows / 2
    script = tmp_path / "shown.py"
    script.write_text(SHOWN)
    about = run(project, "spark-submit", str(script), "readings_slices", "lows", "traffic")
    assert "slices of readings by device, cut every 20s" in about
    assert about.count("PLAN by slice for local") == 3
    assert "-> query 'lows' window '5m/1m'" in about
    assert about.count("made of readings_slices") == 2


def never_read() -> Any:
    raise AssertionError


def lows(**changed: Any) -> weft.Query:
    asked = {"source": "readings", "time": "ts", "keys": ["device"]} | changed
    return weft.Query("lows", windows={"1m": "1 minute"}, aggs={"lo": agg.min("temp")}, **asked)


def named(name: str) -> Callable[[], Any]:
    never_read.__name__ = name
    return never_read


def test_what_a_pipeline_cannot_have_is_refused_before_events_are_asked_for() -> None:
    with pytest.raises(weft.QueryError) as unknown:
        weft.pipeline_table(lows())(named("reading"))
    assert str(unknown.value) == (
        "no query reads 'reading', as the decorated function is named\n"
        "hint: name it as the source: readings"
    )
    mine = agg.custom(
        "spread_of_a_pipeline",
        lift=lambda x: (x, x),
        combine=lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
        lower=lambda p: p[1] - p[0],
        identity=(float("inf"), float("-inf")),
        commutative=True,
        idempotent=True,
    )
    own = weft.Query(
        "q",
        source="readings",
        time="ts",
        windows={"1m": "1 minute"},
        aggs={"s": mine("temp")},
    )
    with pytest.raises(weft.UnsupportedError, match="'spread_of_a_pipeline', which the server"):
        weft.pipeline_table(own)(named("readings"))
