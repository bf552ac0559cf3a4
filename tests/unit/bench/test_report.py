"""What a bench run prints, writes and draws, and how it ends."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from typer import Typer
from typer.testing import CliRunner

import weft.bench as bench
from weft.bench import plot, report, reproduction
from weft.bench.frame import Column, Limit, Panel, Sheet, Spread, Table
from weft.cli.commands.bench import command
from weft.errors import QueryError

if TYPE_CHECKING:
    from pathlib import Path

LINES = {"shared": ((1.0, 2.0), (10.0, 20.0)), "alone": ((1.0, 2.0), (30.0, 90.0))}
CURVE = Table(
    name="test/curve",
    question="Does cost grow with queries?",
    columns=(Column("queries"), Column("cost", ",.1f"), Column("paper", published=True)),
    compute=lambda quick: Sheet(
        (
            {"queries": 1, "cost": 10.0, "paper": 11.0},
            {"queries": 2, "cost": Spread(20.0, 19.0, 22.0), "paper": None},
        ),
        panels=(
            Panel("cost", "queries", "cost", LINES, log_x=True, log_y=True),
            Panel("latency", "", "ns", boxes={"one": (1, 2, 3, 4, 9), "two": (1, 1, 2, 3, 4)}),
        ),
        notes=("costs are counted",),
    ),
    limits=(Limit("cost", at_most=100),),
)
WRONG = replace(
    CURVE, name="test/wrong", compute=lambda quick: Sheet((), wrong=("one is not two",))
)
MISSED = replace(CURVE, name="test/missed", limits=(Limit("cost", at_most=15),))


def run(*entries: Table, tmp_path: Path) -> tuple[int, str, dict[str, object]]:
    console = Console(file=io.StringIO(), width=120)
    out = tmp_path / "made" / "figures.json"
    status = bench.run_entries(entries, False, out, tmp_path / "plots", console)
    assert isinstance(console.file, io.StringIO)
    return status, console.file.getvalue(), json.loads(out.read_text())


def test_a_run_prints_figures_bars_and_notes(tmp_path: Path) -> None:
    status, text, _ = run(CURVE, tmp_path=tmp_path)
    assert status == 0
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "test/curve ok" in lines
    assert "queries cost paper" in lines
    assert "1 10.0 11" in lines
    assert "2 20 (19-22)" in lines
    assert "met cost at most 100: 1 10; 2 20 (19-22)" in lines
    assert "note: costs are counted" in lines
    assert "1 entries: 1 ok" in lines


@pytest.mark.parametrize(("entry", "said"), [(WRONG, "one is not two"), (MISSED, "missed")])
def test_a_failure_ends_with_status_1(entry: Table, said: str, tmp_path: Path) -> None:
    status, text, figures = run(CURVE, entry, tmp_path=tmp_path)
    assert status == 1
    assert said in text
    assert [e["status"] for e in figures["entries"]] == ["ok", entry.name.split("/")[1]]


def test_the_json_holds_every_figure_and_where_it_comes_from(tmp_path: Path) -> None:
    _, _, figures = run(CURVE, tmp_path=tmp_path)
    assert figures["quick"] is False
    assert figures["machine"]["cores"] >= 1
    assert {"python", "numpy", "numba"} <= set(figures["versions"])
    assert figures["date"].endswith("+00:00")
    (entry,) = figures["entries"]
    assert entry["rows"][1]["cost"] == {"median": 20.0, "low": 19.0, "high": 22.0}
    assert entry["published_columns"] == ["paper"]
    assert entry["bars"][0]["judgement"] == "met"
    assert entry["curves"][0]["lines"]["alone"] == [[1.0, 2.0], [30.0, 90.0]]
    assert entry["curves"][1]["boxes"]["one"] == [1, 2, 3, 4, 9]


def test_curves_are_drawn_to_png(tmp_path: Path) -> None:
    _, text, _ = run(CURVE, tmp_path=tmp_path)
    drawn = tmp_path / "plots" / "test-curve.png"
    assert drawn.read_bytes().startswith(b"\x89PNG")
    assert "plot: " in text


def test_without_matplotlib_the_run_goes_on_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plot, "NEEDS", ("no_such_library",))
    status, text, _ = run(CURVE, tmp_path=tmp_path)
    assert status == 0
    assert "plot skipped: needs no_such_library: pip install 'weft-spark[bench]'" in text
    assert not (tmp_path / "plots").exists()


def test_every_entry_has_a_name_of_its_own_and_asks_a_question() -> None:
    known = bench.entries()
    assert len({entry.name for entry in known}) == len(known)
    assert all(entry.question.endswith("?") for entry in known)


def test_entries_are_chosen_by_name_group_and_pattern() -> None:
    from weft.bench.registry import select

    known = (CURVE, WRONG, replace(CURVE, name="other/curve"))
    assert [e.name for e in select(["other"], known)] == ["other/curve"]
    assert [e.name for e in select(["*/curve"], known)] == ["test/curve", "other/curve"]
    assert select([], known) == known
    with pytest.raises(QueryError, match="no bench entry is named 'curve'"):
        select(["test", "curve"], known)


def test_an_unknown_name_is_refused_before_anything_runs() -> None:
    with pytest.raises(QueryError, match="no bench entry is named 'nope'"):
        bench.run(["nope"])


def test_listing_loads_no_heavy_library() -> None:
    code = (
        "import sys, weft.bench; weft.bench.entries(); "
        "print([m for m in ('numba', 'matplotlib', 'duckdb', 'bottleneck', 'pyspark', 'polars')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_list_names_entries_and_questions() -> None:
    console = Console(file=io.StringIO(), width=120)
    report.print_list((CURVE, MISSED), console)
    assert isinstance(console.file, io.StringIO)
    assert "test/missed" in console.file.getvalue()
    assert "Does cost grow with queries?" in console.file.getvalue()


@pytest.fixture
def app() -> Typer:
    app = Typer()
    app.command()(command)
    return app


def test_the_command_lists(app: Typer) -> None:
    done = CliRunner().invoke(app, ["--list"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    for entry in bench.entries():
        assert entry.name in done.output


@pytest.mark.parametrize(("entry", "status"), [(CURVE, 0), (MISSED, 1)])
def test_the_command_ends_with_the_status_of_the_run(
    app: Typer, entry: Table, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "entries", lambda: (entry,))
    out = tmp_path / "out.json"
    plots = tmp_path / "plots"
    done = CliRunner().invoke(app, ["test", "--quick", "--json", str(out), "--plot", str(plots)])
    assert done.exit_code == status
    assert json.loads(out.read_text())["quick"] is True
    assert list(plots.iterdir())


def test_a_report_sets_what_was_published_beside_what_was_found(tmp_path: Path) -> None:
    report_file = tmp_path / "made" / "reproduction.md"
    quiet = Console(file=io.StringIO(), width=120)
    status = bench.run(
        ["planners/weave_trees", "planners/subsume_groups"],
        quick=True,
        console=quiet,
        report_path=report_file,
    )
    text = report_file.read_text()
    assert status == 0
    assert "| technique | middle | all runs | *paper: all runs* |" in text
    assert "| naive | " in text
    assert "16.0 |" in text
    assert "![How many groups" in text
    assert (tmp_path / "made/pictures/planners-subsume_groups.png").exists()
    assert "No figures: this run left it out. `weft bench local/cutty_periodic`" in text
    assert "a check, no figures" in text
    again = bench.run(["planners/weave_trees"], quick=True, console=quiet, report_path=report_file)
    assert again == 0
    assert "![How many groups" in report_file.read_text()  # of the run before


def test_every_figure_of_the_papers_names_an_entry() -> None:
    known = {entry.name for entry in bench.entries()}
    assert set(reproduction.names()) <= known
    with pytest.raises(QueryError, match="no bench entry is named 'local/hop'"):
        bench.run(["local/hop"], report_path="nowhere.md")  # no paper shows it
