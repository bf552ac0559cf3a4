"""SQL in three spellings, read into workloads; the only place that parses statements.

>>> [q.name for q in parse("SELECT COUNT(*) FROM t [ROWS 100 SLIDE 10]").queries]
['q1']
"""

from __future__ import annotations

from weft.parsing.bind import parse

__all__ = ["parse"]
