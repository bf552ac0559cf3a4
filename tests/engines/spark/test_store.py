"""A slice store through Spark: the same files, written and read by both engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import weft
from weft.engines.spark.session import to_spark
from weft.testing import assert_same_rows
from weft.testing.strategies import DECOMPOSABLE, HOLISTIC

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HOUR = 3_600_000_000
PLAIN = {f"a{i}": c for i, c in enumerate(DECOMPOSABLE) if "distinct" not in c.function}
PLAIN = {n: c for n, c in PLAIN.items() if c.function != "approx_percentile"}
EVERY = {f"a{i}": call for i, call in enumerate(DECOMPOSABLE + HOLISTIC)}


def events(seed: int, rows: int = 300) -> pa.Table:
    random = np.random.default_rng(seed)
    times = random.integers(0, 60, rows) * HOUR + random.integers(0, HOUR, rows)
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": pa.array(random.choice(["a", None, "b"], rows)),
            "i": pa.array(random.integers(-9, 9, rows), mask=random.random(rows) < 0.3),
            "km": pa.array(random.integers(-9, 9, rows)),
            "x": pa.array(random.normal(size=rows), mask=random.random(rows) < 0.3),
            "flag": pa.array(random.random(rows) < 0.5, mask=random.random(rows) < 0.3),
        }
    )


@pytest.mark.parametrize("aggs", [PLAIN, EVERY], ids=["catalyst", "kernels"])
def test_spark_and_the_local_engine_write_and_read_the_same_store(
    spark: SparkSession, tmp_path: Path, aggs: dict[str, Any]
) -> None:
    query = weft.Query("q", source="t", keys="k", windows={"1h": "1 hour"}, aggs=aggs)
    store = weft.Store(tmp_path, query)
    store.append(to_spark(events(1), spark), id="by Spark")
    store.append(events(2), id="here")
    store.append(to_spark(events(3), spark), id="by Spark")
    both = pa.concat_tables([events(1), events(2)])
    wide = query.with_windows({"1h": "1 hour", "5h": weft.hopping("5 hours", "1 hour")})
    wanted = weft.run(wide, {"t": both}, engine="reference")
    assert_same_rows(wide, store.run(wide), wanted, "local")
    assert_same_rows(wide, store.run(wide, engine="spark").toArrow(), wanted, "spark")
    with pytest.raises(weft.UnsupportedError, match="'reference' reads and writes no slices"):
        store.run(wide, engine="reference")
