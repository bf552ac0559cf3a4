"""Apache Flink SQL: one process, a statement set, so that all statements share one read.

Windows of the clock and sessions run as a stream with window table functions, which fold events
into slices as they come; the auction, a join of whole tables, runs as a batch. Flink's time
attributes have milliseconds, and its sessions also take in an event that comes exactly a gap later:
so gaps are a millisecond shorter here, which is the same for times in milliseconds.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .protocol import copies, instance_columns, serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from .protocol import Agg, Job, Query, Window

PARALLELISM = 2
_NAMES = {"stddev": "STDDEV_SAMP"}
_SETTINGS = {
    "parallelism.default": str(PARALLELISM),
    "pipeline.object-reuse": "true",
    "table.local-time-zone": "UTC",
    "taskmanager.memory.network.min": "256mb",
    "taskmanager.memory.network.max": "256mb",
    "taskmanager.memory.managed.size": "1gb",
}


def _interval(us: int) -> str:
    """Write a duration; Flink takes at most a few digits of seconds.

    >>> _interval(90_000_000), _interval(86_400_000_000), _interval(499_000)
    ("INTERVAL '0 00:01:30.000' DAY TO SECOND(3)", "INTERVAL '1 00:00:00.000' DAY TO SECOND(3)",
     "INTERVAL '0 00:00:00.499' DAY TO SECOND(3)")
    """
    ms = us // 1000
    days, rest = divmod(ms, 86_400_000)
    hours, rest = divmod(rest, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds, ms = divmod(rest, 1000)
    return f"INTERVAL '{days} {hours:02}:{minutes:02}:{seconds:02}.{ms:03}' DAY TO SECOND(3)"


def _call(agg: Agg) -> str:
    name = _NAMES.get(agg["call"], agg["call"].upper())
    column = f"`{agg['column']}`" if "column" in agg else "*"
    return f"{name}({column}) AS `{agg['as']}`"


def _read_by(query: Query) -> str:
    """Name what a query reads: the table, or a view of it that has its filter."""
    return f"{query['table']}_{query['where'][1]}" if query["where"] else str(query["table"])


def _windows(query: Query, window: Window) -> str:
    source = f"TABLE {_read_by(query)}"
    if window["kind"] == "session":
        by = f" PARTITION BY {', '.join(_quoted(query))}" if query["keys"] else ""
        return f"SESSION({source}{by}, DESCRIPTOR(ts3), {_interval(window['gap_us'] - 1000)})"
    if copies(window) == 1:
        return f"TUMBLE({source}, DESCRIPTOR(ts3), {_interval(window['range_us'])})"
    slide, range_us = _interval(window["slide_us"]), _interval(window["range_us"])
    return f"HOP({source}, DESCRIPTOR(ts3), {slide}, {range_us})"


def _quoted(query: Query) -> list[str]:
    return [f"`{key}`" for key in query["keys"]]


def _select(query: Query, label: str, window: Window) -> str:
    """Write one window of a query as a statement of its own."""
    keys = "".join(f"{key}, " for key in _quoted(query))
    named = f"{keys}'{label}', window_start, "
    if window["kind"] == "session":
        named += f"window_end + {_interval(1000)}, "
    found = f"TABLE({_windows(query, window)})"
    grouped = f"{keys}window_start, window_end"
    if best := [agg for agg in query["aggs"] if agg["call"] == "max_by"]:
        return _top(query, named, found, grouped, best[0]["column"].split(",")[1].strip())
    calls = ", ".join(_call(agg) for agg in query["aggs"])
    if top := query.get("hottest"):
        counted = f"SELECT {keys}window_start, window_end, {calls} FROM {found} GROUP BY {grouped}"
        return _hottest(query, label, counted, top)
    return f"SELECT {named}{calls} FROM {found} GROUP BY {grouped}"


def _top(query: Query, named: str, found: str, grouped: str, by: str) -> str:
    """Take the first row of each instance by a column: Flink's form of `max_by`."""
    columns = ", ".join(f"`{agg['column'].split(',')[0].strip()}`" for agg in query["aggs"])
    place = f"ROW_NUMBER() OVER (PARTITION BY {grouped} ORDER BY `{by}` DESC)"
    ranked = f"SELECT *, {place} AS place FROM {found}"
    return f"SELECT {named}{columns} FROM ({ranked}) WHERE place = 1"


def _hottest(query: Query, label: str, counted: str, top: str) -> str:
    """Join the counts of instances with the greatest of each, as the benchmark's authors do."""
    most = (
        f"SELECT MAX(`{top}`) AS most, window_start, window_end FROM ({counted}) "
        "GROUP BY window_start, window_end"
    )
    names = ", ".join(f"l.{name}" for name in _quoted(query))
    values = ", ".join(f"l.`{agg['as']}`" for agg in query["aggs"])
    return (
        f"SELECT {names}, '{label}', l.window_start, {values} "
        f"FROM ({counted}) l JOIN ({most}) m ON l.window_start = m.window_start "
        f"AND l.window_end = m.window_end AND l.`{top}` = m.most"
    )


