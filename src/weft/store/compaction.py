"""Compaction: old slices become coarser ones, batch by batch, and unused files go.

A batch keeps files of its own, so what was appended under an id can still be replaced.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
import pyarrow as pa

from weft.engines.local.partials.stored_columns import partials_of_column
from weft.engines.local.values.keys import KeyCodes
from weft.engines.local.windows.flow import Flow
from weft.engines.local.windows.rolls import coarser
from weft.errors import QueryError
from weft.store.answers import ALWAYS, SliceReader
from weft.store.cut import FOLDER, write_slices
from weft.store.disk import is_unfinished, remove, remove_folder
from weft.store.kept import START
from weft.store.manifest import coverage_us
from weft.time import duration_us, format_us
from weft.window import Edges

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from weft.store.kept import SliceSet
    from weft.store.manifest import Batch, Manifest, Manifests, SliceFile


@dataclass(frozen=True, slots=True)
class Rule:
    """Slices that end before a time become slices of a width."""

    width_us: int
    age_us: int

    def before_us(self, newest_us: int) -> int:
        """Return the time before which this rule holds, where one of its slices ends."""
        limit = newest_us - self.age_us
        return limit - limit % self.width_us


def compact(store: Path, manifests: Manifests, keep: Mapping[str, str] | None) -> None:
    """Do what the rule says that is given, or else the one that the store remembers."""
    if keep is not None:
        rules = rules_of(keep)
        manifests.change(lambda now: _with_levels(now, keep, rules))
    known = manifests.latest()
    rules = rules_of(known.keep)
    name = uuid4().hex
    made: dict[str, tuple[Batch, Batch]] = {}
    for id, batch in known.batches.items():
        changed = _compacted(store, known, batch, rules, name)
        if changed is not batch:
            made[id] = (batch, changed)
    if made:
        manifests.change(lambda now: _with_compacted(now, made))


def rules_of(keep: Mapping[str, str]) -> tuple[Rule, ...]:
    """Read a rule: what each width turns into after its time, the narrowest first.

    >>> [rule] = rules_of({"5 minutes": "7 days", "1 hour": "1 year"})
    >>> rule.width_us // 60_000_000, rule.age_us // 86_400_000_000
    (60, 7)
    """
    widths = sorted((duration_us(width), _long_us(age)) for width, age in keep.items())
    for (finer, _), (wider, _) in pairwise(widths):
        if wider % finer:
            raise QueryError(
                f"slices of {format_us(finer)} do not make up slices of {format_us(wider)}",
                hint="name widths of which each is a multiple of the one before",
            )
    ages = [age for _, age in widths]
    if ages != sorted(ages):
        raise QueryError(
            "wide slices go before narrow ones", hint="keep the wider slices for the longer time"
        )
    return tuple(Rule(wider, age) for (_, age), (wider, _) in pairwise(widths))


def _long_us(age: str) -> int:
    """Read how long something is kept; a year has 365 days here."""
    count, _, unit = age.strip().partition(" ")
    if unit.rstrip("s") == "year" and count.isdigit():
        return int(count) * duration_us("365 days")
    return duration_us(age)


def _with_levels(now: Manifest, keep: Mapping[str, str], rules: Sequence[Rule]) -> Manifest | None:
    """Give every set a level for each width, or say which has no such edges."""
    narrowest = duration_us(min(keep, key=duration_us)) if keep else None
    sets = []
    for kept in now.sets:
        cut = kept.levels[0]
        for width in (*([] if narrowest is None else [narrowest]), *(r.width_us for r in rules)):
            if not cut.contains((0, width)):
                raise QueryError(
                    f"slices of {kept.source} are not cut every {format_us(width)}",
                    hint="name widths that the windows of the store's workload are made of",
                )
        wanted = [Edges(((0, rule.width_us),), cut.windows) for rule in rules]
        new = tuple(edges for edges in wanted if edges not in kept.levels)
        sets.append(replace(kept, levels=(*kept.levels, *new)))
    if dict(keep) == dict(now.keep) and tuple(sets) == now.sets:
        return None
    return replace(now, version=now.version + 1, sets=tuple(sets), keep=dict(keep))


def _compacted(
    store: Path, known: Manifest, batch: Batch, rules: Sequence[Rule], name: str
) -> Batch:
    """Return a batch with its old files brought to the widths that they should have."""
    files = batch.files
    for number, kept in enumerate(known.sets):
        bounds = coverage_us(file for file in known.files() if file.set == number)
        for rule in rules if bounds is not None else ():
            assert bounds is not None
            level = kept.levels.index(Edges(((0, rule.width_us),), kept.levels[0].windows))
            limit = rule.before_us(bounds[1])
            old = [f for f in files if _is_due(f, number, level, kept, limit)]
            if old:
                made = _coarser_files(store, known, number, level, old, f"{name}{uuid4().hex[:8]}")
                files = (*(f for f in files if f not in old), *made)
    return batch if files == batch.files else replace(batch, files=files)


def _is_due(
    file: SliceFile,
    number: int,
    level: int,
    kept: SliceSet,
    limit_us: int,
) -> bool:
    return (
        file.set == number
        and file.level != level
        and file.to_us <= limit_us
        and (file.level == 0 or kept.levels[file.level].contains(kept.levels[level].classes[0]))
    )


def _coarser_files(
    store: Path,
    known: Manifest,
    number: int,
    level: int,
    old: Sequence[SliceFile],
    name: str,
) -> tuple[SliceFile, ...]:
    kept = known.sets[number]
    columns = SliceReader(store, known).rows(old, kept.columns, ALWAYS)
    starts_us = columns[START].cast(pa.int64()).to_numpy()
    codes = KeyCodes(len(kept.keys))
    keys = codes.encode([columns[column] for column, _ in kept.keys], starts_us.size)
    held = {p: partials_of_column(p, columns[own], starts_us) for own, p in kept.partials}
    rows = Flow(keys, starts_us, None, held).take(np.lexsort((starts_us, keys)))
    wide = coarser(rows, kept.slices(level), [*held])
    settled = {partial: one.settled() for partial, one in wide.partials.items()}
    flow = Flow(wide.keys, wide.starts_us, None, settled)
    return write_slices(store, number, kept, level, flow, codes, name)


def _with_compacted(now: Manifest, made: Mapping[str, tuple[Batch, Batch]]) -> Manifest | None:
    """Take the new files of batches that nobody has replaced meanwhile."""
    batches = dict(now.batches)
    for id, (before, after) in made.items():
        if batches.get(id) == before:
            batches[id] = after
    if batches == dict(now.batches):
        return None
    return replace(now, version=now.version + 1, batches=batches)


def remove_unused(store: Path, known: Manifest, unused_us: int) -> None:
    """Remove the files that no version of late has, such as those of a writer that crashed."""
    used = {file.path for file in known.files()}
    oldest = time.time() - unused_us / 1e6
    slices = (p for p in (store / FOLDER).rglob("*") if p.relative_to(store).as_posix() not in used)
    for path in (*slices, *filter(is_unfinished, store.rglob("*"))):
        if path.is_file() and path.stat().st_mtime < oldest:
            remove(path)
    for path in filter(is_unfinished, (store / FOLDER).glob("*")):  # of an append on Spark
        if path.stat().st_mtime < oldest and not any(p.is_file() for p in path.rglob("*")):
            remove_folder(path)
