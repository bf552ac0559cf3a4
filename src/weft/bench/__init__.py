"""Benchmarks that check their answers: ratios between contenders, and bars that must be met.

An entry is data (see `weft.bench.frame`); this package runs entries by name, prints tables, writes
JSON and draws curves.

>>> from weft.bench import entries
>>> all("/" in entry.name and entry.question.endswith("?") for entry in entries())
True
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft.bench import plot, report
from weft.bench.frame import Entry, Outcome, missing
from weft.bench.race import run_entry
from weft.bench.registry import entries, select

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

__all__ = ["PLOT_DIRECTORY", "entries", "list_entries", "run", "run_entries"]

PLOT_DIRECTORY = Path("bench-output")
_FILE_COLUMNS = 120  # a file or a pipe has no width of its own


def run(
    names: Sequence[str] = (),
    quick: bool = False,
    json_path: Path | str | None = None,
    plot_dir: Path | str | None = PLOT_DIRECTORY,
    console: Console | None = None,
    workloads: int | None = None,
) -> int:
    """Run entries by name, group or pattern; return 1 when a bar is missed or an answer is wrong.

    No name runs all; `workloads` is the most that entries draw at random. Raises `QueryError` for a
    name that no entry has, before anything runs.
    """
    from weft.bench.suite.regret.draws import at_most

    with at_most(workloads):
        return run_entries(select(names, entries()), quick, json_path, plot_dir, console)


def run_entries(
    chosen: Sequence[Entry],
    quick: bool = False,
    json_path: Path | str | None = None,
    plot_dir: Path | str | None = PLOT_DIRECTORY,
    console: Console | None = None,
) -> int:
    """Run these entries one after the other; the JSON file is complete after each of them."""
    console = console or _console()
    outcomes: list[Outcome] = []
    for number, entry in enumerate(chosen, 1):
        with console.status(f"{entry.name} ({number} of {len(chosen)})"):
            outcome = run_entry(entry, quick=quick)
        outcomes.append(outcome)
        report.print_outcome(outcome, console)
        if outcome.panels and plot_dir is not None:
            _draw(outcome, Path(plot_dir), console)
        if json_path is not None:
            report.write_json(Path(json_path), outcomes, quick=quick)
    report.print_summary(outcomes, console)
    return int(any(outcome.failed for outcome in outcomes))


def list_entries(names: Sequence[str] = (), console: Console | None = None) -> None:
    """Print the names and questions of the entries."""
    report.print_list(select(names, entries()), console or _console())


def _draw(outcome: Outcome, directory: Path, console: Console) -> None:
    if reason := missing(plot.NEEDS):
        console.print(f"plot skipped: {reason}", style="yellow", markup=False)
    else:
        console.print(f"plot: {plot.draw(outcome, directory)}", markup=False, soft_wrap=True)


def _console() -> Console:
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, _FILE_COLUMNS)
    return console