_AUCTION = """SELECT `category`, window_start, COUNT(*), SUM(price), MAX(price)
FROM TABLE(HOP(TABLE joined, DESCRIPTOR(ts3), INTERVAL '1' MINUTE, INTERVAL '1' HOUR))
WHERE opened < window_end GROUP BY `category`, window_start, window_end"""
_AUCTION_FIELDS = (
    "`category` BIGINT, window_start TIMESTAMP(3), bids BIGINT, total BIGINT, `top` BIGINT"
)
_JOINED = """CREATE TEMPORARY VIEW joined AS
SELECT a.`category`, b.price, b.ts3, a.ts3 AS opened FROM bid b
JOIN auction a ON b.auction = a.id JOIN person p ON a.seller = p.id WHERE p.`state` <> 'CA'"""
_TYPES = {"double": "DOUBLE", "string": "STRING"}
_FILES = "'connector' = 'filesystem', 'format' = 'parquet', 'parquet.utc-timezone' = 'true'"


def _types(job: Job, table: str) -> dict[str, str]:
    """Tell the types of a table's columns; times are whole microseconds to Flink."""
    import pyarrow.parquet as pq

    schema = pq.read_schema(job["tables"][table])
    return {n: _TYPES.get(str(schema.field(n).type), "BIGINT") for n in job["columns"][table]}


def _source(job: Job, name: str, *, stream: bool) -> str:
    fields = [f"`{column}` {kind}" for column, kind in _types(job, name).items()]
    instant = f"TO_TIMESTAMP_LTZ(`{job['times'][name]}` / 1000, 3)"
    fields.append(f"ts3 AS CAST({instant} AS TIMESTAMP(3))")
    if stream:
        fields.append("WATERMARK FOR ts3 AS ts3")
    path = f"'path' = 'file://{job['tables'][name]}'"
    return f"CREATE TEMPORARY TABLE {name} ({', '.join(fields)}) WITH ({_FILES}, {path})"


def _fields(job: Job, query: Query) -> str:
    """Write the columns of a query's result."""
    types = _types(job, query["table"])
    fields = {key: types[key] for key in query["keys"]}
    fields |= {"window": "STRING", "window_start": "TIMESTAMP(3)"}
    if "window_end" in instance_columns(query):
        fields["window_end"] = "TIMESTAMP(3)"
    for agg in query["aggs"]:
        column = agg.get("column", "").split(",")[0].strip()
        known = {"count": "BIGINT", "avg": "DOUBLE", "stddev": "DOUBLE"}
        fields[agg["as"]] = known.get(agg["call"]) or types[column]
    return ", ".join(f"`{name}` {kind}" for name, kind in fields.items())


def _sink(job: Job, name: str, fields: str) -> str:
    path = f"'path' = 'file://{job['output']}/{name}'"
    return f"CREATE TEMPORARY TABLE `out_{name}` ({fields}) WITH ({_FILES}, {path})"


def _definitions(job: Job) -> list[str]:
    """List the tables and views of a job."""
    stream = job["kind"] == "windows"
    found = [_source(job, name, stream=stream) for name in job["tables"]]
    if not stream:
        return [*found, _JOINED, _sink(job, "rows", _AUCTION_FIELDS)]
    views = {_read_by(query): query for query in job["queries"] if query["where"]}
    for view, query in views.items():
        column, value = query["where"]
        kept = f"SELECT * FROM {query['table']} WHERE `{column}` = '{value}'"
        found.append(f"CREATE TEMPORARY VIEW {view} AS {kept}")
    return found + [_sink(job, q["name"], _fields(job, q)) for q in job["queries"]]


def _statements(job: Job) -> list[str]:
    """List statements, one for each query, its windows united: so they have one writer."""
    if job["kind"] == "auction":
        return [f"INSERT INTO out_rows {_AUCTION}"]
    found = []
    for query in job["queries"]:
        parts = [_select(query, label, window) for label, window in query["windows"].items()]
        found.append(f"INSERT INTO `out_{query['name']}` {' UNION ALL '.join(parts)}")
    return found


def start(job: Job) -> Callable[[], float]:
    """Get ready, and return what is run; it tells what the job took.

    Every run in one process starts and ends a cluster of its own, for seconds: they are left out,
    and planning with them.
    """
    # Where Flink's launcher looks for jars that formats need.
    os.environ["HADOOP_CLASSPATH"] = os.pathsep.join(
        str(jar) for jar in sorted(Path(sys.prefix, "jars").glob("*.jar"))
    )
    from pyflink.common import Configuration
    from pyflink.table import EnvironmentSettings, TableEnvironment

    configuration = Configuration()
    for name, value in _SETTINGS.items():
        configuration.set_string(name, value)
    settings = EnvironmentSettings.new_instance().with_configuration(configuration)
    stream = job["kind"] == "windows"
    settings = settings.in_streaming_mode() if stream else settings.in_batch_mode()
    environment = TableEnvironment.create(settings.build())
    for text in _definitions(job):
        environment.execute_sql(text)

    def run() -> float:
        together = environment.create_statement_set()
        for text in _statements(job):
            together.add_insert_sql(text)
        ended = together.execute().get_job_client().get_job_execution_result().result()
        return float(ended.get_net_runtime()) / 1000

    return run


def _versions() -> str:
    from importlib.metadata import version

    return f"Flink {version('apache-flink')}"


if __name__ == "__main__":
    serve(start, _versions)
