"""What the stages of a run on Spark took: the finest times that Spark takes by itself.

Spark compiles many nodes of a plan into one stage, and times the stage. So times are those of the
nodes that are computed together: those that read events on this side of the shuffle, the others
beyond it.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from pyspark.errors import PySparkException

from weft.engines.measures import StepTime
from weft.plan import Scan
from weft.plan.render.words import node_ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from weft.engines.measures import NodeRows
    from weft.plan import Plan

_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"
_PATIENCE_MS = 5_000  # for Spark to write down what it has done


class Stage(NamedTuple):
    """One stage of Spark's that has run."""

    number: int
    tasks: int
    events: int  # read from a source
    moved: int  # rows read that a shuffle had moved
    ms: float
    task_ms: float


@contextmanager
def timed_stages(session: SparkSession) -> Iterator[list[Stage]]:
    """Take the times of the stages that run meanwhile; they are in the list afterwards.

    A session of Spark Connect does not tell, and leaves the list empty.
    """
    found: list[Stage] = []
    try:
        context = session.sparkContext
    except PySparkException:
        yield found
        return
    before = {name: context.getLocalProperty(name) for name in (_GROUP, _DESCRIPTION)}
    group = f"weft-{uuid4().hex}"
    context.setJobGroup(group, "weft run --stats")
    try:
        yield found
    finally:
        for name, value in before.items():
            context.setLocalProperty(name, value)  # type: ignore[arg-type]
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # clients of Connect lack it

    with suppress(Py4JError):  # a version that keeps its books otherwise
        found.extend(_stages(context, group))


def _stages(context: SparkContext, group: str) -> Iterator[Stage]:
    scala: Any = context._jsc.sc()
    scala.listenerBus().waitUntilEmpty(_PATIENCE_MS)
    tracker, kept = context.statusTracker(), scala.statusStore()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    numbers = {stage for job in jobs if job is not None for stage in job.stageIds}
    for number in sorted(numbers):
        told = kept.lastStageAttempt(number)
        began, ended = told.submissionTime(), told.completionTime()
        if began.isEmpty() or ended.isEmpty():
            continue  # its rows were there already
        yield Stage(
            number,
            told.numTasks(),
            told.inputRecords(),
            told.shuffleReadRecords(),
            float(ended.get().getTime() - began.get().getTime()),
            float(told.executorRunTime()),
        )


def step_times(
    plan: Plan, nodes: Sequence[NodeRows], stages: Sequence[Stage]
) -> tuple[StepTime, ...]:
    """Put the times of stages beside what was expected of the nodes that they compute."""
    ids = node_ids(plan.nodes)
    reading = {n for n in ids if isinstance(n, Scan) or any(isinstance(i, Scan) for i in n.inputs)}
    first = {ids[node] for node in reading}
    # A node that reads events is half computed where they are read, and finished beyond.
    beyond = {*ids.values()} - first or first
    found = []
    for names, is_first in ((first, True), (beyond, False)):
        run = [stage for stage in stages if (stage.moved == 0) == is_first]
        if not run:
            continue
        told = [n.expected_ms for n in nodes if (n.name in first) == is_first]
        found.append(
            StepTime(
                "reads events" if is_first else "after the shuffle",
                tuple(sorted(names, key=lambda name: int(name[1:]))),
                tuple(stage.number for stage in run),
                sum(stage.tasks for stage in run),
                None if None in told or not told else sum(ms for ms in told if ms is not None),
                sum(stage.ms for stage in run),
                sum(stage.task_ms for stage in run),
            )
        )
    return tuple(found)
