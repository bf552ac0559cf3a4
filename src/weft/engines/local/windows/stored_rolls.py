"""The Rolls of a scope that are kept in stores as events come, and how their stores are fed.

A slice is final when an instance that holds it has closed, because from then on events in it are
late. So everything before the last end that the watermark passed is in a store, and everything
after it is not: a store can be made from the slices at any time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weft.engines.local.windows.flow import Flow, merged
from weft.engines.local.windows.instances import Shapes, shapes_of
from weft.engines.local.windows.lateness import Readers, oldest_open
from weft.engines.local.windows.rolls import coarser
from weft.engines.local.windows.slice_log import SliceLog, side_by_side
from weft.plan import PICK, Roll, Scan, Slice
from weft.techniques import INCREMENTAL, ONE_RANGE
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from weft.aggregates import Partial
    from weft.engines.local.windows.roll_store import RollStore
    from weft.kernels.grouping.slices import Slices
    from weft.kernels.partials import Bools
    from weft.plan import Node

_EVER, NEVER = -(2**62), 2**62


@dataclass(frozen=True, slots=True, eq=False)
class StoredRolls:
    """Rolls that share a store: the same slices, technique and partials."""

    base: Node  # whose slices are cut from events
    coarser: Slices | None  # where slices are made of finer ones
    technique: str
    partials: tuple[Partial, ...]
    rolls: tuple[Roll, ...]
    shapes: Shapes

    @property
    def by_time(self) -> bool:
        """Whether slices are taken in as they come: parts of one may then combine in any order."""
        return self.technique == "fiba" and all(p.laws().commutative for p in self.partials)

    def closes(self, from_us: int | None, to_us: int | None) -> bool:
        """Tell whether an instance of any window may end in `(from, to]`."""
        return self.final_before(from_us) < self.final_before(to_us)

    def final_before(self, watermark_us: int | None, last: int = _EVER) -> int:
        """Return the last end that a watermark has passed, up to which slices are in the store."""
        if watermark_us is None:
            return last
        range_us, slide_us, offset_us = self.shapes.sizes_us.T
        ends_us = offset_us + range_us
        return int((ends_us + (watermark_us - ends_us) // slide_us * slide_us).max())

    def oldest_open(self, watermark_us: int | None) -> int:
        """Return the start of the oldest instance that is open at a watermark."""
        if watermark_us is None:
            return NEVER
        return oldest_open(Readers(self.shapes.sizes_us, ()), {}, watermark_us)

    def coarse(self, flow: Flow | None) -> Flow | None:
        """Return slices as the windows read them."""
        if flow is None or self.coarser is None:
            return flow
        return coarser(flow, self.coarser, self.partials)


def stored_rolls(
    nodes: Iterable[Node],
    below: Mapping[Roll, tuple[Node, ...]],
    derived: Mapping[Slice, Slices],
) -> tuple[StoredRolls, ...]:
    """Find the Rolls to keep: of techniques that slide, and read by results or picks alone."""
    known = [node for node in nodes if isinstance(node, Roll)]
    fed = {feeder for roll in known if roll.read != PICK for feeder in roll.inputs}
    groups: dict[tuple[object, ...], list[Roll]] = {}
    for roll in known:
        if roll.technique in INCREMENTAL and roll not in fed and _is_kept(roll):
            # Rolls over events have slices of their own.
            alone = roll.technique in ONE_RANGE or isinstance(roll.feeder, Scan)
            place = (roll.feeder, roll.technique, roll.partials, roll if alone else None)
            groups.setdefault(place, []).append(roll)
    found = []
    for rolls in groups.values():
        first = rolls[0]
        (base,) = below[first]
        assert first.technique is not None
        made = derived.get(first.feeder) if isinstance(first.feeder, Slice) else None
        windows = tuple(r.window for r in rolls if isinstance(r.window, PeriodicWindow))
        shapes = shapes_of(windows)
        found.append(StoredRolls(base, made, first.technique, first.partials, tuple(rolls), shapes))
    return tuple(found)


def _is_kept(roll: Roll) -> bool:
    return (
        isinstance(roll.window, PeriodicWindow)
        and isinstance(roll.feeder, Slice | Scan)
        and not any(p.monoid.grows for p in roll.partials)
    )


@dataclass(slots=True)
class SliceSource:
    """The slices of a base: final ones in a log, those that may still change in one flow."""

    past: SliceLog
    recent: Flow

    def between(self, low_us: int, high_us: int, keys: Bools | None = None) -> Flow | None:
        """Return the slices that begin in `[low, high)`, of all keys or of some; None if none."""
        parts = [
            _within(flow, low_us, high_us, keys) for flow in self.past.between(low_us, high_us)
        ]
        parts = [flow for flow in parts if len(flow)]
        recent = _within(self.recent, low_us, high_us, keys)
        found = [side_by_side(parts)] if parts else []
        if len(recent):
            found.append(recent)
        return merged(found) if found else None


def _within(flow: Flow, low_us: int, high_us: int, keys: Bools | None) -> Flow:
    inside = (flow.starts_us >= low_us) & (flow.starts_us < high_us)
    if keys is not None:
        inside &= _known(keys, flow.keys)
    return flow if inside.all() else flow.take(np.flatnonzero(inside))


def _known(keys: Bools, codes: npt.NDArray[np.integer]) -> Bools:
    inside = codes < keys.size
    found = np.zeros(codes.size, np.bool_)
    found[inside] = keys[codes[inside]]
    return found


def slid(
    spec: StoredRolls,
    store: RollStore,
    source: SliceSource,
    from_us: int | None,
    to_us: int | None,
) -> dict[Roll, Flow]:
    """Let a store take in what is final now; return the instances that closed, Roll by Roll."""
    before, until = spec.final_before(from_us), spec.final_before(to_us, NEVER)
    oldest_us = spec.oldest_open(from_us) if from_us is not None else _EVER

    if spec.by_time:
        before = NEVER  # all that came is in

    def history(keys: Bools | None) -> Flow | None:
        if from_us is None and not spec.by_time:
            return None
        return spec.coarse(source.between(oldest_us, before, keys))

    new = None if spec.by_time else spec.coarse(source.between(before, until))
    if new is None:
        new = (spec.coarse(source.recent) or source.recent).take(np.empty(0, np.int64))
    answers = store.slid(new, history, from_us, to_us, spec.oldest_open(to_us))
    found: dict[Roll, Flow] = {}
    for at, roll in enumerate(spec.rolls):
        own = np.flatnonzero(answers.windows == at)
        order = own[np.lexsort((answers.starts_us[own], answers.keys[own]))]
        starts_us = answers.starts_us[order]
        partials = {p: held.take(order) for p, held in answers.partials.items()}
        ends_us = starts_us + spec.shapes.sizes_us[at, 0]
        found[roll] = Flow(answers.keys[order], starts_us, ends_us, partials)
    return found
