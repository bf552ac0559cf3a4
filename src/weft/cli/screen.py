"""What commands show: tables of results on standard output, progress on standard error."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from rich.table import Table

PATIENCE_S = 2.0
REDRAW_S = 0.5
# A file or a pipe has no width: lines there are as long as they need to be.
_UNBOUNDED_COLUMNS = 10_000


def say(text: str = "") -> None:
    """Print text to standard output as it is, not wrapped, not coloured, and at once.

    Whoever reads a pipe learns the address of a page, or a row, while the command still runs.
    """
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def show_rows(table: pa.Table, limit: int, title: str = "", rows: int | None = None) -> None:
    """Print the first `limit` rows with their types, and how many rows there are.

    `rows` is their number where the table is only the first of them.
    """
    total = table.num_rows if rows is None else rows
    if limit > 0:
        show(table_of_rows(table.slice(0, limit)))
    shown = min(limit, total)
    more = f", the first {shown:,} shown" if 0 < shown < total else ""
    named = f"{title}: " if title else ""
    say(f"{named}{total:,} row{'' if total == 1 else 's'}{more}")


def show(table: Table) -> None:
    """Print a rich table: as wide as the terminal allows, or as wide as it is."""
    from rich.console import Console

    if sys.stdout.isatty():
        Console().print(table)
        return
    console = Console(file=sys.stdout, width=_UNBOUNDED_COLUMNS, color_system=None)
    with console.capture() as capture:
        console.print(table)
    say("\n".join(line.rstrip() for line in capture.get().rstrip("\n").split("\n")))


def table_of_rows(table: pa.Table) -> Table:
    """Lay out an Arrow table, numbers and instants to the right, each column under its type."""
    import pyarrow as pa
    from rich import box
    from rich.table import Table
    from rich.text import Text

    layout = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for field in table.schema:
        is_text = pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        layout.add_column(
            Text(f"{field.name}\n{_type_name(field.type)}"),
            justify="left" if is_text else "right",
            overflow="fold",
        )
    columns = [_spelled(column) for column in table.columns]
    for row in zip(*columns, strict=True):
        layout.add_row(*map(Text, row))
    return layout


def unknown() -> None:
    """Say nothing of how far work is."""


@contextmanager
def working(
    what: str, detail: Callable[[], str] = str, part: Callable[[], float | None] = unknown
) -> Iterator[None]:
    """Show a bar while work goes on, on a terminal, once it has gone on for two seconds.

    Twice a second `detail` is asked how far it is, in words, and `part` how much of it is done,
    from 0 to 1. Either may have nothing to say: the bar then only moves.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(24), TimeElapsedColumn())
    status = Progress(*columns, console=Console(stderr=True), transient=True)
    task = status.add_task(what, total=None)
    done = threading.Event()

    def draw() -> None:
        pause_s = PATIENCE_S
        while not done.wait(pause_s):
            pause_s = REDRAW_S
            status.start()
            told, share = ": ".join(filter(None, (what, detail()))), part()
            if share is None:
                status.update(task, description=told)
            else:
                status.update(task, description=told, total=1.0, completed=share)

    drawing = threading.Thread(target=draw, daemon=True)
    drawing.start()
    try:
        yield
    finally:
        done.set()
        drawing.join()  # it may be drawing at this moment
        status.stop()


def _type_name(kind: pa.DataType) -> str:
    import pyarrow as pa

    return "timestamp" if pa.types.is_timestamp(kind) else str(kind)


def _spelled(column: pa.ChunkedArray[Any]) -> list[str]:
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        # Without the zone, which is UTC for all, and without the fraction of whole seconds.
        texts = column.cast(pa.timestamp("us"), safe=False).cast(pa.string()).to_pylist()
        return ["NULL" if text is None else text.removesuffix(".000000") for text in texts]
    if pa.types.is_floating(column.type):
        return ["NULL" if value is None else f"{value:.10g}" for value in column.to_pylist()]
    return ["NULL" if value is None else str(value) for value in column.to_pylist()]
