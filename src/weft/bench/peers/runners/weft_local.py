"""weft in this process: Arrow tables read from parquet files, one plan, rows written to files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import weft

from .protocol import instance_columns, serve
from .stream_state import of_session
from .weft_asked import trailing_of, workload_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from .protocol import Job, Query


def _hottest(rows: pa.Table, query: Query) -> pa.Table:
    """Keep the rows whose value is the greatest of their instance."""
    if not (top := query.get("hottest")):
        return rows
    names = instance_columns(query)
    most = rows.group_by(names).aggregate([(top, "max")])
    return rows.join(most.rename_columns([*names, top]), [*names, top], join_type="left semi")


def _results(job: Job, tables: dict[str, Any]) -> dict[str, Any]:
    match job["kind"]:
        case "windows":
            found = weft.run(workload_of(job), tables, engine="local")
            queries = job["queries"]
            results = found if isinstance(found, dict) else {queries[0]["name"]: found}
            return {query["name"]: _hottest(results[query["name"]], query) for query in queries}
        case "trailing":
            return {"rows": weft.rolling(tables["events"], engine="local", **trailing_of(job))}
        case "as_of":
            asked = trailing_of(job)
            return {"rows": weft.as_of(tables["labels"], tables["events"], at="ts", **asked)}
    return {"rows": weft.run(weft.parse(job["sql"]), tables, engine="local")}


def start(job: Job) -> Callable[[], None]:
    """Get ready, and return what is timed."""
    import pyarrow.parquet as pq

    def run() -> None:
        tables = {
            n: pq.read_table(path, columns=job["columns"][n]) for n, path in job["tables"].items()
        }
        for name, rows in _results(job, tables).items():
            pq.write_table(rows, f"{job['output']}/{name}.parquet")

    return run


def _versions() -> str:
    from importlib.metadata import version

    return f"weft {version('weft-spark')}"


if __name__ == "__main__":
    serve(start, _versions, of_session)
