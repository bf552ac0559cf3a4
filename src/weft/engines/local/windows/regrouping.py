"""Slices of some keys as slices of fewer: rows whose keys become one are combined."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from weft.engines.local.partials.columns import KernelPartials
from weft.engines.local.windows.flow import Flow, runs_of_equals
from weft.kernels.grouping.accumulate import combine_rows, count_rows
from weft.kernels.grouping.dense import Box, bounds_of, groups_of_ordinals
from weft.kernels.grouping.hashed import groups_of_pairs
from weft.kernels.parallel import threads_for
from weft.kernels.partials import Partials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.aggregates import Partial
    from weft.engines.local.partials.columns import Held
    from weft.engines.local.values.keys import Codes, KeyCodes
    from weft.engines.local.windows.flow import Keyed
    from weft.kernels.grouping.accumulate import Groups
    from weft.kernels.grouping.slices import Slices
    from weft.kernels.partials import Int64s
    from weft.query import Keys


@dataclass(slots=True)
class Regrouping:
    """From slices under the codes of one set of keys to slices under those of fewer."""

    keys: Keys
    codes: KeyCodes
    fewer: Keys
    fewer_codes: KeyCodes
    _renamed: Codes = field(default_factory=lambda: np.empty(0, np.int32))

    def of(self, flow: Flow, slices: Slices, wanted: Sequence[Partial]) -> Flow:
        """Combine slices; those of fewer keys may be longer as well."""
        self._rename_new()
        groups = _Groups.of(self._renamed[flow.keys], slices.slice_of(flow.starts_us))
        starts_us = slices.bounds(groups.ordinals)[0]
        partials = {p: groups.combined(flow.partials[p]) for p in wanted}
        return Flow(groups.keys, starts_us, None, partials, len(flow) - groups.keys.size)

    def _rename_new(self) -> None:
        """Look up the codes of keys that came since the last time: codes stay as they are."""
        known, all_codes = self._renamed.size, len(self.codes)
        if known < all_codes:
            columns = self.codes.decode(np.arange(known, all_codes))
            fewer = [columns[self.keys.index(key)] for key in self.fewer]
            new = self.fewer_codes.encode(fewer, all_codes - known)
            self._renamed = np.concatenate([self._renamed, new])


@dataclass(frozen=True)
class _Groups:
    """The group of every row by (key, slice); in order, the number, key and slice of each."""

    of_rows: Groups
    size: int  # numbers go up to here
    numbers: Int64s
    keys: Keyed
    ordinals: Int64s

    @classmethod
    def of(cls, keys: Keyed, ordinals: Int64s) -> _Groups:
        """Number the groups: by position where that is cheap, else by hashing."""
        if not keys.size:
            none = np.empty(0, np.int64)
            return cls(np.empty(0, np.int32), 0, none, keys, ordinals)
        box = Box.around(bounds_of(keys), bounds_of(ordinals))
        if box.affordable(keys.size):
            groups, used = groups_of_ordinals(keys, ordinals, box, threads_for(keys.size))
            numbers = np.flatnonzero(used)
            own, at = np.divmod(numbers, box.slices)
            return cls(groups, box.size, numbers, own + box.first_key, at + box.first_slice)
        groups, own, at = groups_of_pairs(keys, ordinals)
        order = np.lexsort((at, own))
        return cls(groups, order.size, order, own[order], at[order])

    @cached_property
    def _runs(self) -> tuple[Int64s, Int64s, Int64s]:
        """The rows in the order of their groups, and where each group begins and ends there."""
        places = np.empty(self.size, np.int64)
        places[self.numbers] = np.arange(self.numbers.size)
        groups = places[self.of_rows]
        order = np.argsort(groups, kind="stable")
        return order, *runs_of_equals(groups[order])

    def combined(self, held: Held) -> Held:
        """Combine the rows of each group."""
        if isinstance(held, KernelPartials):
            return KernelPartials(self._accumulated(held.partials), held.codings)
        order, starts, ends = self._runs
        return held.take(order).over_ranges(starts, ends).settled()

    def _accumulated(self, partials: Partials) -> Partials:
        """Combine in one pass; rows without a value hold the identity, and only flags tell them."""
        threads = threads_for(self.of_rows.size)
        operation, columns = partials.operation, partials.columns
        totals = combine_rows(operation, self.of_rows, columns, self.size, threads)
        some = None
        if partials.present is not None:
            counted = np.where(partials.present, self.of_rows, np.int32(self.size))
            some = count_rows(counted, self.size, threads)[: self.size] > 0
        made = Partials(partials.kind, operation, totals, some).take(self.numbers)
        whole = made.present is None or made.present.all()
        return Partials(made.kind, operation, made.columns, None) if whole else made
