"""The `trace` set: Poisson begins, heavy tails, Zipf hosts, NULL where nothing can be known."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from weft.generate import trace
from weft.time import SECOND

ROWS = 100_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return trace(ROWS, 7)


def test_columns_and_types(table):
    assert table.schema == pa.schema(
        {
            "ts": pa.timestamp("us", tz="UTC"),
            "duration": pa.float64(),
            "protocol": pa.string(),
            "bytes_sent": pa.int64(),
            "bytes_received": pa.int64(),
            "source": pa.string(),
            "destination": pa.string(),
            "state": pa.string(),
        }
    )
    assert trace(0, 7).schema == table.schema
    table.validate(full=True)


def test_begins_are_a_poisson_process(table):
    gaps = np.diff(table["ts"].cast(pa.int64()).to_numpy()) / SECOND
    assert (gaps >= 0).all()
    assert gaps.mean() == pytest.approx(4.0, rel=0.02)
    # Exponential gaps: the standard deviation equals the mean.
    assert gaps.std() == pytest.approx(4.0, rel=0.03)


def test_bytes_have_a_lognormal_body_and_a_pareto_tail(table):
    of_ftp = table.filter(pc.equal(table["protocol"], "ftp-data"))["bytes_received"]
    size = of_ftp.drop_null().to_numpy()
    assert np.median(size) == pytest.approx(3500, rel=0.1)
    # Above the 97 % quantile of the body, P(X > 10 x) / P(X > x) = 10^-1.1.
    tail_from = 3500 * np.exp(2.3 * 1.8808)
    assert (size > tail_from).mean() == pytest.approx(0.03, abs=0.005)
    assert (size > 10 * tail_from).sum() / (size > tail_from).sum() == pytest.approx(
        10**-1.1, abs=0.04
    )


def test_few_connections_carry_most_of_the_bytes(table):
    size = np.sort(table["bytes_received"].drop_null().to_numpy())[::-1]
    assert size[: len(size) // 20].sum() > 0.7 * size.sum()


def test_unknown_follows_from_the_state(table):
    known = table.group_by("state").aggregate(
        [("duration", "count"), ("bytes_sent", "count"), ("bytes_received", "count")]
    )
    total = dict(table.group_by("state").aggregate([([], "count_all")]).to_pydict().items())
    rows = dict(zip(total["state"], total["count_all"], strict=True))
    seen = {
        row["state"]: tuple(
            {0: False, rows[row["state"]]: True}[row[f"{column}_count"]]
            for column in ("duration", "bytes_sent", "bytes_received")
        )
        for row in known.to_pylist()
    }
    assert seen == {
        "SF": (True, True, True),
        "RSTO": (True, True, True),
        "REJ": (True, False, False),
        "S0": (False, False, False),
        "S1": (False, False, False),
        "S2": (False, True, False),
        "S3": (False, False, True),
    }
    assert rows["SF"] / ROWS == pytest.approx(0.84, abs=0.01)


@pytest.mark.parametrize("end", ["source", "destination"])
def test_hosts_have_zipf_popularity(table, end):
    counts = np.sort(pc.value_counts(table[end]).field("counts").to_numpy())[::-1]
    harmonic = (1 / np.arange(1, 2001)).sum()
    assert counts[:3] / ROWS == pytest.approx([1 / r / harmonic for r in (1, 2, 3)], rel=0.1)
    uniform = np.sort(pc.value_counts(trace(ROWS, 7, skew=0.0)[end]).field("counts").to_numpy())
    assert uniform[-1] < counts[0] / 10


def test_no_host_connects_to_itself():
    crowded = trace(2000, 7, hosts=2)
    assert not pc.any(pc.equal(crowded["source"], crowded["destination"])).as_py()
