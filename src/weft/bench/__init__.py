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

from weft.bench import plot, report, reproduction
from weft.bench.frame import Entry, Outcome, missing
from weft.bench.race import run_entry
from weft.bench.registry import entries, select

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

__all__ = ["PLOT_DIRECTORY", "entries", "list_entries", "run", "run_entries", "write_report"]

PLOT_DIRECTORY = Path("bench-output")
PICTURES = "pictures"  # beside a report
_FILE_COLUMNS = 120  # a file or a pipe has no width of its own


def run(
    names: Sequence[str] = (),
    quick: bool = False,
    json_path: Path | str | None = None,
    plot_dir: Path | str | None = PLOT_DIRECTORY,
    console: Console | None = None,
    workloads: int | None = None,
    report_path: Path | str | None = None,
    session: str = "weft",
) -> int:
    """Run entries by name, group or pattern; return 1 when a bar is missed or an answer is wrong.

    No name runs all; `workloads` is the most that entries draw at random. With `report_path` those
    entries are meant that reproduce the papers, and a report is written: Markdown, with pictures
    in a folder beside it. Entries against stock Spark run in weft's own `session` or in one as
    Spark gives it, "spark". Raises `QueryError` for a name that no entry has, before anything runs.
    """
    from weft.bench.suite.regret.draws import at_most
    from weft.bench.suite.spark.sessions import in_session

    if report_path is not None:
        reproduced = select(reproduction.names(), entries())
        return write_report(select(names, reproduced), Path(report_path), quick, console)
    with at_most(workloads), in_session(session):
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
    for outcome in _outcomes(chosen, quick, console):
        outcomes.append(outcome)
        if outcome.panels and plot_dir is not None:
            _draw(outcome, Path(plot_dir), console)
        if json_path is not None:
            report.write_json(Path(json_path), outcomes, quick=quick)
    report.print_summary(outcomes, console)
    return int(any(outcome.failed for outcome in outcomes))


def write_report(
    chosen: Sequence[Entry], path: Path, quick: bool = False, console: Console | None = None
) -> int:
    """Run these entries and write what the papers published beside them, again after each.

    What a report that is there has of other entries stays.
    """
    console = console or _console()
    outcomes: dict[str, Outcome] = {}
    pictures: dict[str, str] = {}
    path.parent.mkdir(parents=True, exist_ok=True)
    for outcome in _outcomes(chosen, quick, console):
        outcomes[outcome.name] = outcome
        if outcome.panels and (drawn := _draw(outcome, path.parent / PICTURES, console)):
            pictures[outcome.name] = f"{PICTURES}/{drawn.name}"
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        text = reproduction.markdown(outcomes, pictures, quick=quick, before=before)
        path.write_text(text, encoding="utf-8")
    report.print_summary(tuple(outcomes.values()), console)
    console.print(f"report: {path}", markup=False, soft_wrap=True)
    return int(any(outcome.failed for outcome in outcomes.values()))


def _outcomes(chosen: Sequence[Entry], quick: bool, console: Console) -> Iterator[Outcome]:
    """Run entries one after the other under a bar, and print each as it ends."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(24), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as shown:
        bar = shown.add_task("", total=len(chosen))
        for number, entry in enumerate(chosen, 1):
            shown.update(bar, description=f"{entry.name} ({number} of {len(chosen)})")
            outcome = run_entry(entry, quick=quick)
            shown.advance(bar)
            report.print_outcome(outcome, console)
            yield outcome


def list_entries(names: Sequence[str] = (), console: Console | None = None) -> None:
    """Print the names and questions of the entries."""
    report.print_list(select(names, entries()), console or _console())


def _draw(outcome: Outcome, directory: Path, console: Console) -> Path | None:
    if reason := missing(plot.NEEDS):
        console.print(f"plot skipped: {reason}", style="yellow", markup=False)
        return None
    path = plot.draw(outcome, directory)
    console.print(f"plot: {path}", markup=False, soft_wrap=True)
    return path


def _console() -> Console:
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, _FILE_COLUMNS)
    return console
