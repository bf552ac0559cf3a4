"""From events to the rows of all windows: one pass of aggregations, however many windows.

Nodes are computed level by level. A level is one aggregation for all its nodes together: rows of
the level below are fanned out to the nodes that read them, and those that are still needed above
are handed on as they are. So a factor tree is as many aggregations as it is deep, in one job that
reads the events once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.engines.spark.events import TIME, Events, session_column
from weft.engines.spark.fan_out import NODE, START, Reading, constant, fan_out
from weft.engines.spark.partials import Aggregation, NativePartial, SpreadPartial
from weft.engines.spark.readings import Shape, reading_of, shapes_of, start_of
from weft.plan import Node, Roll, Scan, Slice
from weft.plan.nodes import topological_inputs
from weft.window import SessionWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from weft.aggregates import Partial
