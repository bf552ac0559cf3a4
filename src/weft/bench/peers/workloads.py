"""The workloads of the comparison: what is asked of which events, and of whom.

Sizes are such that the slowest contender of a workload takes some ten seconds on two cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.bench.peers import inputs, jobs
from weft.time import HOUR, SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

_ALL = (
    "weft", "weft-spark", "stock-spark", "expert-spark", "flink", "duckdb", "polars", "pandas",
    "bytewax", "pathway",
)  # fmt: skip
_AT_ANCHORS = ("weft", "weft-spark", "stock-spark", "segment-tree", "duckdb", "polars")
_QUICK_SHARE = 50


@dataclass(frozen=True)
class Workload:
    """One row of the comparison: the tables it reads, and the job that everyone is given."""

    name: str
    title: str
    events: int
    on_clusters: int  # events for those that are made for a cluster, and compared with each other
    tables: inputs.Maker
    job: Mapping[str, Any]
    contenders: tuple[str, ...] = _ALL
    state: bool = False  # whether it also runs as a stream, whose state is measured

    def sizes(self, *, quick: bool) -> tuple[int, int]:
        """Return how many events are for those in one process, and for those of a cluster."""
        least = 2_000
        share = _QUICK_SHARE if quick else 1
        return max(self.events // share, least), max(self.on_clusters // share, least)


WORKLOADS = (
    Workload(
        "tumbling_20",
        "20 tumbling windows, 10 s to 105 s, MIN",
        5_000_000,
        1_000_000,
        inputs.readings(),
        jobs.lows(jobs.evenly(10, 105)),
        state=True,
    ),
    Workload(
        "tumbling_80",
        "80 tumbling windows, 5 s to 400 s, MIN",
        2_000_000,
        500_000,
        inputs.readings(),
        jobs.lows(jobs.evenly(5, 400)),
    ),
    Workload(
        "hop_60",
        "a hop of 600 s every 10 s (overlap 60), MIN",
        1_000_000,
        300_000,
        inputs.readings(),
        jobs.lows({"hop": jobs.hop(600 * SECOND, 10 * SECOND)}),
    ),
    Workload(
        "hop_360",
        "a hop of 1 h every 10 s (overlap 360), MIN",
        200_000,
        100_000,
        inputs.readings(50),
        jobs.lows({"hop": jobs.hop(HOUR, 10 * SECOND)}),
    ),
    Workload(
        "features_300",
        "nine feature windows, 300 users",
        1_000_000,
        300_000,
        inputs.users(300),
        jobs.features(),
    ),
    Workload(
        "features_5000",
        "nine feature windows, 5,000 users",
        500_000,
        200_000,
        inputs.users(5_000),
        jobs.features(),
    ),
    Workload(
        "features_50000",
        "nine feature windows, 50,000 users",
        300_000,
        100_000,
        inputs.users(50_000),
        jobs.features(),
    ),
    Workload(
        "mixed_24",
        "24 queries: four key sets, three filters, two windows",
        1_000_000,
        300_000,
        inputs.clicks,
        jobs.mixed_24(),
    ),
    Workload(
        "sessions_20",
        "20 queries of all kinds, four of them sessions",
        1_000_000,
        300_000,
        inputs.readings(),
        jobs.mixed_20(),
    ),
    Workload(
        "nexmark_q5",
        "NEXMark Q5: the hottest auctions of 10 s, every 2 s",
        2_000_000,
        500_000,
        inputs.bids,
        jobs.hot_items(10),
    ),
    Workload(
        "nexmark_q5_five",
        "NEXMark Q5 with five ranges at once, 10 s to 80 s",
        2_000_000,
        500_000,
        inputs.bids,
        jobs.hot_items(10, 20, 30, 60, 80),
    ),
    Workload(
        "nexmark_q7",
        "NEXMark Q7: the highest bid of every 10 s",
        2_000_000,
        500_000,
        inputs.bids,
        jobs.highest_bid(),
    ),
    Workload(
        "nexmark_q11",
        "NEXMark Q11: how often a person bids in a session of 10 s",
        2_000_000,
        500_000,
        inputs.bids,
        jobs.visits(),
    ),
    Workload(
        "auction",
        "bids joined to auctions and sellers, 1 h every minute",
        300_000,
        200_000,
        inputs.auctions(None),
        jobs.AUCTION_JOB,
    ),
    Workload(
        "trailing",
        "four trailing ranges at every event, 1 h to a week",
        500_000,
        200_000,
        inputs.payments(0),
        jobs.ranges("trailing"),
        _AT_ANCHORS,
    ),
    Workload(
        "as_of",
        "four trailing ranges as of 10,000 labels",
        500_000,
        200_000,
        inputs.payments(10_000),
        jobs.ranges("as_of"),
        _AT_ANCHORS,
    ),
    Workload(
        "single",
        "one window of 60 s: MIN, AVG, COUNT",
        5_000_000,
        1_000_000,
        inputs.readings(),
        jobs.single(),
    ),
)
