"""`weft bench`: benchmarks that check their answers and compare contenders by ratio."""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.options import examples

EXAMPLES = examples(
    "weft bench --list",
    "weft bench --quick",
    "weft bench sharing 'kernels/*' --json figures.json",
    "weft bench regret/local --workloads 10",
    "weft bench --report reproduction.md 'planners/*'",
)


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Entries, groups or patterns; all of them by default.",
            show_default=False,
        ),
    ] = None,
    only_list: Annotated[
        bool, typer.Option("--list", help="Print the entries and their questions, and stop.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small inputs and few rounds: a check, not a figure.")
    ] = False,
    workloads: Annotated[
        int | None,
        typer.Option(
            "--workloads", metavar="N", min=1, help="Random workloads to draw, where entries do."
        ),
    ] = None,
    session: Annotated[
        str,
        typer.Option(
            "--session",
            metavar="weft|spark",
            help="The session of entries against stock Spark: weft's own, or as Spark gives it.",
            show_default=True,
        ),
    ] = "weft",
    json: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help="Write every figure to this file.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="OUT",
            help="Run what reproduces the papers, and write it beside what they published.",
        ),
    ] = None,
    plot: Annotated[
        Path,
        typer.Option(
            "--plot", metavar="DIR", help="The folder for drawn curves.", show_default=True
        ),
    ] = Path("bench-output"),
) -> None:
    """Run benchmarks, each of which checks its answer.

    Ends with status 1 when an answer is wrong or an entry falls short of its bar.
    """
    from weft import bench

    if only_list:
        bench.list_entries(names or ())
        return
    raise typer.Exit(
        bench.run(
            names or (),
            quick=quick,
            json_path=json,
            plot_dir=plot,
            workloads=workloads,
            report_path=report,
            session=session,
        )
    )
