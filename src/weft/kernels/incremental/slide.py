"""Slide the windows of many keys: which instances close, and what each of them combines.

The slices of a key are numbered from the oldest one it holds; those that come now follow. `find`
looks at times alone, once for all partials; `answer_and_settle` then feeds a technique, partial by
partial: out with what is too old, in with what is new, and an answer where an instance ends.
Functions that combine begin with an item and return the one to go on with, before which notes ran
out of room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.kernels.columns import Columns, load, store
from weft.kernels.compiled import kernel, merged, unlocked
from weft.kernels.incremental.notes import room
from weft.kernels.incremental.verbs import (
    State,
    evict,
    insert,
    query,
    query_last,
    replace,
    size,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Int64s = npt.NDArray[np.int64]

FRONT, END = 0, 1  # of the times that a key holds, absolute positions in its ring
INSERTED, EVICTED = 0, 1  # of the slices of a key, counted from the oldest


@unlocked
def time_at(times: Int64s, at: Int64s, row: int, new: Int64s, first: int, number: int) -> int:
    """Return the time of a key's slice: one it holds, or one that comes after those."""
    held = at[row, END] - at[row, FRONT]
    if number < held:
        return int(times[row, (at[row, FRONT] + number) & (times.shape[1] - 1)])
    return int(new[first + number - held])


@unlocked
def _from(
    times: Int64s, at: Int64s, row: int, new: Int64s, first: int, low: int, stop: int, us: int
) -> int:
    """Return the first number from `low` up to `stop` whose slice begins at a time or after it."""
    if low < stop and time_at(times, at, row, new, first, low) >= us:
        return low  # the usual case: nothing is too old, or one slice is
    while low < stop:
        middle = (low + stop) // 2
        if time_at(times, at, row, new, first, middle) < us:
            low = middle + 1
        else:
            stop = middle
    return low


