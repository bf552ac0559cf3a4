"""Plans over slices that are kept: one slicing for all windows, which the store has cut before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weft.query import Query
from weft.running import columns_of_table
from weft.statistics import Statistics
from weft.store.manifest import coverage_us
from weft.store.serving import served, with_stored_times

if TYPE_CHECKING:
    from weft.plan import Plan
    from weft.query import Workload
    from weft.store.manifest import Manifest


def planned(
    manifest: Manifest, workload: Workload, since_us: int | None = None, engine: str = "local"
) -> Plan:
    """Plan queries over slices, each by the one slicing that its set has."""
    from weft.planners.portfolio import optimize

    asked = with_stored_times(manifest, workload)
    notes: dict[str, None] = {}
    for query in asked:
        assert isinstance(query, Query)
        source = served(manifest, query, since_us)
        by = ", ".join(text for _, text in source.kept.keys) or "no key"
        told = f"reads kept slices of {source.kept.source} by {by}"
        notes[f"query {query.name!r} {told}"] = None
    exact = {name: columns_of_table(s.empty_table()).exact for name, s in manifest.schemas.items()}
    known = _statistics(manifest)
    own = {name: known[name] for name in asked.sources if name in known}
    plan = optimize(asked, "slice", engine, own, exact_columns=exact, filters="apart")
    if len(asked) > 1:
        notes["each query is answered from the slices by itself"] = None
    return replace(plan, notes=(*plan.notes, *notes))


def _statistics(manifest: Manifest) -> dict[str, Statistics]:
    """Return what the store has seen of each source."""
    found: dict[str, Statistics] = {}
    for number, kept in enumerate(manifest.sets):
        bounds = coverage_us(file for file in manifest.files() if file.set == number)
        if bounds is not None and kept.source not in found:
            rate = manifest.events / max((bounds[1] - bounds[0]) / 1e6, 1e-6)
            found[kept.source] = Statistics(rate=rate, keys=max(manifest.keys.get(number, 1), 1))
    return found
