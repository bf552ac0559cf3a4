"""Arguments and options that several commands have, with one wording for all."""

from pathlib import Path
from typing import Annotated

import typer

SqlFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE.sql",
        help="Statements separated by ; as a file, or - for standard input.",
        show_default=False,
    ),
]
SqlText = Annotated[
    str | None,
    typer.Option("-e", "--execute", metavar="SQL", help="The statements themselves."),
]
Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        "-t",
        metavar="NAME=PATH",
        help="A table that the statements read: a parquet, csv or json file, or a folder of such. "
        "Give it once for each table.",
    ),
]
Planner = Annotated[
    str,
    typer.Option(
        "--planner",
        metavar="P",
        help="auto (the cheapest), or one of them by name; independent shares nothing.",
        show_default=True,
    ),
]
Strategy = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        metavar="S",
        help="How Spark runs it: native (Catalyst only) or columnar (Arrow and the kernels); "
        "by default the one that costs less.",
    ),
]
Technique = Annotated[
    str | None,
    typer.Option(
        "--technique",
        metavar="T",
        help="How overlapping instances are put together, such as prefix_sums or fan_out; "
        "by default the cheapest that the aggregates allow.",
    ),
]
Rate = Annotated[
    str | None,
    typer.Option(
        "--rate", metavar="R", help="Events per second, such as 2500 or 1/60 (one a minute)."
    ),
]
Keys = Annotated[
    int | None, typer.Option("--keys", metavar="K", help="Distinct keys, such as devices.")
]
Events = Annotated[
    int | None, typer.Option("--events", metavar="N", min=0, help="Events in all, of a batch.")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace files that exist; without it they are kept.")
]


def examples(*lines: str) -> str:
    """Set examples under a command's help, each on a line of its own.

    >>> print(examples("weft demo").replace("\\b", "^"))
    ^
    Examples:
      weft demo
    """
    # A line with a backspace alone keeps the paragraph after it from being filled.
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
