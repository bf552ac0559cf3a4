"""Deterministic data sets for examples, tests and benchmarks: the same arguments, the same bytes.

Three sets, each one function that returns Arrow tables whose rows are in order of arrival:

- `sensors`: readings of devices at a steady rate, with disorder, late rows and skew on request;
- `nexmark`: the people, auctions and bids of the NEXMark benchmark;
- `trace`: TCP connections with heavy tails, in the manner of the wide-area traces of LBL.

`generate` makes any of them by name, and `write` puts them on disk as parquet, CSV or JSON lines.

>>> from weft.generate import generate
>>> {name: table.num_rows for name, table in generate("nexmark", rows=100, seed=7).items()}
{'person': 2, 'auction': 6, 'bid': 92}
"""

from weft.generate.auctions import nexmark
from weft.generate.catalog import SETS, generate
from weft.generate.connections import trace
from weft.generate.files import FORMATS, write
from weft.generate.readings import sensors

__all__ = ["FORMATS", "SETS", "generate", "nexmark", "sensors", "trace", "write"]
