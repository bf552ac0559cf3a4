"""What a bench run tells: tables on the terminal, and a JSON file with every figure."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.bench.frame import Column, Outcome, Spread, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from weft.bench.frame import Cell, Entry, Judgement

_LIBRARIES = (
    "weft-spark", "numpy", "numba", "pyarrow", "pyspark", "scipy", "bottleneck", "duckdb", "polars",
    "matplotlib",
)  # fmt: skip
_FIGURES_ON_A_LINE = 5
_COLOURS = {"ok": "green", "met": "green", "missed": "red", "wrong": "red"}


def print_list(entries: Iterable[Entry], console: Console) -> None:
    """Show the names of the entries and the questions they answer."""
    from rich.table import Table

    table = Table("entry", "question", box=None, pad_edge=False)
    for entry in entries:
        table.add_row(entry.name, entry.question)
    console.print(table)


def print_outcome(outcome: Outcome, console: Console) -> None:
    """Show the figures of one entry, then its bars."""
    from rich.table import Table
    from rich.text import Text

    console.print()
    console.print(
        Text.assemble(
            (outcome.name, "bold"), "  ", (outcome.status, _COLOURS.get(outcome.status, "yellow"))
        )
    )
    console.print(Text(outcome.question, style="italic"))
    if outcome.rows:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in outcome.columns:
            cells = [row.get(column.name) for row in outcome.rows]
            figures = any(isinstance(cell, int | float | Spread) for cell in cells)
            table.add_column(
                column.name,
                justify="right" if figures else "left",
                style="cyan" if column.published else None,
                no_wrap=not (figures or column.published),
            )
        for row in outcome.rows:
            table.add_row(*(Text(column.text(row.get(column.name))) for column in outcome.columns))
        console.print(table)
    for line, judgement in verdict_lines(outcome.verdicts):
        console.print(Text(line, style=_COLOURS.get(judgement, "yellow")), soft_wrap=True)
    for note in outcome.notes:
        console.print(Text(f"note: {note}", style="yellow"), soft_wrap=True)


def verdict_lines(verdicts: Iterable[Verdict]) -> list[tuple[str, Judgement]]:
    """Put verdicts with the same promise and end on one line; only misses are all spelled out.

    >>> bars = [Verdict("a at least 2x b", f"n={n}", float(n), "met") for n in (3, 4)]
    >>> for line, _ in verdict_lines([*bars, Verdict("a at least 2x b", "n=1", 1.0, "missed")]):
    ...     print(line)
    met        a at least 2x b: n=3 3; n=4 4
    missed     a at least 2x b: n=1 1
    """
    grouped: dict[tuple[str, Judgement, str], list[str]] = {}
    for verdict in verdicts:
        key = (verdict.promise, verdict.judgement, verdict.reason)
        grouped.setdefault(key, []).append(
            f"{verdict.where} {Column('').text(verdict.figure)}".strip()
        )
    lines = []
    for (promise, judgement, reason), figures in grouped.items():
        short = judgement == "missed" or len(figures) <= _FIGURES_ON_A_LINE
        told = "; ".join(figures) if short else f"{len(figures)} figures"
        because = f" ({reason})" if reason else ""
        figures_told = f": {told}" if told else ""
        lines.append((f"{judgement:10} {promise}{figures_told}{because}", judgement))
    return lines


def print_summary(outcomes: Sequence[Outcome], console: Console) -> None:
    """Count the outcomes, and name the entries that failed."""
    from rich.text import Text

    counts = Counter(outcome.status for outcome in outcomes)
    told = ", ".join(f"{count} {status}" for status, count in counts.items()) or "nothing to run"
    console.print()
    console.print(Text(f"{len(outcomes)} entries: {told}", style="bold"))
    for outcome in outcomes:
        if outcome.failed:
            console.print(Text(f"{outcome.name}: {outcome.status}", style="red"))


def write_json(path: Path, outcomes: Sequence[Outcome], *, quick: bool) -> None:
    """Write every figure with the machine, the date and the versions it was measured with."""
    report = {
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "quick": quick,
        "entries": [_entry_json(outcome) for outcome in outcomes],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def machine() -> dict[str, str | int | None]:
    """Describe the machine: processor, cores, memory and system.

    >>> sorted(machine())
    ['cores', 'memory_bytes', 'processor', 'system']
    """
    names = getattr(os, "sysconf_names", {})
    memory = None
    if "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": memory,
        "system": platform.platform(),
    }


def _processor() -> str:
    """Name the processor; Linux tells it in a file and nowhere else."""
    told = Path("/proc/cpuinfo")
    if told.exists():
        for line in told.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """List the versions of Python and of the libraries that are installed.

    >>> "python" in versions(), "numpy" in versions()
    (True, True)
    """
    found = {"python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


def _entry_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "name": outcome.name,
        "question": outcome.question,
        "status": outcome.status,
        "seconds": outcome.seconds,
        "published_columns": [column.name for column in outcome.columns if column.published],
        "rows": [{name: _cell_json(cell) for name, cell in row.items()} for row in outcome.rows],
        "bars": [
            {**asdict(verdict), "figure": _cell_json(verdict.figure)}
            for verdict in outcome.verdicts
        ],
        "notes": list(outcome.notes),
        "curves": [asdict(panel) for panel in outcome.panels],
    }


def _cell_json(cell: Cell) -> Any:
    return asdict(cell) if isinstance(cell, Spread) else cell
