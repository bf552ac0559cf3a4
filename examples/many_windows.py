"""Five windows over the same readings, in one pass: three tumbling, one hopping, one session."""

import pyarrow.compute as pc

import weft
from weft.generate import sensors

readings = sensors(20_000, seed=1, devices=5, rate=10.0)

result = weft.aggregate(
    readings,
    time="ts",
    by=["device"],
    windows={
        "1m": weft.tumbling("1 minute"),
        "5m": weft.tumbling("5 minutes"),
        "15m": weft.tumbling("15 minutes"),
        "10m/1m": weft.hopping("10 minutes", "1 minute"),
        "busy": weft.session("2 seconds"),
    },
    aggs={
        "lo": weft.agg.min("temp"),
        "mean": weft.agg.avg("temp"),
        "readings": weft.agg.count(),
    },
)

for label in ("1m", "5m", "15m", "10m/1m", "busy"):
    rows = result.filter(pc.field("window") == label)
    print(f"{label:>7}: {rows.num_rows} results, the first: {rows.slice(0, 1).to_pylist()[0]}")
