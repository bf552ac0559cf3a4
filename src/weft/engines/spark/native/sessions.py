"""Sessions: runs of a key's events, found by one sort for all gaps; of slices where that will do.

Events of one slice no longer than the gap belong to one session. So a row per key and slice, with
its first and last event, tells where sessions begin, and there are far fewer of them to sort.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.engines.spark.native.aggregation import LAST, Flow, aggregated
from weft.engines.spark.native.events import TIME
from weft.engines.spark.sql.fan_out import START
from weft.engines.spark.sql.instants import floor_to
from weft.engines.spark.sql.kinds import is_holistic
from weft.engines.spark.sql.partials import Aggregation
from weft.engines.spark.sql.readings import session_column
from weft.engines.spark.text_rows import taken
from weft.window import SessionWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame

    from weft.engines.spark.native.aggregation import Branch
    from weft.engines.spark.text_rows import Rows
    from weft.plan import Node, Roll, Scan

_FIRST, _PREVIOUS = "first", "previous"


def with_sessions(
    rows: DataFrame,
    keys: Sequence[str],
    windows: Iterable[SessionWindow],
    first: str = TIME,
    last: str = TIME,
) -> DataFrame:
    """Add the start of each row's session, in a column per window; one sort serves all.

    A row is an event, or several that are in the same sessions: those from `first` to `last`.
    """
    own = f"PARTITION BY {', '.join(keys) or 'NULL'} ORDER BY {first}"
    ordered = rows.selectExpr("*", f"lag({last}) OVER ({own}) AS {_PREVIOUS}")
    begins = {w: f"{_PREVIOUS} IS NULL OR {first} - {_PREVIOUS} > {w.gap_us}L" for w in windows}
    return ordered.selectExpr(
        "*",
        *(
            f"max(CASE WHEN {begin} THEN {first} END) OVER "
            f"({own} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS {session_column(w)}"
            for w, begin in begins.items()
        ),
    )


def gaps_of(rolls: Iterable[Roll]) -> tuple[SessionWindow, ...]:
    """List the session windows, each once."""
    found = (roll.window for roll in rolls)
    return tuple(dict.fromkeys(w for w in found if isinstance(w, SessionWindow)))


def from_events(rolls: Iterable[Roll], scan: Scan) -> tuple[Roll, ...]:
    """Let sessions read events whatever the plan feeds them: they are sliced here, to suit them."""
    return tuple(replace(roll, inputs=(scan,)) for roll in rolls)


class SessionFlow(Flow):
    """Compiles the sessions of one branch: events to slices, slices to sessions."""

    def rows(self) -> Rows:
        """Return the rows of every session window of the branch."""
        (level,) = self.levels
        windows = gaps_of(self.branch.rolls)
        slices = self._slices(min(w.gap_us for w in windows))
        found = with_sessions(slices, self.events.keys, windows, _FIRST, LAST)
        return self._by_window(self._from_rows(found, level))

    def counts(self) -> dict[Node, int]:
        """Count nothing: the slices are none of the plan's, and sessions are seen in results."""
        return {}

    def _slices(self, longest_us: int) -> DataFrame:
        made = self._lifted() | {_FIRST: Aggregation({_FIRST: f"min({TIME})"})}
        sliced = self.frame.withColumn(START, F.expr(floor_to(TIME, 0, longest_us)))
        return taken(aggregated(sliced, (*self.events.keys, START), made))


def may_be_sliced(branch: Branch) -> bool:
    """Tell whether partials of slices can be combined, without looking at events again."""
    return not branch.spread and not any(map(is_holistic, branch.partials))
