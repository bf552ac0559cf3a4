"""The `sensors` set: readings of many devices, at a steady rate, in the order they arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weft.generate import draws, options
from weft.generate.draws import Floats, Ints, stream
from weft.time import DAY, SECOND, Duration

if TYPE_CHECKING:
    import datetime as dt

# The share of readings without a humidity: enough for NULLs in every window of a few hundred rows.
_HUMIDITY_NULL_SHARE = 0.02
# Status codes 0 (well), 1 (warning) and 2 (fault).
_STATUS_WEIGHTS = (0.97, 0.02, 0.01)


def sensors(
    rows: int,
    seed: int,
    devices: int = 10,
    rate: float = 1000.0,
    disorder: Duration = "0 seconds",
    late_share: float = 0.0,
    skew: float = 0.0,
    start: dt.datetime | int = options.START,
) -> pa.Table:
    """Make `rows` readings of `devices` devices, `rate` readings a second over all of them.

    Rows are in order of arrival. A reading arrives up to `disorder` after its time `ts`, so no
    row is older than the newest row before it by more than `disorder`: a watermark with that
    delay drops nothing. A share `late_share` of the rows breaks this promise and arrives
    later still. `skew` is the Zipf exponent of the devices: 0 is uniform, and with 1 the first
    device has twice the rows of the second.

    Two devices at four readings a second:

    >>> table = sensors(rows=5, seed=7, devices=2, rate=4.0)
    >>> table.schema.names
    ['ts', 'device', 'temp', 'humidity', 'status']
    >>> [ts.isoformat()[11:] for ts in table["ts"].to_pylist()][:3]
    ['00:00:00+00:00', '00:00:00.250000+00:00', '00:00:00.500000+00:00']
    >>> sorted(set(sensors(rows=100, seed=7, devices=3)["device"].to_pylist()))
    ['device-0000', 'device-0001', 'device-0002']
    """
    rows = options.whole("rows", rows, least=0)
    seed = options.whole("seed", seed, least=0)
    devices = options.whole("devices", devices, least=1)
    rate = options.positive("rate", rate)
    skew = options.non_negative("skew", skew)
    late_share = options.share("late_share", late_share)
    disorder_us = options.non_negative_us("disorder", disorder)
    start_us = options.start_us(start)
    draws.check_span(rows, rate, start_us)

    ts_us = start_us + draws.steady_us(np.arange(rows, dtype=np.int64), rate)
    device = draws.zipf(stream(seed, "sensors.device"), rows, devices, skew)
    temp = _temperatures(seed, ts_us, device, devices)
    humidity = _humidities(seed, temp)
    missing = stream(seed, "sensors.humidity.null").random(rows) < _HUMIDITY_NULL_SHARE
    status = draws.weighted(stream(seed, "sensors.status"), rows, _STATUS_WEIGHTS)

    order = _arrival_order(seed, ts_us, rate, disorder_us, late_share)
    width = max(4, len(str(devices - 1)))
    return pa.table(
        {
            "ts": draws.timestamps(ts_us[order]),
            "device": draws.pick([f"device-{d:0{width}d}" for d in range(devices)], device[order]),
            "temp": draws.numbers(temp[order]),
            "humidity": draws.numbers(humidity[order], missing=missing[order]),
            "status": draws.numbers(status[order]),
        }
    )


def _temperatures(seed: int, ts_us: Ints, device: Ints, devices: int) -> Floats:
    """Degrees Celsius: a level of each device, a daily wave, and noise, in steps of 0.01."""
    level = 20.0 + 4.0 * stream(seed, "sensors.temp.level").standard_normal(devices)
    wave = 5.0 * np.sin((ts_us % DAY) * (2.0 * np.pi / DAY))
    noise = 0.5 * stream(seed, "sensors.temp.noise").standard_normal(len(ts_us))
    degrees: Floats = np.round(level[device] + wave + noise, 2)
    return degrees


def _humidities(seed: int, temp: Floats) -> Floats:
    """Per cent of relative humidity: falls as the temperature rises."""
    noise = 4.0 * stream(seed, "sensors.humidity").standard_normal(len(temp))
    percent: Floats = np.clip(55.0 - 1.5 * (temp - 20.0) + noise, 0.0, 100.0)
    return np.round(percent, 1)


def _arrival_order(
    seed: int, ts_us: Ints, rate: float, disorder_us: int, late_share: float
) -> Ints:
    rows = len(ts_us)
    if disorder_us == 0 and late_share == 0.0:
        return np.arange(rows, dtype=np.int64)
    delay_us = stream(seed, "sensors.delay").integers(0, disorder_us, size=rows, endpoint=True)
    # Rows newer by `delay - disorder` have surely arrived first, so a row breaks the bound for
    # certain only when its delay is above twice the disorder; ten events more make sure that
    # one of those newer rows exists.
    unit_us = max(disorder_us, int(10 * SECOND / rate), 1)
    late = stream(seed, "sensors.late").random(rows) < late_share
    lateness = 1.0 + stream(seed, "sensors.lateness").random(rows)
    late_us = 2 * disorder_us + np.ceil(unit_us * lateness).astype(np.int64)
    return np.argsort(ts_us + np.where(late, late_us, delay_us), kind="stable")
