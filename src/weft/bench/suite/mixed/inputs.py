"""What a shop asks of its clicks: by customer, by merchant, by both, in all; all, buys, errors.

Customers and merchants are drawn with a skew, a fifth of the actions are buys and a twentieth
errors, and all of it is one day.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft import agg
from weft.planners.portfolio import optimize
from weft.query import Query, Workload
from weft.statistics import Statistics
from weft.window import hopping, tumbling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.plan import Plan
    from weft.window import Window

EVENTS, QUICK_EVENTS = 5_000_000, 50_000
CUSTOMERS, MERCHANTS = 1_000, 300
KEYS = (("customer",), ("merchant",), ("customer", "merchant"), ())
FILTERS = (None, "action = 'buy'", "action = 'error'")
_ACTIONS, _PARTS = ("view", "buy", "error"), (0.75, 0.2, 0.05)
_DAY_US = 86_400_000_000
_SEED = 24
_CALLS = {"n": agg.count(), "total": agg.sum("amount"), "most": agg.max("amount")}


@cache
def clicks(events: int, customers: int = CUSTOMERS, merchants: int = MERCHANTS) -> pa.Table:
    """Draw the actions of one day, in order of time."""
    rng = np.random.default_rng(_SEED)
    actions = rng.choice(len(_ACTIONS), events, p=_PARTS)
    columns: dict[str, Any] = {
        "ts": pa.array(np.sort(rng.integers(0, _DAY_US, events))).cast(pa.timestamp("us", "UTC")),
        "customer": (customers * rng.power(0.5, events)).astype(np.int64),
        "merchant": (merchants * rng.power(0.5, events)).astype(np.int64),
        "action": pa.array(_ACTIONS).take(actions),
        "amount": np.round(rng.random(events) * 400) / 4,  # quarters add up without rounding
    }
    return pa.table(columns)


def _query(
    name: str, keys: Sequence[str], where: str | None, window: Window, calls: Any = _CALLS
) -> Query:
    asked: dict[str, Any] = {"source": "clicks", "time": "ts", "aggs": calls}
    return Query(name, keys=list(keys), where=where, windows={"w": window}, **asked)


def mixed_24() -> Workload:
    """Four key sets, three filters, two windows: twenty-four queries.

    >>> len(mixed_24())
    24
    """
    windows = {"1h": tumbling("1 hour"), "6h": hopping("6 hours", "2 hours")}
    return Workload(
        _query(f"{'_'.join(keys) or 'all'}_{at}_{label}", keys, where, window)
        for keys in KEYS
        for at, where in enumerate(FILTERS)
        for label, window in windows.items()
    )


def rare() -> Workload:
    """Two filters under keys that are nearly as many as events, one of which keeps next to none."""
    wide = {**_CALLS, "least": agg.min("amount"), "spread": agg.stddev("amount")}
    wheres = (None, "action = 'error' AND amount > 99")
    hop = hopping("2 hours", "30 minutes")
    return Workload(
        _query(f"q{at}", ("customer", "merchant"), where, hop, wide)
        for at, where in enumerate(wheres)
    )


def disjoint() -> Workload:
    """Three filters that have no event in common, and nothing else to share."""
    return Workload(
        _query(f"q{at}", ("customer", "merchant"), f"action = '{action}'", tumbling("10 minutes"))
        for at, action in enumerate(_ACTIONS)
    )


def one_query() -> Workload:
    """A single query: there is nobody to share with."""
    return Workload([_query("q", ("customer",), FILTERS[1], tumbling("1 hour"))])


def known(events: int) -> Statistics:
    """What is known of the clicks."""
    kept = {f"action = '{action}'": part for action, part in zip(_ACTIONS, _PARTS, strict=True)}
    rare = "action = 'error' AND amount > 99"
    kept[rare] = _PARTS[2] / 100
    counts = {"customer": CUSTOMERS, "merchant": MERCHANTS}
    key_sets = tuple((keys, prod(counts[key] for key in keys)) for keys in KEYS)
    pairs = CUSTOMERS * MERCHANTS
    return Statistics(
        rate=events / 86_400, duration="1 day", keys=pairs, kept=kept, key_sets=key_sets
    )


def plan_together(workload: Workload, events: int, engine: str) -> Plan:
    """Plan all queries as one workload."""
    return optimize(workload, "auto", engine, known(events))


def plans_apart(workload: Workload, events: int, engine: str) -> tuple[Plan, ...]:
    """Plan the queries of each key set and filter by themselves: none shares with another."""
    groups: dict[object, list[Query]] = {}
    for query in workload:
        assert isinstance(query, Query)
        groups.setdefault((query.keys, query.where), []).append(query)
    return tuple(plan_together(Workload(own), events, engine) for own in groups.values())
