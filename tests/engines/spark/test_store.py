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
    path = store.path / next(store.manifest.files()).path
    whole = path.read_bytes()
    turned = bytearray(whole)
    turned[len(whole) // 3] ^= 1
    path.write_bytes(turned)
    with pytest.raises(Exception, match=r"(?i)crc|checksum|corrupt|can not read|could not read"):
        store.run(wide, engine="spark").toArrow()
    path.write_bytes(whole[:-1])
    with pytest.raises(weft.DataError, match="is missing or damaged: it has"):
        store.run(wide, engine="spark")


def test_a_store_is_read_by_its_name_in_the_catalog_one_version_at_a_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql(f"CREATE DATABASE kept LOCATION '{tmp_path / 'a folder'}'")
    query = weft.Query("q", source="t", keys="k", windows={"1h": "1 hour"}, aggs={"n": "count(*)"})
    name = "catalog://kept.slices"

    def counted() -> int:
        return spark.sql("SELECT coalesce(sum(count_rows), 0) AS n FROM kept.slices").first().n

    try:
        store = weft.Store(name, query)
        assert (store.table, store.path) == (name, tmp_path / "a folder" / "slices.weft")
        assert not spark.catalog.tableExists("kept.slices")  # nothing is known of types yet
        store.append(to_spark(events(1), spark), id="by Spark")
        store.append(events(2), id="here")
        assert store.manifest.keys == {0: 3}
        assert counted() == 600
        told = {row.col_name: row.comment for row in spark.sql("DESCRIBE kept.slices").collect()}
        assert told == {
            "slice_start": "where the slice begins",
            "k": "key: k",
            "count_rows": "partial: count(*)",
            "day": "on which the slice begins, in UTC",
        }
        weft.Store(name).replace(events(3, rows=100), id="here")
        assert counted() == 400
        with monkeypatch.context() as crash:  # between a change and its view
            crash.setattr(weft.Store, "_show", lambda self: None)
            store.append(events(4), id="late")
        assert counted() == 400  # the version before, whole
        by_folder = weft.Store(store.path)
        by_folder.append(events(5, rows=50), id="by its folder")
        by_folder.compact(unused_after=0)
        assert counted() == 400  # whose files stay until the name leads elsewhere
        again = weft.Store(name)
        assert counted() == 750
        again.compact(unused_after=0)
        assert len([*again.path.rglob("*.parquet")]) == len([*again.manifest.files()])
        wanted = pa.concat_tables([events(1), events(3, rows=100), events(4), events(5, rows=50)])
        for engine in ("local", "spark"):
            got = again.run(query, engine=engine)
            rows = got if engine == "local" else got.toArrow()
            assert_same_rows(query, rows, weft.run(query, {"t": wanted}, engine="reference"))
        for id in again.batches:
            again.replace(to_spark(events(1).slice(0, 0), spark), id=id)
        assert not spark.catalog.tableExists("kept.slices")
        spark.sql("CREATE VIEW kept.taken AS SELECT 1 AS x")
        with pytest.raises(weft.InputError, match="in the catalog, and no store of slices"):
            weft.Store("catalog://kept.taken", query)
        with pytest.raises(weft.InputError, match="no table of the session's own catalog"):
            weft.Store("catalog://lake.kept.slices", query)
        with pytest.raises(weft.InputError, match=r"catalog://gone\.slices is not there"):
            weft.Store("catalog://gone.slices", query)
    finally:
        spark.sql("DROP DATABASE kept CASCADE")
