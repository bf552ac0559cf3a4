"""Three windows from shared slices: the model runs the plain SQL that weft.rewrite gives."""

import weft

FEATURES = """
SELECT device, System.Window().Id, MIN(temp) AS lo, AVG(temp) AS mean, COUNT(*) AS n
FROM readings TIMESTAMP BY ts
GROUP BY device, Windows(Window('5m', TumblingWindow(minute, 5)),
                         Window('20m', TumblingWindow(minute, 20)),
                         Window('1h/5m', HoppingWindow(minute, 60, 5)))
"""


def model(dbt, session):
    return dbt.ref("readings").query("readings", weft.rewrite(FEATURES, dialect="duckdb"))
