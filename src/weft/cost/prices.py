"""What single operations cost on an engine: measured, kept as data, one file for each engine.

Some are paid once: by every run, by a stage of Spark's, by an operator. The others are paid by a
row, a column of it, or a byte of its keys. A file holds those that its engine pays; the file of
`spark` has what Catalyst does, `spark-columnar` what it takes to bring rows to the kernels and
back, and what the kernels do in executors.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from pathlib import Path

from weft.errors import DataError

NATIVE_PRICES, COLUMNAR_PRICES = "spark", "spark-columnar"


@dataclass(frozen=True, slots=True)
class Coefficients:
    """What single operations cost on one engine; measured, never guessed."""

    engine: str
    measured_by: str
    # Once, however many events there are.
    run_ms: float = 0.0  # one run of one scope
    stage_ms: float = 0.0  # one stage of Spark's: tasks are started, and end
    adaptive_ms: float = 0.0  # the same, where Spark plans anew after each stage, beyond stage_ms
    operator_ms: float = 0.0  # one aggregation of Catalyst's, or one node in kernels
    column_ms: float = 0.0  # one partial of such an aggregation: code is generated and compiled
    window_ms: float = 0.0  # one window that Spark plans
    # By event.
    scan_event_ns: float = 0.0  # hand one event of a source to what reads it
    fold_event_ns: float = 0.0  # find the group of one event, once for each instance it is in
    hash_event_ns: float = 0.0  # find it by hashing, where there are more groups than fit a table
    lift_ns: float = 0.0  # lift one event into one partial
    lift_where_ns: float = 0.0  # the same, beyond lift_ns, where a condition says whether
    window_event_ns: float = 0.0  # one copy by Spark's own `window()`, beyond folding it
    # By row of partials.
    read_partial_ns: float = 0.0  # hand one partial row to an operator
    combine_ns: float = 0.0  # combine two partials of one kind
    write_partial_ns: float = 0.0  # put out one partial row
    cold_row_ns: float = 0.0  # find one row's group, for each doubling of groups past a cache
    set_value_ns: float = 0.0  # keep one value of a partial that grows with what it has seen
    # By row that moves.
    key_byte_ns: float = 0.0  # one byte of the keys of a row that is grouped or moved
    shuffle_row_ns: float = 0.0  # move one row to the owner of its key
    shuffle_value_ns: float = 0.0  # one column of such a row
    ship_row_ns: float = 0.0  # sort one row by time and hand it to Python
    ship_value_ns: float = 0.0  # one column of such a row
    emit_row_ns: float = 0.0  # lower and put out one result row
    emit_value_ns: float = 0.0  # one column of such a row
    keep_row_ns: float = 0.0  # keep one row that several results read, and read it again
    # By micro-batch or instant.
    state_row_ns: float = 0.0  # keep one row of state
    turn_ns: float = 0.0  # run one operator once: for a micro-batch, or an instant of a join
    cores: int = 2  # that shared the work of rows when this was measured

    @staticmethod
    def load(text: str) -> Coefficients:
        """Read a coefficient file."""
        return Coefficients(**json.loads(text))

    def ns(self, operation: str) -> float:
        """Price one operation, whatever its unit.

        >>> Coefficients("local", "by hand", run_ms=2.0).ns("run")
        2000000.0
        """
        if operation in ONCE:
            return float(getattr(self, f"{operation}_ms")) * 1e6
        return float(getattr(self, f"{operation}_ns"))


# Operations by name: what is paid once, and what is paid by rows.
ONCE = tuple(f.name[:-3] for f in fields(Coefficients) if f.name.endswith("_ms"))
BY_ROW = tuple(f.name[:-3] for f in fields(Coefficients) if f.name.endswith("_ns"))
OPERATIONS = (*ONCE, *BY_ROW)


def user_coefficients(engine: str) -> Path:
    """Return where `weft calibrate` keeps an engine's coefficients for this user.

    The environment variable WEFT_COEFFICIENTS names another folder.
    """
    folder = os.environ.get("WEFT_COEFFICIENTS")
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return (Path(folder) if folder else home / "weft" / "coefficients") / f"{engine}.json"


def coefficients_of(engine: str) -> Coefficients:
    """Return an engine's coefficients: the user's own if calibrated, else the shipped ones.

    >>> coefficients_of("spark").engine
    'spark'
    """
    own = user_coefficients(engine)
    if own.is_file():
        try:
            return Coefficients.load(own.read_text())
        except (TypeError, ValueError):
            raise DataError(
                f"{own} is not a coefficient file of this version of weft",
                hint=f"remove it, or run `weft calibrate --engine {engine}` again",
            ) from None
    return shipped_coefficients(engine)


@cache
def shipped_coefficients(engine: str) -> Coefficients:
    """Return the coefficients of an engine that come with weft."""
    place = files("weft.cost") / "coefficients" / f"{engine}.json"
    return Coefficients.load(place.read_text())
