"""DuckDB: one statement a query, windows united; it groups by whole numbers, which is faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .protocol import MINUTE_US, TRAILING, copies, instance_columns, serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from .protocol import Agg, Job, Query, Window

THREADS = 2
_NAMES = {"stddev": "stddev_samp", "max_by": "arg_max"}


def call(agg: Agg) -> str:
    """Write an aggregate.

    >>> call({"as": "n", "call": "count"}), call({"as": "a", "call": "max_by", "column": "x, y"})
    ('count(*) AS n', 'arg_max(x, y) AS a')
    """
    name = _NAMES.get(agg["call"], agg["call"])
    return f"{name}({agg.get('column', '*')}) AS {agg['as']}"


def windowed(query: Query, label: str, window: Window) -> str:
    """Write one window of a query: copies of events for a hop, sums of gaps for sessions."""
    keys = "".join(f'"{key}", ' for key in query["keys"])
    where = f"WHERE {query['where'][0]} = '{query['where'][1]}'" if query["where"] else ""
    calls = ", ".join(call(agg) for agg in query["aggs"])
    source = f"(SELECT *, epoch_us({query['time']}) AS us FROM {query['table']} {where})"
    if window["kind"] == "session":
        return _session(keys, source, calls, label, window)
    slide, count = window["slide_us"], copies(window)
    start = f"us // {slide}" if count == 1 else f"us // {slide} - i"
    fan = "" if count == 1 else f", range({count}) AS fan(i)"
    return (
        f"SELECT {keys}'{label}' AS \"window\", ({start}) * {slide} AS window_start, {calls} "
        f"FROM {source}{fan} GROUP BY {keys}{start}"
    )


def _session(keys: str, source: str, calls: str, label: str, window: Window) -> str:
    gap = window["gap_us"]
    by = f"PARTITION BY {keys.rstrip(', ')} ORDER BY us" if keys else "ORDER BY us"
    marked = f"SELECT *, coalesce(us - lag(us) OVER ({by}) >= {gap}, false) AS fresh FROM {source}"
    numbered = (
        f"SELECT *, count_if(fresh) OVER ({by} ROWS UNBOUNDED PRECEDING) AS nth FROM ({marked})"
    )
    return (
        f"SELECT {keys}'{label}' AS \"window\", min(us) AS window_start, "
        f"max(us) + {gap} AS window_end, {calls} FROM ({numbered}) GROUP BY {keys}nth"
    )


def statement(query: Query) -> str:
    """Write a query whole."""
    parts = [windowed(query, label, window) for label, window in query["windows"].items()]
    united = " UNION ALL ".join(parts)
    if top := query.get("hottest"):
        names = ", ".join(f'"{name}"' for name in instance_columns(query))
        united = f"SELECT * FROM ({united}) QUALIFY {top} = max({top}) OVER (PARTITION BY {names})"
    return united


def _trailing(job: Job, *, shorter_us: int = 0) -> str:
    frames = ", ".join(
        f'{label} AS (PARTITION BY "user" ORDER BY us RANGE BETWEEN '
        f"{range_us - shorter_us} PRECEDING AND CURRENT ROW)"
        for label, range_us in job["ranges"].items()
    )
    columns = ", ".join(
        f"{function}(amount) OVER {label} AS {name}_{label}"
        for label in job["ranges"]
        for name, function in TRAILING
    )
    return f"SELECT id, {columns} FROM (SELECT * FROM rows_in_order) WINDOW {frames}"


def statements(job: Job) -> dict[str, str]:
    """Write a job: by the name of its result, the statement."""
    match job["kind"]:
        case "windows":
            return {query["name"]: statement(query) for query in job["queries"]}
        case "trailing":
            rows = 'SELECT id, epoch_us(ts) AS us, "user", amount FROM events'
            return {"rows": f"WITH rows_in_order AS ({rows}) {_trailing(job)}"}
        case "as_of":
            # Labels are rows that count nowhere; an event counts from a microsecond later on.
            rows = (
                'SELECT id, epoch_us(ts) AS us, "user", NULL AS amount FROM labels UNION ALL '
                'SELECT NULL, epoch_us(ts) + 1, "user", amount FROM events'
            )
            found = f"WITH rows_in_order AS ({rows}) {_trailing(job, shorter_us=1)}"
            return {"rows": f"SELECT * FROM ({found}) WHERE id IS NOT NULL"}
    return {"rows": _AUCTION}


_AUCTION = f"""
WITH joined AS (
  SELECT a.category, b.price, epoch_us(b.date_time) // {MINUTE_US} AS minute,
         epoch_us(a.date_time) AS opened
  FROM bid b JOIN auction a ON b.auction = a.id JOIN person p ON a.seller = p.id
  WHERE p.state <> 'CA'
)
SELECT category, (minute - i) * {MINUTE_US} AS window_start, count(*) AS bids, sum(price) AS total,
       max(price) AS top
FROM joined, range(60) AS fan(i)
WHERE opened < (minute - i + 60) * {MINUTE_US}
GROUP BY category, minute - i
"""


def start(job: Job) -> Callable[[], None]:
    """Get ready, and return what is timed."""
    import duckdb

    connection: Any = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    connection.execute("SET TimeZone = 'UTC'")
    for name, path in job["tables"].items():
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{path}'")
    asked = statements(job)

    def run() -> None:
        for name, text in asked.items():
            connection.execute(f"COPY ({text}) TO '{job['output']}/{name}.parquet'")

    return run


def _versions() -> str:
    import duckdb

    return f"DuckDB {duckdb.__version__}"


if __name__ == "__main__":
    serve(start, _versions)
