"""`weft generate`: data sets that are the same for the same seed."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli.options import examples

EXAMPLES = examples(
    "weft generate sensors --rows 1000000 --seed 7 -o sensors --devices 100 --disorder '5 seconds'",
    "weft generate nexmark --rows 1000000 --seed 7 -o nexmark --files 8",
    "weft generate trace --rows 50000 --seed 7 -o trace --format csv --hosts 500",
)


def _option(name: str, metavar: str, sets: str, help: str) -> Any:
    return typer.Option(name, metavar=metavar, help=f"{help} [{sets}]", show_default=False)


def command(
    set_name: Annotated[
        str, typer.Argument(metavar="SET", help="nexmark, sensors or trace.", show_default=False)
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="A new or empty folder.")
    ],
    rows: Annotated[
        int, typer.Option("--rows", "-n", metavar="N", help="Rows in all.", show_default=True)
    ] = 100_000,
    seed: Annotated[
        int,
        typer.Option(
            "--seed", metavar="S", help="The same seed, the same rows.", show_default=True
        ),
    ] = 7,
    format: Annotated[
        str,
        typer.Option(
            "--format", "-f", metavar="F", help="parquet, csv or json.", show_default=True
        ),
    ] = "parquet",
    files: Annotated[
        int,
        typer.Option(
            "--files",
            metavar="K",
            help="Files a table, in order of arrival; above 1 each table is a folder.",
            show_default=True,
        ),
    ] = 1,
    rate: Annotated[
        str | None, _option("--rate", "R", "all", "Events per second, such as 1000 or 1/60.")
    ] = None,
    start: Annotated[
        str | None, _option("--start", "TIME", "all", "Time of the first event, ISO-8601.")
    ] = None,
    skew: Annotated[
        float | None,
        _option("--skew", "Z", "sensors, trace", "Zipf exponent of the keys; 0 is uniform."),
    ] = None,
    devices: Annotated[
        int | None, _option("--devices", "K", "sensors", "Distinct devices.")
    ] = None,
    disorder: Annotated[
        str | None, _option("--disorder", "D", "sensors", "Greatest delay, such as '5 seconds'.")
    ] = None,
    late_share: Annotated[
        float | None,
        _option("--late-share", "P", "sensors", "Share of the rows that come later still."),
    ] = None,
    hosts: Annotated[int | None, _option("--hosts", "K", "trace", "Distinct hosts.")] = None,
    disorder_group: Annotated[
        int | None, _option("--disorder-group", "K", "nexmark", "Events shuffled together.")
    ] = None,
    hot_auction_ratio: Annotated[
        int | None, _option("--hot-auction-ratio", "K", "nexmark", "1 - 1/K of the bids are hot.")
    ] = None,
    hot_bidder_ratio: Annotated[
        int | None, _option("--hot-bidder-ratio", "K", "nexmark", "The same for bidders.")
    ] = None,
    hot_seller_ratio: Annotated[
        int | None, _option("--hot-seller-ratio", "K", "nexmark", "The same for sellers.")
    ] = None,
    padding: Annotated[
        bool | None,
        typer.Option(
            "--padding/--no-padding",
            help="Fill rows up to the benchmark's sizes. [nexmark]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a seeded data set: nexmark, sensors or trace.

    nexmark: people, auctions and bids; sensors: readings of devices; trace: TCP connections.
    Options end with the sets that have them.
    """
    from weft.cli.inputs import rate_of
    from weft.cli.screen import say, working
    from weft.generate import generate, write

    options = {
        "rate": None if rate is None else rate_of(rate),
        "start": None if start is None else _instant(start),
        "skew": skew,
        "devices": devices,
        "disorder": disorder,
        "late_share": late_share,
        "hosts": hosts,
        "disorder_group": disorder_group,
        "hot_auction_ratio": hot_auction_ratio,
        "hot_bidder_ratio": hot_bidder_ratio,
        "hot_seller_ratio": hot_seller_ratio,
        "padding": padding,
    }
    given = {name: value for name, value in options.items() if value is not None}
    began_s = time.perf_counter()
    with working(f"generating {rows:,} rows of {set_name}"):
        tables = generate(set_name, rows, seed, **given)
        paths = write(tables, output, format, files)
    took_s = time.perf_counter() - began_s
    for name, table in tables.items():
        mine = [path for path in paths if name in (path.stem, path.parent.name)]
        where = mine[0] if len(mine) == 1 else f"{mine[0].parent} ({len(mine)} files)"
        say(f"{name}: {table.num_rows:,} rows, {_size(mine)}, in {where}")
    say(f"took {took_s:.1f} s")


def _instant(text: str) -> Any:
    import datetime as dt

    from weft.errors import InputError

    try:
        return dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(
            f"cannot read {text!r} as a time", hint="write it as 2026-01-31T12:00:00Z"
        ) from error


def _size(paths: list[Path]) -> str:
    size_bytes = sum(path.stat().st_size for path in paths)
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 1e5 else f"{size_bytes / 1e3:.1f} kB"
