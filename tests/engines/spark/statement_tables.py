"""Tables that statements are tried on: NULLs, ties, edges of windows, numbers that sum exactly."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMAS = {
    "readings": "ts timestamp, device string, site string, temp double, hum double, status string, "
    "tags array<string>, meta struct<fw: string, ver: int>",
    "clicks": "event_time timestamp, user_id bigint, page string, dwell_ms int, "
    "revenue decimal(12,2)",
    "trades": "t timestamp, sym string, px double, qty bigint, side string",
    "devices": "device string, site string, owner string, installed date",
    "logs": "ts string, level string, service string, latency_ms int, msg string",
    "orders": "id bigint NOT NULL, cust string, placed timestamp NOT NULL, "
    "local_at timestamp_ntz, amount decimal(10,2), big decimal(30,4), qty int NOT NULL, "
    "items array<struct<sku: string, qty: int>>",
}
_DAY = dt.datetime(2024, 3, 30, tzinfo=dt.UTC)
_SITES = ("berlin", "austin", "osaka")
_DEVICES = tuple(f"{kind}-{n}" for kind in ("pump", "fan") for n in range(4))


def made(spark: SparkSession) -> dict[str, DataFrame]:
    """Return the tables by name, the same rows every time."""
    rows = {
        "readings": _readings(random.Random(1)),
        "clicks": _clicks(random.Random(2)),
        "trades": _trades(random.Random(3)),
        "devices": _devices(),
        "logs": _logs(random.Random(4)),
        "orders": _orders(random.Random(5)),
    }
    return {name: spark.createDataFrame(rows[name], SCHEMAS[name]) for name in SCHEMAS}


def _readings(dice: random.Random) -> list[tuple[Any, ...]]:
    at = _DAY - dt.timedelta(hours=20)
    found: list[tuple[Any, ...]] = []
    for number in range(500):
        at += dt.timedelta(seconds=dice.choice((0, 0, 7, 60, 113.456789, 600)))
        if number % 40 == 0:  # on the edge of many windows
            at = at.replace(minute=0, second=0, microsecond=0)
        device = None if dice.random() < 0.02 else dice.choice(_DEVICES[:5] * 2 + _DEVICES)
        temp = None if dice.random() < 0.05 else dice.randrange(640, 2560) / 64
        hum = float("nan") if number == 250 else dice.randrange(2048, 4096) / 64
        tags = (
            None
            if dice.random() < 0.1
            else dice.sample(("beta", "indoor", "old"), dice.randrange(3))
        )
        meta = None if dice.random() < 0.05 else (dice.choice(("1.4", "2.0")), dice.randrange(3))
        status = dice.choice(("ok", "ok", "ok", "warn", "fail", None))
        site = None if dice.random() < 0.05 else dice.choice(_SITES)
        found.append((at, device, site, temp, hum, status, tags, meta))
    before = dt.datetime(1969, 12, 31, 23, 59, 58, 500000, tzinfo=dt.UTC)
    found.append((before, "fan-0", "osaka", 20.25, 40.5, "warn", [], ("1.4", 0)))
    found.append((None, "pump-0", "berlin", 19.5, 41.0, "fail", ["beta"], None))
    return found


def _clicks(dice: random.Random) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    at = _DAY
    for _ in range(400):
        at += dt.timedelta(seconds=dice.choice((0, 2, 30, 240, 600, 1800, 7200)))
        user = None if dice.random() < 0.05 else 1000 + dice.randrange(6)
        page = dice.choice(("/", "/product/1", "/cart", "/checkout"))
        revenue = Decimal(dice.randrange(100, 99999)) / 100 if page == "/checkout" else None
        found.append(
            (at, user, page, None if dice.random() < 0.05 else dice.randrange(90000), revenue)
        )
    return found


def _trades(dice: random.Random) -> list[tuple[Any, ...]]:
    at = _DAY + dt.timedelta(hours=13)
    found: list[tuple[Any, ...]] = []
    for number in range(400):
        at += dt.timedelta(milliseconds=dice.choice((1, 40, 1000, 15000, 47000)))
        quantity = None if dice.random() < 0.02 else 100 * dice.randrange(1, 20)
        price = (6400 + number + dice.randrange(64)) / 64
        found.append(
            (at, dice.choice(("ACME", "BOLT")), price, quantity, dice.choice(("B", "S", None)))
        )
    return found


def _devices() -> list[tuple[Any, ...]]:
    owners = ("Ada", "Grace", None)
    return [
        (device, _SITES[n % 3], owners[n % 3], dt.date(2021, 1, 31) + dt.timedelta(days=61 * n))
        for n, device in enumerate((*_DEVICES[:6], "valve-0"))
    ]


def _logs(dice: random.Random) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    at = _DAY
    for _ in range(300):
        at += dt.timedelta(seconds=dice.choice((0, 2.5, 60, 150)))
        text = at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"
        msg = dice.choice(
            ('{"code": 200}', '{"code": 503}', f"done after {dice.randrange(900)} ms", None)
        )
        latency = None if dice.random() < 0.05 else dice.randrange(5, 400)
        level, service = dice.choice(("INFO", "WARN", "ERROR")), dice.choice(("api", "auth"))
        found.append((text, level, service, latency, msg))
    return found


def _orders(dice: random.Random) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    at = _DAY
    for number in range(120):
        at += dt.timedelta(seconds=dice.choice((0, 60, 700, 1800)))
        amount = Decimal(dice.randrange(1, 99999)) / 100
        big = Decimal(dice.randrange(1, 10**9)) * 10**9
        items = [(f"s{dice.randrange(3)}", dice.randrange(5))]
        cust = dice.choice(("a", "b", None))
        local = at.replace(tzinfo=None)
        found.append((number, cust, at, local, amount, big, dice.randrange(1, 9), items))
    return found
