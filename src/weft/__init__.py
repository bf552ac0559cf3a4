"""Many window-aggregate queries, one shared plan, for about the price of one window.

>>> import weft
>>> query = weft.Query("lows", source="readings", time="ts", keys=["device"],
...                    windows={"20m": weft.tumbling("20 minutes"), "1h": weft.tumbling("1 hour")},
...                    aggs={"lo": weft.agg.min("temp")})
>>> weft.Workload([query]).sources
('readings',)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft import agg
from weft.errors import (
    DataError,
    InputError,
    InternalError,
    QueryError,
    UnsupportedError,
    WeftError,
)
from weft.plan import Plan
from weft.query import JoinInput, JoinQuery, Query, Workload
from weft.running import aggregate, run
from weft.statistics import Statistics
from weft.verification import Report, verify
from weft.window import (
    UserWindow,
    calendar,
    counting,
    cumulating,
    hopping,
    measured,
    punctuated,
    session,
    tumbling,
)
from weft.window.trailing import rows

if TYPE_CHECKING:
    from weft.engines.spark.streaming.kafka import kafka
    from weft.features import Events, as_of, rolling
    from weft.features.session import FeatureSession
    from weft.parsing import parse
    from weft.pipelines import pipeline_table
    from weft.planners.portfolio import optimize
    from weft.sessions.local_session import LocalSession
    from weft.starting import start
    from weft.statement import explain, sql
    from weft.statement.plain.rewriting import rewrite
    from weft.store import Store, refresh
    from weft.tables import write

__version__ = "0.1.0"

# Loaded when first asked for: the parser alone takes longer to import than all the rest.
_LATER = {
    "explain": "weft.statement",
    "Events": "weft.features",
    "FeatureSession": "weft.features.session",
    "LocalSession": "weft.sessions.local_session",
    "kafka": "weft.engines.spark.streaming.kafka",
    "parse": "weft.parsing",
    "as_of": "weft.features",
    "optimize": "weft.planners.portfolio",
    "pipeline_table": "weft.pipelines",
    "rolling": "weft.features",
    "rewrite": "weft.statement.plain.rewriting",
    "sql": "weft.statement",
    "start": "weft.starting",
    "Store": "weft.store",
    "refresh": "weft.store",
    "write": "weft.tables",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'weft' has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """Let results show themselves in a notebook: `%load_ext weft`."""
    from weft.plan.render.notebook import register

    register(shell)


__all__ = [
    "DataError", "Events", "FeatureSession", "InputError", "InternalError", "JoinInput",
    "JoinQuery", "LocalSession", "Plan", "Query", "QueryError", "Report", "Statistics",
    "Store", "UnsupportedError", "UserWindow", "WeftError", "Workload", "agg", "aggregate", "as_of",
    "calendar", "counting", "cumulating", "explain", "hopping", "kafka", "measured", "optimize",
    "parse", "pipeline_table", "punctuated", "refresh", "rewrite", "rolling", "rows", "run",
    "session", "sql", "start", "tumbling", "verify", "write",
]  # fmt: skip
