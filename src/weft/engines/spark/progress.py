"""What Spark is doing at this moment, as a line: the stages that run, their tasks and rows.

Stages and tasks come from Spark's status tracker. Rows come from its monitoring service, where
the session has one. A session of Spark Connect has neither, and gives no line.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

# The line is drawn anew twice a second; an answer that takes longer is not worth the wait.
_PATIENCE_S = 0.3
_READ = ("inputRecords", "shuffleReadRecords")


def progress_of(session: SparkSession) -> str:
    """Say which stages run, how far they are and what they have read; empty when none does."""
    context = _context_of(session)
    stages = _stages(context)
    return line_of(stages, _rows_read(context) if context is not None and stages else None)


def share_of(session: SparkSession) -> float | None:
    """Return how much of the stages that run is done, by their tasks; None when none runs."""
    stages = _stages(_context_of(session))
    tasks = sum(tasks for _, _, tasks in stages)
    return sum(done for _, done, _ in stages) / tasks if tasks else None


def _stages(context: SparkContext | None) -> list[tuple[int, int, int]]:
    if context is None:
        return []
    tracker = context.statusTracker()
    found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return [(s.stageId, s.numCompletedTasks, s.numTasks) for s in found if s is not None]


def line_of(stages: Iterable[tuple[int, int, int]], rows: int | None) -> str:
    """Write stages (number, tasks done, tasks) and rows as a line.

    >>> line_of([(3, 1, 8), (4, 0, 2)], 1_250_000)
    'stages 3 and 4, 1 of 10 tasks, 1,250,000 rows read'
    >>> line_of([(0, 2, 4)], None), line_of([], None)
    ('stage 0, 2 of 4 tasks', '')
    """
    numbers, done, tasks = zip(*stages, strict=True) if (stages := list(stages)) else ((), (), ())
    if not numbers:
        return ""
    named = f"stage{'s' if len(numbers) > 1 else ''} {' and '.join(map(str, sorted(numbers)))}"
    read = "" if rows is None else f", {rows:,} rows read"
    return f"{named}, {sum(done)} of {sum(tasks)} tasks{read}"


def _context_of(session: SparkSession) -> SparkContext | None:
    try:
        return session.sparkContext
    except PySparkException:  # Spark Connect has none
        return None


def _rows_read(context: SparkContext) -> int | None:
    """Add up what the active stages have read; None where nobody tells."""
    if context.uiWebUrl is None:
        return None
    address = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    try:
        with urlopen(f"{address}?status=active", timeout=_PATIENCE_S) as answer:
            active: list[Mapping[str, Any]] = json.load(answer)
    except (OSError, ValueError):
        return None
    return sum(int(stage.get(read, 0)) for stage in active for read in _READ)