@unlocked
def find(
    times: Int64s,
    at: Int64s,
    new: Int64s,
    firsts_new: Int64s,
    stops_new: Int64s,
    shapes: Int64s,
    from_us: int,
    to_us: int,
    windows: Int64s,
    rows: Int64s,
    starts_us: Int64s,
    firsts: Int64s,
    stops: Int64s,
) -> int:
    """Find the instances with slices that end in `(from, to]`: window, key's row, start, slices.

    Writes them by row, then by window; only counts them when the arrays are empty.
    """
    found = 0
    for row in range(at.shape[0]):
        first = firsts_new[row]
        total = at[row, END] - at[row, FRONT] + stops_new[row] - first
        if total == 0:
            continue
        oldest = time_at(times, at, row, new, first, 0)
        for window in range(shapes.shape[0]):
            size, slide, offset = shapes[window]
            number = max((oldest - offset - size) // slide, (from_us - offset - size) // slide) + 1
            begins = 0
            while True:
                start = offset + number * slide
                begins = _from(times, at, row, new, first, begins, total, start)
                if begins == total:
                    break
                time = time_at(times, at, row, new, first, begins)
                if time >= start + size:
                    number = (time - offset - size) // slide + 1
                    continue
                if start + size > to_us:
                    break
                if windows.size:
                    windows[found], rows[found], starts_us[found] = window, row, start
                    firsts[found] = begins
                    end = start + size
                    stops[found] = _from(times, at, row, new, first, begins, total, end)
                found += 1
                number += 1
    return found


@unlocked
def needs(
    times: Int64s,
    at: Int64s,
    new: Int64s,
    firsts_new: Int64s,
    stops_new: Int64s,
    oldest_us: int,
    rows: Int64s,
    firsts: Int64s,
    stops: Int64s,
    evicted: Int64s,
    kept: Int64s,
    most: Int64s,
) -> None:
    """Tell, for instances by row and end, what is evicted before each and held at most.

    `evicted[i]` is the number of slices that instance i and all later ones of its key do without,
    `kept[row]` the first that stays after all of them, `most[row]` how many must fit. A key that
    had an answer lets go of what is too old when its next slice comes, as techniques count it.
    """
    for row in range(at.shape[0]):
        first = firsts_new[row]
        held = at[row, END] - at[row, FRONT]
        total = held + stops_new[row] - first
        kept[row] = _from(times, at, row, new, first, 0, total, oldest_us)
        most[row] = max(total - kept[row], held)
    for i in range(rows.size - 1, -1, -1):
        last = i == rows.size - 1 or rows[i + 1] != rows[i]
        later = kept[rows[i]] if last else evicted[i + 1]
        evicted[i] = min(firsts[i], later)
        if last:
            row = rows[i]
            total = at[row, END] - at[row, FRONT] + stops_new[row] - firsts_new[row]
            kept[row] = evicted[i]
            most[row] = max(most[row], total - kept[row])
        most[rows[i]] = max(most[rows[i]], stops[i] - evicted[i])


@kernel
def answer_and_settle(
    op: Any,
    state: State,
    firsts_new: Int64s,
    stops_new: Int64s,
    held: Int64s,
    values: Columns,
    rows: Int64s,
    firsts: Int64s,
    stops: Int64s,
    evicted: Int64s,
    kept: Int64s,
    progress: Int64s,
    out: Columns,
    begin: int,
) -> int:
    """Slide the window of each key from instance to instance, and combine what each spans.

    After the instances come the keys: what is left of the new slices is taken in, and what no open
    instance needs let go. Both in one function, since most of it is what moves a window, which is
    compiled into it for each technique and operation.
    """
    closing = rows.size
    for i in range(begin, closing + kept.size):
        if i < closing:
            row, stop, gone = rows[i], stops[i], evicted[i]
        else:
            row = i - closing
            stop, gone = held[row] + stops_new[row] - firsts_new[row], kept[row]
        if not _moved(op, state, row, values, firsts_new[row] - held[row], stop, gone, progress):
            return i
        if i < closing:
            spanned = stop - firsts[i]
            if spanned == progress[row, INSERTED] - progress[row, EVICTED]:
                store(out, i, query(op, state, row))
            else:
                store(out, i, query_last(op, state, row, spanned))
    return int(closing + kept.size)


@merged
def _moved(
    op: Any,
    state: State,
    row: int,
    values: Columns,
    origin: int,
    stop: int,
    evicted: int,
    progress: Int64s,
) -> bool:
    """Go on with a key until it holds what is asked for; False when notes have no room before."""
    # Out before in, as the published counts have it, and so that rings need the least room.
    while progress[row, EVICTED] < min(evicted, progress[row, INSERTED]):
        if not room(op):
            return False
        if progress[row, INSERTED] < stop:
            replace(op, state, row, load(values, origin + progress[row, INSERTED]))
            progress[row, INSERTED] += 1
        else:
            evict(op, state, row)
        progress[row, EVICTED] += 1
    if progress[row, EVICTED] == progress[row, INSERTED] and evicted > progress[row, EVICTED]:
        skipped = max(min(evicted, stop), progress[row, INSERTED])
        progress[row, INSERTED] = skipped  # too old before anything asks for them
        progress[row, EVICTED] = skipped
    while progress[row, INSERTED] < stop:
        if not room(op):
            return False
        insert(op, state, row, load(values, origin + progress[row, INSERTED]))
        progress[row, INSERTED] += 1
    return room(op)


@unlocked
def keep_times(
    times: Int64s, at: Int64s, new: Int64s, firsts_new: Int64s, stops_new: Int64s, kept: Int64s
) -> None:
    """Do with the times what `answer_and_settle` does with the partials."""
    slots = times.shape[1] - 1
    for row in range(at.shape[0]):
        held, first = at[row, END] - at[row, FRONT], firsts_new[row]
        at[row, FRONT] += min(kept[row], held)
        for number in range(max(held, kept[row]), held + stops_new[row] - first):
            times[row, at[row, END] & slots] = new[first + number - held]
            at[row, END] += 1


@kernel
def clear(op: Any, state: State, rows: Int64s, begin: int) -> int:
    """Empty the windows of keys."""
    for i in range(begin, rows.size):
        while size(state, rows[i]) > 0:
            if not room(op):
                return i
            evict(op, state, rows[i])
    return int(rows.size)
