"""Queries come and go while events do: what is sliced already is shared, and nothing is guessed."""

import pyarrow as pa

import weft
from weft.sessions.registration import Registration
from weft.window import Window

MINUTE_US = 60_000_000


def readings(first: int, last: int) -> pa.Table:
    """One reading a minute."""
    times = pa.array([minute * MINUTE_US for minute in range(first, last)])
    return pa.table({"ts": times.cast(pa.timestamp("us", "UTC")), "device": ["d1"] * len(times)})


def ask(name: str, **windows: Window) -> weft.Query:
    """Count the readings of each device."""
    counts = {"n": weft.agg.count()}
    return weft.Query(
        name, source="readings", time="ts", keys=["device"], windows=windows, aggs=counts
    )


def tell(registration: Registration) -> None:
    """Print from when a query is complete."""
    for label, start in registration.complete_from.items():
        since = "now on" if start is None else f"{start:%H:%M} on"
        print(f"{registration.query}: every {label} window from {since}")


hops = ask("hops", hour=weft.hopping("1 hour", "5 minutes"))
session = weft.LocalSession(weft.Workload([hops]), watermark="1 minute")
session.push("readings", readings(0, 90))

# Five-minute slices of the last hour are live: quarters of an hour are whole numbers of them.
tell(session.register(ask("quarters", quarter=weft.tumbling("15 minutes"))))
# Seven minutes are not, so their slices start with the next reading.
tell(session.register(ask("sevens", seven=weft.tumbling("7 minutes"))))

found = session.push("readings", readings(90, 120))
for name in ("quarters", "sevens"):
    starts = [f"{start:%H:%M}" for start in found[name]["window_start"].to_pylist()]
    print(name, dict(zip(starts, found[name]["n"].to_pylist(), strict=True)))

session.suspend("sevens")
session = weft.LocalSession.restore(session.snapshot())
tell(session.resume("sevens"))
