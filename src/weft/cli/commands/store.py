"""`weft store`: slices that are kept, so that a nightly job reads one day and not all of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.options import Overwrite, SqlFile, SqlText, Tables, examples

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weft import Store, Workload

EXAMPLES = examples(
    "weft store append slices features.sql --table readings=2024-05-01.parquet --id 2024-05-01",
    "weft store append slices --table readings=2024-05-01.parquet --id 2024-05-01 --replace",
    "weft store refresh slices features.sql --into features",
    "weft store run slices other.sql --since 2024-04-01 --output other.parquet",
    "weft store show slices",
)
app = typer.Typer(
    name="store",
    rich_markup_mode=None,
    epilog=EXAMPLES,
    no_args_is_help=True,
    help="Keep slices of events, and answer queries from them.",
)

Engine = Annotated[
    str, typer.Option("--engine", metavar="E", help="local or spark.", show_default=True)
]
Place = Annotated[
    str,
    typer.Argument(
        metavar="STORE", help="The folder of the store, or its table: catalog://DATABASE.TABLE."
    ),
]


@app.command("append")
def append(
    store: Place,
    file: SqlFile = None,
    sql: SqlText = None,
    table: Tables = None,
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Under which the same events come only once."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put them in the place of what the id had.")
    ] = False,
    engine: Engine = "local",
) -> None:
    """Fold events into a store; with queries it is made first, with slices that serve them."""
    from weft.cli.inputs import frames_of, tables_of
    from weft.cli.screen import say, working
    from weft.errors import InputError
    from weft.query import Workload
    from weft.store.store import check_engine

    check_engine(engine)
    opened = _opened(store, file, sql)
    sources = {name.partition("=")[0] for name in table or []}
    needed = Workload(query for query in opened.plan.queries if query.source in sources)
    with working("folding events into slices"):
        read: Callable[..., Mapping[str, Any]] = frames_of if engine == "spark" else tables_of
        events = read(table or [], needed)
        if not events:
            raise InputError("no events are given", hint="add --table NAME=PATH")
        if replace and id is None:
            raise InputError("--replace needs the id that is replaced", hint="add --id ID")
        if replace and id is not None:
            opened.replace(dict(events), id)
        else:
            opened.append(dict(events), id)
    say(_told(opened))


@app.command("run")
def run(
    store: Place,
    file: SqlFile = None,
    sql: SqlText = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Windows that begin then or later."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="Write all rows, as `weft run` does."),
    ] = None,
    limit: Annotated[
        int,
        typer.Option("--limit", "-n", metavar="N", min=0, help="Rows to show.", show_default=True),
    ] = 10,
    overwrite: Overwrite = False,
) -> None:
    """Answer queries from slices alone; without any, those the store was made for."""
    from weft import Store
    from weft.cli.outputs import targets_of
    from weft.cli.screen import say, show_rows, working
    from weft.tables import refuse_existing, write_table

    opened = Store(store)
    asked = _asked(opened, file, sql)
    names = [query.name for query in asked]
    targets = {} if output is None else targets_of(output, names)
    for target in targets.values():
        refuse_existing(target, overwrite=overwrite)
    with working("answering from slices"):
        found = opened.run(asked, since=None if since is None else _instant(since))
    results = {names[0]: found} if len(names) == 1 else found
    for name, rows in results.items():
        show_rows(rows, limit, title=name)
        if name in targets:
            say(f"wrote {write_table(rows, targets[name], overwrite=overwrite)}")


@app.command("refresh")
def refresh(
    store: Place,
    file: SqlFile = None,
    sql: SqlText = None,
    into: Annotated[
        str | None,
        typer.Option(
            "--into",
            metavar="PLACE",
            help="The folder of the results, or a table: delta://PATH, "
            "iceberg://CATALOG.NAMESPACE.TABLE, jdbc:postgresql://HOST/DB?table=NAME.",
        ),
    ] = None,
) -> None:
    """Bring a folder of results up to date: the windows that changed, and no others."""
    from weft import Store
    from weft import refresh as bring_up_to_date
    from weft.cli.screen import say, working
    from weft.errors import InputError
    from weft.targets import target_of

    if into is None:
        raise InputError("no place for the results is given", hint="add --into DIR")
    opened = Store(store)
    with working("refreshing"):
        done = bring_up_to_date(_asked(opened, file, sql), opened, into=into)
    place = target_of(into) or into  # a table without its password
    say(f"{place}: {done.rows:,} rows in {done.files:,} files, as of version {done.version}")


@app.command("show")
def show(store: Place) -> None:
    """Say what a store keeps, and which queries it was made for."""
    from weft import Store
    from weft.cli.screen import say
    from weft.store.serving import grain

    opened = Store(store)
    manifest = opened.manifest
    say(_told(opened))
    for number, kept in enumerate(manifest.sets):
        files = [file for file in manifest.files() if file.set == number]
        by = ", ".join(text for _, text in kept.keys) or "no key"
        where = "" if kept.where is None else f" where {kept.where}"
        say(
            f"\nslices of {kept.source}{where} by {by}, cut {grain(kept.levels[0])}: "
            f"{sum(f.rows for f in files):,} rows, {sum(f.bytes for f in files):,} bytes"
        )
        for name, partial in kept.partials:
            say(f"  {name}: {partial}")
    say("\nbatches: " + (", ".join(opened.batches) or "none"))


def _opened(store: str, file: Path | None, sql: str | None) -> "Store":
    from weft import Store
    from weft.cli.inputs import workload_of

    return Store(store, None if file is None and sql is None else workload_of(file, sql))


def _asked(store: "Store", file: Path | None, sql: str | None) -> "Workload":
    from weft.cli.inputs import workload_of

    return store.workload if file is None and sql is None else workload_of(file, sql)


def _told(store: "Store") -> str:
    manifest, coverage = store.manifest, store.coverage
    times = "nothing yet" if coverage is None else f"{coverage[0]} to {coverage[1]}"
    return (
        f"{store.table or store.path}: version {manifest.version}, {manifest.events:,} events in "
        f"{len(manifest.batches):,} batches, {times}"
    )


def _instant(text: str) -> Any:
    import datetime as dt

    from weft.errors import InputError

    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{text!r} is no time", hint="write 2024-05-01 or 2024-05-01T12:00:00"
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)
