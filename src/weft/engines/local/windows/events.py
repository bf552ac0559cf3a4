"""A batch of a source as events of one sharing scope: filtered, timed, keyed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weft.engines.local.expressions.evaluate import evaluate
from weft.engines.local.values.arrow import pc
from weft.engines.local.values.frame import Frame
from weft.engines.schema import time_type
from weft.errors import DataError, InternalError
from weft.expression import columns_of
from weft.kernels.arrow_columns import times_of
from weft.kernels.grouping.dense import bounds_of
from weft.plan.conditions import cannot_fail

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from weft.aggregates import Partial
    from weft.engines.local.values.arrow import Array
    from weft.engines.local.values.keys import Codes, KeyCodes
    from weft.kernels.partials import Int64s
    from weft.plan import Scan
    from weft.query import Keys

_FEW_KEYS = 1 << 10  # that a batch may as well be taken to hold all of


@dataclass(frozen=True, slots=True, eq=False)
class Timed:
    """The events of a scan that pass its filter and have a time."""

    frame: Frame
    times_us: Int64s
    timeless: int
    _values: dict[str, Array] = field(default_factory=dict)
    _bounds: list[tuple[int, int]] = field(default_factory=list)

    @property
    def bounds_us(self) -> tuple[int, int]:
        """The earliest and the latest time, of which there must be some; looked for once."""
        if not self._bounds:
            self._bounds.append(bounds_of(self.times_us))
        return self._bounds[0]

    def argument(self, text: str) -> Array:
        """Evaluate an expression once, however many partials take it."""
        if text not in self._values:
            self._values[text] = evaluate(text, self.frame)
        return self._values[text]

    def arguments(self, partial: Partial) -> tuple[Array, ...]:
        """Evaluate what a partial is lifted from: NULL where its condition is not true."""
        if partial.where is None:
            return tuple(map(self.argument, partial.args))
        for arg, text in zip(partial.args, partial.reads, strict=True):
            # What cannot fail is computed for all events, once for all conditions on it.
            if text not in self._values and cannot_fail(arg):
                values = self.argument(arg)
                if pa.types.is_primitive(values.type):
                    kept = self._condition(partial.where)
                    self._values[text] = pc.if_else(kept, values, pa.scalar(None, values.type))
        return tuple(map(self.argument, partial.reads))

    def _condition(self, text: str) -> Array:
        """Evaluate a condition once; what is NULL is not true."""
        name = f"({text}) IS TRUE"
        if name not in self._values:
            self._values[name] = pc.fill_null(_condition(text, self.frame), False)
        return self._values[name]

    def filter(self, kept: npt.NDArray[np.bool_]) -> Timed:
        """Keep some events."""
        if kept.all():
            return self
        return Timed(self.frame.filter(pa.array(kept)), self.times_us[kept], 0)


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Events with the codes of their keys."""

    timed: Timed
    keys: Codes
    key_bounds: tuple[int, int] | None = None  # bounds of the codes, where they are known

    @property
    def times_us(self) -> Int64s:
        """The event times."""
        return self.timed.times_us

    def __len__(self) -> int:
        return self.keys.size

    def filter(self, kept: npt.NDArray[np.bool_]) -> Events:
        """Keep some events."""
        return (
            self
            if kept.all()
            else Events(self.timed.filter(kept), self.keys[kept], self.key_bounds)
        )


def read_scan(scan: Scan, table: pa.Table) -> Timed:
    """Filter the events of a batch, drop and count those without a time."""
    if scan.time is None:
        raise InternalError(f"the time column of {scan.source!r} was not looked up")
    frame = read_rows(scan, table)
    times, valid = read_times(frame.columns[scan.time], scan.time)
    if valid is None:
        return Timed(frame, times, 0)
    timeless = int(valid.size - valid.sum())
    return Timed(frame.filter(pa.array(valid)), times[valid], timeless)


def read_rows(scan: Scan, table: pa.Table) -> Frame:
    """Read what a plan asks of a batch, and keep the rows that pass the scan's filter."""
    timed = () if scan.time is None else (scan.time,)
    filtered = () if scan.where is None else columns_of(scan.where)
    read = dict.fromkeys((*scan.columns, *timed, *filtered))
    frame = Frame.of(table, table.column_names if scan.whole_events else read)
    if scan.where is not None:
        keep = pc.fill_null(_condition(scan.where, frame), False)
        if not pc.all(keep).as_py():
            frame = frame.filter(keep)
    return frame


def _condition(text: str, frame: Frame) -> Array:
    found = evaluate(text, frame)
    if not pa.types.is_boolean(found.type):
        if pa.types.is_null(found.type):
            return found.cast(pa.bool_())
        raise DataError(f"the filter {text} is not true or false", hint="compare it with a value")
    return found


def read_times(array: Array, name: str) -> tuple[Int64s, Any]:
    """View a time column as microseconds, and the flags of what is not NULL.

    >>> import datetime as dt
    >>> read_times(pa.array([dt.date(1970, 1, 2)]), "day")[0].tolist()
    [86400000000]
    """
    time_type(array.type, name)
    if pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("us"))
    return times_of(array)


def events_of(timed: Timed, keys: Keys, codes: KeyCodes) -> Events:
    """Give every event the code of its key."""
    arrays = [timed.argument(expression) for _, expression in keys]
    encoded = codes.encode(arrays, timed.times_us.size)
    few = len(codes) <= _FEW_KEYS
    return Events(timed, encoded, (0, len(codes) - 1) if few else None)
