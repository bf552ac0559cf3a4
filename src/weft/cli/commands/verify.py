"""`weft verify`: whether engines, and the plans they run, give the same rows."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.options import Planner, SqlFile, SqlText, Tables, examples
from weft.cli.status import NO

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft import Workload
    from weft.compare import Difference

EXAMPLES = examples(
    "weft verify features.sql --table readings=readings.parquet",
    "weft verify features.sql --table readings=readings.parquet --planner independent",
    "weft verify features.sql --table readings=readings.parquet --engines reference,local,spark",
)
ORACLE = "reference"
ENGINES = f"{ORACLE},local"


def command(
    file: SqlFile = None,
    sql: SqlText = None,
    table: Tables = None,
    engines: Annotated[
        str,
        typer.Option(
            "--engines",
            metavar="E,...",
            help="Engines to compare, the first with each of the others. The reference engine "
            "alone is compared with the plan, run step by step.",
            show_default=True,
        ),
    ] = ENGINES,
    planner: Planner = "auto",
) -> None:
    """Compare the answers of engines and plans, row by row.

    Ends with status 1, and the first difference of each query, when they are not the same.
    """
    from weft import verify
    from weft.cli.inputs import tables_of, workload_of
    from weft.cli.screen import working

    workload = workload_of(file, sql)
    names = tuple(name.strip() for name in engines.split(",") if name.strip())
    with working("reading the tables"):
        tables = tables_of(table or [], workload)
    with working(f"running on {' and '.join(names)}"):
        if names != (ORACLE,):
            report = verify(workload, tables, names, planner=planner)
            rows, differences = report.rows, report.differences
        else:
            rows, differences = verify_plan(workload, tables, planner)
    against = ", ".join(names) if len(names) > 1 else f"{ORACLE} and plan"
    conclude(f"{rows:,} rows on {against}", differences)


def verify_plan(
    workload: "Workload", tables: "Mapping[str, Any]", planner: str
) -> "tuple[int, tuple[Difference, ...]]":
    """Compare what the reference engine answers with what it makes of the plan."""
    from weft import optimize, run

    plan = optimize(workload, planner, ORACLE)
    return compare(workload, tables, run(plan, tables, engine=ORACLE), "plan")


def compare(
    workload: "Workload", tables: "Mapping[str, Any]", made: Any, maker: str
) -> "tuple[int, tuple[Difference, ...]]":
    """Compare results with those of the reference engine: how many rows it has, and differences."""
    from weft import Query, run
    from weft.compare import first_difference

    wanted = run(workload, tables, engine=ORACLE)
    if len(workload) == 1:
        name = workload.queries[0].name
        made, wanted = {name: made}, {name: wanted}
    found = [
        first_difference(query, made[query.name], wanted[query.name], maker)
        for query in workload
        if isinstance(query, Query)
    ]
    rows = sum(table.num_rows for table in wanted.values())
    return rows, tuple(difference for difference in found if difference is not None)


def conclude(compared: str, differences: "Sequence[Difference]") -> None:
    """Say that all is the same; or name each difference, and leave with status 1."""
    from weft.cli.screen import say

    if not differences:
        say(f"same: {compared}")
        return
    for difference in differences:
        say(f"different: {difference}")
    raise typer.Exit(NO)
