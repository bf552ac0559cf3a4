"""A window of your own: a trader who looks more often, and less far back, when prices jump.

Its slide and its range change with the price, so no periodic window can express it (the motivating
example of Carbone et al., "Cutty", CIKM 2016).
"""

import datetime as dt
import random
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

import weft

MINUTE = dt.timedelta(minutes=1)


class Trader(weft.UserWindow):
    """Calm markets: ten minutes every five; after a jump of one percent: two minutes every one."""

    def ends(self, event: Mapping[str, Any], state: dict[str, Any]) -> int:
        now = event["ts"].timestamp()
        open_until = state.setdefault("open_until", [])
        over = 0
        while over < len(open_until) and open_until[over] <= now:
            over += 1
        state["open_until"] = open_until[over:]
        return over

    def begins(self, event: Mapping[str, Any], state: dict[str, Any]) -> int:
        now, price = event["ts"].timestamp(), event["price"]
        jumpy = abs(price / state.get("price", price) - 1) > 0.01
        state["price"] = price
        if jumpy:
            state["next"] = min(state.get("next", now), now)
        if now < state.get("next", now):
            return 0
        reach, pause = (2, 1) if jumpy else (10, 5)
        state["next"] = now + pause * 60
        # Windows end in the order in which they began, so none may end before an earlier one.
        until = max([now + reach * 60, *state["open_until"][-1:]])
        state["open_until"].append(until)
        return 1


def quotes(count: int) -> pa.Table:
    """A random walk with a few jumps, one quote every ten seconds."""
    walk = random.Random(7)
    start = dt.datetime(2026, 1, 5, 9, tzinfo=dt.UTC)
    prices = [100.0]
    for _ in range(count - 1):
        step = walk.gauss(0, 0.05) + (walk.choice((-3, 3)) if walk.random() < 0.01 else 0)
        prices.append(prices[-1] + step)
    times = [start + i * MINUTE / 6 for i in range(count)]
    return pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "price": prices})


result = weft.aggregate(
    quotes(600),
    time="ts",
    windows={"trader": Trader(), "hourly": weft.tumbling("1 hour")},
    aggs={"low": weft.agg.min("price"), "high": weft.agg.max("price"), "n": weft.agg.count()},
)
for row in result.to_pylist():
    if row["window"] == "trader":
        span = (row["window_end"] - row["window_start"]) / MINUTE
        print(
            f"{row['window_start']:%H:%M:%S} {span:4.1f} min  {row['low']:.2f} .. {row['high']:.2f}"
        )
