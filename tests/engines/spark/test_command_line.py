"""`weft run` and `weft demo` on Spark: rows from folders of parquet, figures, clear refusals."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.utils import is_remote
from typer.testing import CliRunner

import weft
from weft.cli.app import app
from weft.engines.reference.engine import ReferenceEngine
from weft.engines.spark import session as sessions
from weft.engines.spark.files import read_frame
from weft.engines.spark.measures.run_measures import Steps, explained, steps_of
from weft.engines.spark.progress import progress_of
from weft.engines.spark.session import local_session
from weft.generate import sensors
from weft.tables import read_table, write_table
from weft.ui import runs_page

if TYPE_CHECKING:
    import re
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SQL = """-- name: lows
SELECT device, System.Window().Id, MIN(temp) AS lo, COUNT(*) AS n FROM readings TIMESTAMP BY ts
GROUP BY device, Windows(Window('1m', TumblingWindow(minute, 1)),
                         Window('3m', TumblingWindow(minute, 3)));
-- name: visits
SELECT device, MAX(temp) AS hi FROM readings GROUP BY device, session_window(ts, '5 seconds')
"""
READINGS = sensors(rows=600, seed=3, devices=2, rate=2.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for part in range(3):
        write_table(READINGS.slice(part * 200, 200), tmp_path / "parts" / f"{part}.parquet")
    return tmp_path / "parts"


def invoke(*words: object, status: int = 0) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == status, result.stderr
    return result.stderr if status == 2 else result.stdout


def test_a_folder_of_parquet_is_run_on_spark_by_default(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    words = ("run", "-e", SQL, "-t", f"readings={folder}", "--limit", 1)
    shown = invoke(*words)
    wanted = ReferenceEngine().answer(weft.parse(SQL), {"readings": READINGS})
    for name, rows in wanted.items():
        assert f"{name}: {rows.num_rows} rows, the first 1 shown" in shown
    first = str(wanted["lows"]["lo"][0].as_py())
    assert first in shown
    invoke(*words, "-o", tmp_path / "out.parquet", "--verify")
    for name, rows in wanted.items():
        assert read_table(tmp_path / f"out-{name}.parquet").cast(rows.schema).equals(rows)


def test_stats_tell_scans_shuffles_the_rows_of_every_node_and_the_times_of_stages(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_RUNS", str(tmp_path / "runs.jsonl"))
    sql = SQL.partition(";")[0]
    words = ("--stats", "--planner", "slice", "--strategy", "native", "--rate", 2, "--keys", 2)
    shown = invoke("run", "-e", sql, "-t", f"readings={folder}", *words)
    lines = [line.split() for line in shown.splitlines()]
    assert ["scans", "1"] in lines
    assert ["shuffles", "2"] in lines
    assert ["events", "600"] in lines
    # Five minutes of two devices: the slices of a minute are the windows of a minute.
    (slices,) = (line for line in lines if line[:2] == ["p1", "SLICE"])
    (minutes,) = (line for line in lines if line[:3] == ["w2", "TUMBLE", "1m"])
    assert slices[-3] == minutes[-3] == "10"
    if is_remote():  # which does not tell
        return
    (total,) = (line[1] for line in lines if line[:1] == ["ms"] and len(line) == 2)
    (reading,) = (line for line in lines if line[:4] == ["s0,", "p1", "reads", "events"])
    (beyond,) = (line for line in lines if "shuffle" in line)
    measured = [float(line[-2].replace(",", "")) for line in (reading, beyond)]
    assert all(0 < ms <= float(total.replace(",", "")) for ms in measured)
    assert beyond[0].startswith("w2")
    page = runs_page.content()
    assert "after the shuffle" in page
    assert 'class="measured"' in page


def test_text_files_and_nanoseconds_are_read_as_the_other_engines_read_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    fine = READINGS.set_column(0, "ts", READINGS["ts"].cast(pa.timestamp("ns", "UTC")))
    pq.write_table(fine, tmp_path / "fine.parquet")
    for path in (write_table(READINGS, tmp_path / "readings.csv"), tmp_path / "fine.parquet"):
        assert read_frame(path, spark).toArrow().cast(READINGS.schema) == READINGS
    with pytest.raises(weft.WeftError, match="there is no such file"):
        read_frame(tmp_path / "none.parquet", spark)


def test_what_spark_refuses_is_one_message(spark: SparkSession, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    write_table(READINGS, broken / "0.parquet")
    (broken / "1.parquet").write_text("not parquet")
    message = invoke("run", "-e", SQL, "-t", f"readings={broken}", status=2)
    assert message.startswith("error: spark: encountered error while reading file")
    assert "Traceback" not in message


def test_no_java_is_said_in_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    with pytest.raises(weft.WeftError, match="Spark cannot start: there is no Java in JAVA_HOME"):
        local_session()


COLLECTOR, MEMORY = sessions._NAMES_COLLECTOR, sessions._NAMES_MEMORY


@pytest.mark.parametrize(
    ("setting", "value", "chosen"),
    [
        ("spark.driver.extraJavaOptions", "-Dhttp.proxyHost=here", None),
        ("spark.driver.extraJavaOptions", "-Xss4m -XX:+UseG1GC", COLLECTOR),
        ("spark.driver.defaultJavaOptions", "-Dof.mine=1", COLLECTOR),
        ("spark.driver.memory", "2g", MEMORY),
        ("JAVA_TOOL_OPTIONS", "-XX:+UseZGC", COLLECTOR),
        ("PYSPARK_SUBMIT_ARGS", "--driver-memory 3g pyspark-shell", MEMORY),
        ("SPARK_DRIVER_MEMORY", "3g", MEMORY),
    ],
)
def test_java_starts_as_the_user_says(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    setting: str,
    value: str,
    chosen: re.Pattern[str] | None,
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    for name in sessions._OPTIONS:
        monkeypatch.delenv(name, raising=False)
    for names in (COLLECTOR, MEMORY):
        assert not sessions._is_chosen(names, {})
        if setting.startswith("spark."):
            assert sessions._is_chosen(names, {setting: value}) == (names is chosen)
            (tmp_path / "spark-defaults.conf").write_text(f"{setting}  {value}\n")
        else:
            monkeypatch.setenv(setting, value)
        assert sessions._is_chosen(names, {}) == (names is chosen)
        monkeypatch.delenv(setting, raising=False)
        (tmp_path / "spark-defaults.conf").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("limit", "memory"),
    [("max", "4096m"), (64 << 30, "4096m"), (12 << 30, "3072m"), (2 << 30, "1024m")],
)
def test_spark_takes_a_quarter_of_the_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: int | str, memory: str
) -> None:
    (tmp_path / "memory.max").write_text(f"{limit}\n")
    monkeypatch.setattr(sessions, "_MEMORY_LIMITS", (str(tmp_path / "memory.max"), "/not/there"))
    machine = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 4 << 20}  # 16 GB
    monkeypatch.setattr(os, "sysconf", machine.__getitem__)
    assert sessions._memory() == memory


def test_a_session_that_weft_starts_collects_with_all_cores(spark: SparkSession) -> None:
    if is_remote():
        pytest.skip("the server was started elsewhere")
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    # A part of the young generation is always free, and does not count.
    assert runtime.maxMemory() >> 20 > 0.75 * int(sessions._memory().removesuffix("m"))
    options = spark.sparkContext.getConf().get("spark.driver.defaultJavaOptions", "")
    assert options == "-XX:+UseParallelGC"
    beans = spark._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
    assert {bean.getName() for bean in beans} == {"PS MarkSweep", "PS Scavenge"}


def test_scans_and_shuffles_are_counted_in_the_plan_that_ran(
    spark: SparkSession, folder: Path
) -> None:
    frame = read_frame(folder, spark)
    counts = frame.groupBy("device").count()
    both = counts.union(counts)
    assert steps_of(explained(both)) == Steps(scans=2, shuffles=2)
    both.collect()
    if is_remote():
        assert steps_of(explained(both)).shuffles == 2, "a server explains anew, before it adapts"
    else:
        assert steps_of(explained(both)).shuffles == 1, "the second exchange is the first one's"


def test_plans_that_do_not_adapt_are_known_before_they_run(
    spark: SparkSession, folder: Path
) -> None:
    adaptive = "spark.sql.adaptive.enabled"
    spark.conf.set(adaptive, "false")
    try:
        counts = read_frame(folder, spark).groupBy("device").count()
        assert steps_of(explained(counts.union(counts))) == Steps(scans=1, shuffles=1)
    finally:
        spark.conf.set(adaptive, "true")


def test_nothing_runs_so_there_is_nothing_to_say(spark: SparkSession) -> None:
    assert progress_of(spark) == ""


def test_the_demo_compares_with_stock_spark(spark: SparkSession, tmp_path: Path) -> None:
    shown = invoke("demo", "--rows", 4000, "-o", tmp_path / "out")
    for line in ("3. Running on Spark", "4. Checking every row against stock", "are the same"):
        assert line in shown
    found = {path.name for path in (tmp_path / "out").iterdir()}
    pictures = {"plan.html", "plan.svg", "gain.svg"}
    assert found == {"readings.parquet", "features.sql", "features.parquet", *pictures}
