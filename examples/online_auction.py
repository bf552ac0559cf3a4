"""Bids of the last hour per auction whose seller lives in Oregon, on generated NEXMark data.

The second example of Tran & Lee, "Transformation of Continuous Aggregation Join Queries over Data
Streams": a sliding window of bids, all auctions so far, and a table of people without a window.
"""

import weft
from weft.generate import nexmark

tables = nexmark(50_000, seed=7, rate=7.0, padding=False)

QUERY = """
SELECT a.id AS auction, COUNT(*) AS bids, MAX(b.price) AS top
FROM bid AS b TIMESTAMP BY date_time [RANGE 1 HOUR SLIDE 10 MINUTES],
     auction AS a TIMESTAMP BY date_time [UNTIL NOW],
     person AS p
WHERE b.auction = a.id AND a.seller = p.id AND p.state = 'OR'
GROUP BY a.id
"""
result = weft.sql(QUERY, engine="local", **tables)
busiest = result.sort_by([("bids", "descending"), ("window_end", "ascending")])
print(f"{result.num_rows} results; the busiest:")
print(busiest.slice(0, 5).to_pandas().to_string(index=False))

# The same query as a stream: results come out as the watermark passes each slide.
session = weft.LocalSession(weft.parse(QUERY))
session.push("person", tables["person"])
completed = 0
for start in range(0, tables["bid"].num_rows, 5_000):
    session.push("auction", tables["auction"].slice(start * 3 // 46, 327))
    completed += session.push("bid", tables["bid"].slice(start, 5_000)).num_rows
completed += session.finish().num_rows
print(f"as a stream: {completed} results; {session.metrics.joins['q1']}")
