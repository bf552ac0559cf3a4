"""Answers of contenders, read from the files they wrote and compared row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from weft.bench.peers.runners.protocol import instance_columns

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Sums are added up in another order by everyone.
_TOLERANCE = 1e-9


def results_of(job: Mapping[str, Any]) -> dict[str, list[str]]:
    """Name the results of a job, each with the columns that tell its rows apart."""
    match job["kind"]:
        case "windows":
            return {q["name"]: [*q["keys"], *instance_columns(q)] for q in job["queries"]}
        case "auction":
            return {"rows": ["category", "window_start"]}
    return {"rows": ["id"]}


def difference(job: Mapping[str, Any], expected: Path, found: Path) -> str:
    """Say where two folders of answers first differ; empty when they do not."""
    for name, identity in results_of(job).items():
        want, got = (_read(folder, name) for folder in (expected, found))
        if told := _different(want, got, identity):
            return f"{name}: {told}"
    return ""


def _read(folder: Path, name: str) -> pa.Table:
    """Read a result: a file, a folder of files, or one file of CSV for each window."""
    whole = folder / f"{name}.parquet"
    if whole.is_file():
        return pq.read_table(whole)
    if texts := sorted(folder.glob(f"{name}*.csv")):
        # A window is named by text, whatever it looks like, and a file of no rows has no types.
        read = pa.csv.ConvertOptions(column_types={"window": pa.string()})
        parts = [pa.csv.read_csv(text, convert_options=read) for text in texts]
        return pa.concat_tables(
            [part for part in parts if part.num_rows], promote_options="default"
        )
    files = [p for p in sorted((folder / name).iterdir()) if not p.name.startswith(("_", ".crc"))]
    parts = [pq.read_table(p) for p in files if p.is_file() and not p.name.endswith(".crc")]
    return pa.concat_tables([part for part in parts if part.num_rows] or parts[:1])


def _different(want: pa.Table, got: pa.Table, identity: list[str]) -> str:
    """Compare tables whose rows come in any order.

    >>> a, b = pa.table({"k": [1, 2], "n": [3, 4]}), pa.table({"n": [4.0, 3.0], "k": [2, 1]})
    >>> _different(a, b, ["k"]), _different(a, b.slice(1), ["k"])
    ('', 'expected 2 rows, got 1')
    """
    if want.num_rows != got.num_rows:
        return f"expected {want.num_rows} rows, got {got.num_rows}"
    left = {"ts", "user", "amount", "window", "window_start", "window_end"} - set(identity)
    values = [name for name in want.column_names if name not in left | set(identity)]
    if absent := [name for name in (*identity, *values) if name not in got.column_names]:
        return f"has no {', '.join(absent)}"
    wanted, found = (_in_order(table, identity) for table in (want, got))
    for name in identity:
        pair = [_plain(table[name]) for table in (wanted, found)]
        if wrong := np.flatnonzero(pair[0] != pair[1]).tolist():
            return (
                f"{name} of row {wrong[0]}: expected {pair[0][wrong[0]]}, got {pair[1][wrong[0]]}"
            )
    for name in values:
        a, b = (_numbers(table[name]) for table in (wanted, found))
        close = np.isclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
        if wrong := np.flatnonzero(~close).tolist():
            return f"{name} of row {wrong[0]}: expected {a[wrong[0]]}, got {b[wrong[0]]}"
    return ""


def _in_order(table: pa.Table, identity: list[str]) -> pa.Table:
    for at, name in enumerate(table.column_names):
        kind = table.schema.types[at]
        if name in identity and pa.types.is_timestamp(kind):
            us = table[name].cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
            table = table.set_column(at, name, us)
        elif pa.types.is_dictionary(kind):
            table = table.set_column(at, name, table[name].cast(kind.value_type))
    return table.sort_by([(name, "ascending") for name in identity])


def _plain(column: Any) -> Any:
    return np.asarray(column.to_pandas() if pa.types.is_large_string(column.type) else column)


def _numbers(column: Any) -> Any:
    return column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
