"""What is held between batches when the events come as a stream: rows and bytes, the most."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import weft

from .weft_asked import query_of, workload_of

if TYPE_CHECKING:
    from .protocol import Job

BATCHES = 4
_FIRST_MTIME_S = 1_700_000_000
_WATERMARK = "0 seconds"


def _batches(job: Job) -> tuple[str, list[Any]]:
    import pyarrow.parquet as pq

    ((name, path),) = job["tables"].items()
    table = pq.read_table(path)
    size = -(-table.num_rows // BATCHES)
    return name, [table.slice(at * size, size) for at in range(BATCHES)]


def of_session(job: Job) -> dict[str, int]:
    """Push the events to a session in this process."""
    name, batches = _batches(job)
    session = weft.LocalSession(workload_of(job), watermark=_WATERMARK)
    held = []
    for batch in batches:
        session.push(name, batch)
        held.append(session.metrics.state_bytes)
    return {"bytes": max(held)}


def of_spark(job: Job, *, shared: bool) -> dict[str, int]:
    """Run the events as micro-batches through Spark: as one plan, or as stock Spark does."""
    import pyarrow.parquet as pq

    from weft.engines.spark.session import local_session
    from weft.engines.spark.stock import stock
    from weft.sessions.replay import run_to_end

    name, batches = _batches(job)
    folder = Path(job["output"]).with_name("stream")
    folder.mkdir(exist_ok=True)
    for at, batch in enumerate(batches):
        pq.write_table(batch, folder / f"{at}.parquet")
        os.utime(folder / f"{at}.parquet", (_FIRST_MTIME_S + at,) * 2)
    session = local_session()
    schema = session.read.parquet(str(folder)).schema
    files = session.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    (query,) = (query_of(asked).with_watermark(_WATERMARK) for asked in job["queries"])
    stream = files.parquet(str(folder))
    if shared:
        rows = weft.run(weft.Workload([query]), {name: stream})
    else:
        rows = stock(query, stream.withWatermark(query.time or "", _WATERMARK))
    progress = list(run_to_end(rows.writeStream.format("noop")).recentProgress)
    return {
        "rows": max(sum(s.numRowsTotal for s in p.stateOperators) for p in progress),
        "bytes": max(sum(s.memoryUsedBytes for s in p.stateOperators) for p in progress),
    }
