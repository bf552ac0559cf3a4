"""What a run tells of itself: rows of every node, work done, time and memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.generate import sensors
from weft.planners.portfolio import PLANNERS
from weft.running import run_measured
from weft.sessions.local_session import LocalSession

READINGS = sensors(rows=6000, seed=3, devices=4, rate=10.0)
KNOWN = weft.Statistics(rate=10.0, keys=4)


def workload() -> weft.Workload:
    return weft.Workload(
        [
            weft.Query(
                "q",
                source="readings",
                time="ts",
                keys=["device"],
                windows={
                    "1m": weft.tumbling("1 minute"),
                    "2m/1m": weft.hopping("2 minutes", "1 minute"),
                    "visit": weft.session("5 seconds"),
                },
                aggs={"lo": weft.agg.min("temp"), "n": weft.agg.count()},
            )
        ]
    )


@pytest.mark.parametrize("planner", ["auto", *PLANNERS])
def test_rows_of_every_node_are_counted(planner: str) -> None:
    tables = {"readings": READINGS}
    results, measures = run_measured(workload(), tables, planner=planner, statistics=KNOWN)
    assert results["q"].equals(weft.run(workload(), tables, planner=planner, statistics=KNOWN))
    counted = results["q"].group_by("window").aggregate([([], "count_all")]).to_pylist()
    rows = {node.what: node.actual for node in measures.nodes}
    for row in counted:
        assert rows[f"query 'q' window '{row['window']}'"] == row["count_all"]
    assert all(node.actual is not None for node in measures.nodes)
    assert measures.events == rows["SCAN readings by ts"] == READINGS.num_rows
    assert measures.combines is not None
    assert measures.combines > 0


def test_expected_rows_follow_the_statistics() -> None:
    _, measures = run_measured(workload(), {"readings": READINGS}, statistics=KNOWN)
    for node in measures.nodes:
        if "SESSION" in node.what or "visit" in node.what:
            continue  # only the events tell how many there are
        assert node.estimated == pytest.approx(node.actual, rel=0.15, abs=5), node.what


def test_a_session_tells_time_and_memory() -> None:
    session = LocalSession(workload(), watermark="1 minute")
    assert session.metrics.events_per_second == 0
    session.push("readings", READINGS.slice(0, 3000))
    first = session.metrics
    session.push("readings", READINGS.slice(3000))
    session.finish()
    last = session.metrics
    assert 0 < first.seconds < last.seconds
    assert last.events == READINGS.num_rows
    assert last.events_per_second == pytest.approx(last.events / last.seconds)
    if Path("/proc/self/statm").exists():
        assert last.peak_bytes is not None
        assert last.peak_bytes > last.state_bytes


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell")
def test_the_memory_of_the_process_that_started_this_one_is_not_counted() -> None:
    held = np.ones(600 << 17)
    code = "from weft.engines.measures import peak_resident_bytes as p; print(p())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(told.stdout) < held.nbytes
