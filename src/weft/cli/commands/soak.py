"""`weft soak`: random workloads on several engines, until one of them differs."""

import time
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.options import examples
from weft.cli.status import NO

EXAMPLES = examples(
    "weft soak --minutes 5",
    "weft soak --minutes 60 --engines reference,local,spark,spark-stream",
    "weft soak --minutes 0 --seed 1234    (one workload, again)",
)


def command(
    minutes: Annotated[
        float,
        typer.Option("--minutes", metavar="N", min=0, help="How long to try.", show_default=True),
    ] = 1.0,
    engines: Annotated[
        str,
        typer.Option(
            "--engines",
            metavar="E,...",
            help="Engines to compare, the first with each of the others; spark-stream not first.",
            show_default=True,
        ),
    ] = "reference,local",
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", metavar="S", min=0, help="The first workload; the next ones follow it."
        ),
    ] = None,
    script: Annotated[
        Path,
        typer.Option("--script", metavar="FILE", help="Where a failure is written, as a script."),
    ] = Path("weft-difference.py"),
) -> None:
    """Run random workloads at real magnitudes on several engines, and compare their rows.

    Ends with status 1 at the first difference, which is made as small as possible and written as
    a script that shows it.
    """
    import secrets

    from weft.cli.screen import say, working
    from weft.errors import InputError
    from weft.running import STREAM, engine_named
    from weft.testing.soak import script_of, soak

    names = tuple(name.strip() for name in engines.split(",") if name.strip())
    if len(names) < 2 or names[0] == STREAM:
        raise InputError(
            f"there is nothing to compare on {engines!r}",
            hint=f"name two engines or more, {STREAM} not as the first",
        )
    for name in names:
        engine_named(name)
    first = secrets.randbelow(2**31) if seed is None else seed
    began_s, lasts_s = time.monotonic(), minutes * 60

    def part() -> float | None:
        return min((time.monotonic() - began_s) / lasts_s, 1.0) if lasts_s else None

    with working(f"workloads from --seed {first} on {', '.join(names)}", part=part):
        found = soak(names, lasts_s, first)
    told = f"{found.cases:,} workloads over {found.events:,} events on {', '.join(names)}"
    told += f", {found.refused:,} of them refused by an engine" if found.refused else ""
    if found.failure is None:
        say(f"{told}: no difference (from --seed {first})")
        return
    script.write_text(script_of(found.failure), encoding="utf-8")
    say(f"{told}: a difference at --seed {found.failure.case.seed}")
    say(f"  {found.failure.told}")
    say(f"{script} shows it with {found.failure.case.events.num_rows} events")
    raise typer.Exit(NO)
