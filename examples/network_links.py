"""Packets that pass two links of a network: how many per source, in the last hour, every minute.

The first example of Tran & Lee, "Transformation of Continuous Aggregation Join Queries over Data
Streams". Both links are aggregated before they are joined, by (source, destination, id).
"""

import numpy as np
import pyarrow as pa

import weft

random = np.random.default_rng(7)


def packets(rows: int) -> pa.Table:
    """Packets over two hours, in time order."""
    return pa.table(
        {
            "ts": pa.array(
                np.sort(random.integers(0, 7_200_000_000, rows)), pa.timestamp("us", "UTC")
            ),
            "source": pa.array(random.integers(0, 5, rows)),
            "destination": pa.array(random.integers(0, 4, rows)),
            "id": pa.array(random.integers(0, 10, rows)),
        }
    )


QUERY = """
SELECT c.source, COUNT(*) AS pairs
FROM clink AS c [RANGE 1 HOUR SLIDE 1 MINUTE], blink AS b [RANGE 1 HOUR SLIDE 1 MINUTE]
WHERE c.source = b.source AND c.destination = b.destination AND c.id = b.id
GROUP BY c.source
"""
known = weft.Statistics(rate=2.0, keys=5, join_values=200)
print(weft.optimize(weft.parse(QUERY), engine="local", statistics=known).explain())

result = weft.sql(QUERY, engine="local", clink=packets(15_000), blink=packets(15_000))
print(result.slice(result.num_rows // 2, 5).to_pandas().to_string(index=False))
