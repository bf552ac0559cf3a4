"""weft beside its peers: what they answer, and what the page says of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weft.bench.peers import __main__ as command
from weft.bench.peers.answers import difference
from weft.bench.peers.contest import Cell
from weft.bench.peers.environments import PEERS
from weft.bench.peers.page import page
from weft.bench.peers.workloads import WORKLOADS

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = 3_000
IN_PROCESS = ("duckdb", "polars", "pandas")
BY_NAME = {workload.name: workload for workload in WORKLOADS}


def answered(name: str, contender: str, folder: Path) -> Path:
    """Let a contender answer a workload in this process."""
    workload, output = BY_NAME[name], folder / contender
    tables = {}
    for table, rows in workload.tables(EVENTS).items():
        tables[table] = str(folder / f"{table}.parquet")
        pq.write_table(rows.select(workload.job["columns"][table]), tables[table])
    output.mkdir()
    runner = import_module(f"weft.bench.peers.runners.{PEERS[contender].runner}")
    job: dict[str, Any] = {**workload.job, "tables": tables, "output": str(output)}
    runner.start(job)()
    return output


@pytest.mark.parametrize(
    "name", ["sessions_20", "mixed_24", "nexmark_q5_five", "nexmark_q7", "auction", "as_of"]
)
def test_peers_of_this_environment_answer_as_weft_does(name: str, tmp_path: Path) -> None:
    workload = BY_NAME[name]
    expected = answered(name, "weft", tmp_path)
    for peer in IN_PROCESS:
        if peer in workload.contenders:
            assert difference(workload.job, expected, answered(name, peer, tmp_path)) == ""


def test_a_difference_is_found_in_every_column(tmp_path: Path) -> None:
    job = BY_NAME["single"].job
    row = {"device": ["a"], "window": ["60s"], "window_start": [0], "lo": [1.0], "mean": [2.0]}
    folders = []
    for at, change in enumerate(({}, {"mean": [2.1]}, {"window_start": [60_000_000]})):
        folders.append(tmp_path / str(at))
        folders[at].mkdir()
        pq.write_table(pa.table({**row, "n": [3], **change}), folders[at] / "one.parquet")
    assert difference(job, folders[0], folders[0]) == ""
    assert difference(job, *folders[:2]) == "one: mean of row 0: expected 2.0, got 2.1"
    told = "one: window_start of row 0: expected 0, got 60000000"
    assert difference(job, folders[0], folders[2]) == told


def test_contenders_run_in_processes_and_a_quick_run_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["single", "--quick", "--peers", "weft,duckdb", "--docs", str(tmp_path)]
    assert command.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["single", "weft", "100,000"],
        ["single", "duckdb", "100,000"],
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_peer_that_cannot_be_installed_is_listed_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cache").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert command.main(["single", "--quick", "--peers", "bytewax"]) == 0
    assert "no environment: Error: [Errno 20] Not a directory" in capsys.readouterr().out


def test_a_contender_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(SystemExit, match=r"nothing is named 'flank'\nhint: there are weft, "):
        command.main(["single", "--peers", "flank"])


def test_the_page_says_who_wins_and_where_weft_loses() -> None:
    def cell(contender: str, *seconds: float, events: int = 1_000_000, **told: Any) -> Cell:
        return Cell("single", contender, events, contender, seconds, 1 << 20, **told)

    text = page(
        [
            cell("weft", 3.0, 0.5, 0.5),
            cell("duckdb", 1.0, 0.25, 0.25),
            cell("pandas", 2.0, 1.0, events=500_000),
            cell("flink", reason="no Java"),
            cell("polars", wrong="one: expected 3 rows, got 2"),
        ],
        {"Measured": "today"},
    )
    title = BY_NAME["single"].title
    assert f"| {title} | duckdb > **weft** > pandas |" in text
    assert f"- {title}: DuckDB is 2.00 times as fast as weft, in the process." in text
    assert f"| {title} | 2.00 | 0.5 (0.5-0.5) |  | 4 (4-4) |  |  |" in text
    assert "- Flink SQL, single: no Java" in text
    assert "- Polars, single: one: expected 3 rows, got 2" in text
    assert "- Pathway: not run yet on anything." in text
    assert "- weft, in the process: not run yet on tumbling_20, " in text
    assert "No runs are kept that could be compared" in text  # with weft on Spark
    assert "some differ" in text
