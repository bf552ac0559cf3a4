"""What a run did, as tables on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from weft.engines.measures import Measures

_MIB = 1 << 20


def show_measures(measures: Measures) -> None:
    """Print the rows of every node, expected beside counted, then the totals of the run."""
    from weft.cli.screen import say, show

    show(_nodes(measures))
    say()
    if measures.steps:
        show(_steps(measures))
        say()
    show(_totals(measures))


def _nodes(measures: Measures) -> Table:
    from rich.text import Text

    layout = _layout(
        ("node", "left"),
        ("", "left"),
        ("rows expected", "right"),
        ("rows", "right"),
        ("ms expected", "right"),
        ("ms", "right"),
    )
    for node in measures.nodes:
        expected = "-" if node.estimated is None else f"{node.estimated:,.0f}"
        actual = "-" if node.actual is None else f"{node.actual:,}"
        times = ("-" if ms is None else f"{ms:,.1f}" for ms in (node.expected_ms, node.ms))
        layout.add_row(*map(Text, (node.name, node.what, expected, actual, *times)))
    return layout


def _steps(measures: Measures) -> Table:
    """Lay out what nodes took that Spark computes together."""
    from rich.text import Text

    layout = _layout(
        ("nodes", "left"),
        ("", "left"),
        ("stages", "right"),
        ("tasks", "right"),
        ("ms expected", "right"),
        ("ms", "right"),
        ("ms of tasks", "right"),
    )
    for step in measures.steps:
        expected = "-" if step.expected_ms is None else f"{step.expected_ms:,.1f}"
        figures = (f"{len(step.stages)}", f"{step.tasks:,}", expected)
        times = (f"{step.ms:,.1f}", f"{step.task_ms:,.1f}")
        layout.add_row(*map(Text, (", ".join(step.nodes), step.what, *figures, *times)))
    return layout


def _totals(measures: Measures) -> Table:
    from rich.text import Text

    layout = _layout(("run", "left"), (measures.engine, "right"))
    for name, figure in _figures(measures):
        layout.add_row(Text(name), Text(figure))
    return layout


def _figures(measures: Measures) -> Iterator[tuple[str, str]]:
    yield "scans", f"{measures.scans:,}"
    yield "shuffles", f"{measures.shuffles:,}"
    yield "events", f"{measures.events:,}"
    if measures.combines is not None:
        yield "combines", f"{measures.combines:,}"
    yield "ms", f"{measures.seconds * 1e3:,.0f}"
    if measures.expected_ms is not None:
        yield "ms expected", f"{measures.expected_ms:,.0f}"
    yield "events per second", f"{measures.events_per_second:,.0f}"
    if measures.peak_bytes is not None:
        yield "peak memory", f"{measures.peak_bytes / _MIB:,.0f} MiB"


def _layout(*columns: tuple[str, str]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    layout = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name, side in columns:
        layout.add_column(
            Text(name), justify="right" if side == "right" else "left", overflow="fold"
        )
    return layout
