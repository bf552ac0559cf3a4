"""`weft calibrate`: what operations cost on this machine, measured for the cost model."""

from collections import deque
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.options import examples

if TYPE_CHECKING:
    from weft.calibration import Calibration

EXAMPLES = examples("weft calibrate --engine local", "weft calibrate --engine spark --dry-run")


def command(
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="E",
            help="spark, spark-stream, local or reference.",
            show_default=True,
        ),
    ] = "spark",
    events: Annotated[
        int | None,
        typer.Option("--events", metavar="N", min=1, help="Events a probe; more are steadier."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what was measured, and keep nothing.")
    ] = False,
) -> None:
    """Measure what operations cost here, for planning.

    Runs plans whose operations are counted, fits a cost to each kind of operation, and keeps the
    result for this user; plans are chosen by it from then on.
    """
    from weft.calibration import engines_of, save
    from weft.cli.screen import say

    for name in engines_of(engine):
        calibration = _measured(name, events)
        _show(calibration)
        say("kept nothing" if dry_run else f"wrote {save(calibration)}")


def _measured(engine: str, events: int | None) -> "Calibration":
    from weft.calibration import calibrate
    from weft.cli.screen import working

    probes = deque([""], maxlen=1)
    with working(f"running probe plans on {engine}", lambda: probes[0]):
        return calibrate(engine, events, probes.append)


def _show(calibration: "Calibration") -> None:
    from rich.table import Table

    from weft.cli.screen import say, show

    table = Table("operation", box=None, pad_edge=False)
    table.add_column("ns", justify="right")
    measured = calibration.coefficients
    for field in fields(measured):
        if field.name.endswith("_ns"):
            words = field.name.removesuffix("_ns").replace("_", " ")
            table.add_row(words, f"{getattr(measured, field.name):.4g}")
    show(table)
    say(measured.measured_by)
    say(f"rank correlation of costs and times: {calibration.rank_correlation:.3f}")
