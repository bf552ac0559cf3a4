"""`weft calibrate`: what operations cost on this machine, measured for the cost model."""

from collections import deque
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.options import examples

if TYPE_CHECKING:
    from weft.calibration import Calibration


class Clock(StrEnum):
    """Which time prices are fitted to."""

    wall = "wall"
    cpu = "cpu"


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
    clock: Annotated[
        Clock,
        typer.Option(
            "--clock",
            help="The time that passes, or that of processors, shared out to the cores: on a host "
            "that others use too, Spark's is steadier.",
            show_default=True,
        ),
    ] = Clock.wall,
    workloads: Annotated[
        int,
        typer.Option(
            "--workloads",
            metavar="N",
            min=0,
            help="Time the plans of so many random workloads too, and fit prices to both.",
            show_default=True,
        ),
    ] = 0,
    from_runs: Annotated[
        bool,
        typer.Option("--from-runs", help="Learn from runs that `weft run --stats` measured."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what was measured, and keep nothing.")
    ] = False,
) -> None:
    """Measure what operations cost here, for planning.

    Runs plans whose operations are counted, fits a price to each kind of operation, checks the
    prices on plans they were not fitted to, and keeps them for this user; plans are chosen by them
    from then on. On a busy host nothing is kept.
    """
    from weft.calibration import learned, save
    from weft.cli.screen import say

    calibration = learned(engine) if from_runs else _measured(engine, events, clock, workloads)
    _show(calibration)
    if dry_run:
        say("kept nothing")
        return
    for place in save(calibration):
        say(f"wrote {place}")


def _measured(engine: str, events: int | None, clock: Clock, workloads: int) -> "Calibration":
    from weft.calibration import calibrate
    from weft.cli.screen import working

    probes = deque([""], maxlen=1)
    with working(f"running probe plans on {engine}", lambda: probes[0]):
        return calibrate(engine, events, probes.append, clock.value, workloads)


def _show(calibration: "Calibration") -> None:
    from rich.table import Table

    from weft.cli.screen import say, show

    table = Table("operation", box=None, pad_edge=False)
    for measured in calibration.coefficients:
        table.add_column(measured.engine, justify="right")
    every = [asdict(measured) for measured in calibration.coefficients]
    for name in every[0]:
        if name.endswith(("_ns", "_ms")) and any(one[name] for one in every):
            words = f"{name[:-3].replace('_', ' ')}, {name[-2:]}"
            table.add_row(words, *(f"{one[name]:.4g}" if one[name] else "" for one in every))
    show(table)
    say(calibration.coefficients[0].measured_by)
    say(f"rank correlation of expected and measured times: {calibration.rank_correlation:.3f}")
    middle, most = (calibration.q_error(share) for share in (0.5, 0.9))
    say(
        f"probes that were held back: half are within {middle:.2f}x of the time expected, "
        f"nine of ten within {most:.2f}x"
    )
    say(f"repeated runs differ by {calibration.spread:.0%} in the median")
