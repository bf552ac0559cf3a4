"""`weft explain`: the plan of a workload, without running it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from weft.cli.options import (
    Events,
    Keys,
    Overwrite,
    Planner,
    Rate,
    SqlFile,
    SqlText,
    Strategy,
    Technique,
    examples,
)

if TYPE_CHECKING:
    from weft.plan.body import Format

EXAMPLES = examples(
    "weft explain features.sql",
    "weft explain features.sql --planner independent --rate 5000 --keys 200",
    "weft explain features.sql -o plan.html",
    'weft explain -e "SELECT device, MIN(temp) AS lo FROM readings '
    "GROUP BY device, window(ts, '20 minutes')\"",
)
_FORMATS_BY_EXTENSION = {
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".svg": "svg",
}


def command(
    file: SqlFile = None,
    sql: SqlText = None,
    planner: Planner = "auto",
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="M",
            help="calibrated (costs as measured; the default), or paper (counts as published).",
        ),
    ] = None,
    rate: Rate = None,
    keys: Keys = None,
    events: Events = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="E",
            help="The engine whose costs count: spark, local or reference.",
            show_default=True,
        ),
    ] = "spark",
    strategy: Strategy = None,
    technique: Technique = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="F",
            help="text, verbose, json, mermaid, html or svg; by default as OUT ends, else text.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="Write the plan to this file."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Show the plan, its cost, and what was considered instead."""
    from weft import optimize
    from weft.cli.inputs import statistics_of, workload_of
    from weft.cli.screen import say

    if output is not None:
        from weft.tables import refuse_existing

        refuse_existing(output, overwrite=overwrite)
    statistics = statistics_of(rate, keys, events)
    workload = workload_of(file, sql)
    plan = optimize(
        workload, planner, engine, statistics, model, strategy=strategy, technique=technique
    )
    extension = "" if output is None else output.suffix.lower()
    text = plan.explain(cast("Format", format or _FORMATS_BY_EXTENSION.get(extension, "text")))
    if output is None:
        say(text.rstrip("\n"))
        return
    output.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    say(f"wrote {output}")
