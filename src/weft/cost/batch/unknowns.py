"""What nobody knows of a source, and the choice that is least wrong whatever it is."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from weft.cost.batch.model import BatchModel, batch_model
from weft.cost.streams import StreamModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weft.cost.model import CostModel
    from weft.statistics import Statistics

# A plan may cost so much more than the cheapest, if it is the safer one.
WITHIN = 1.5
_FEW_KEYS, _MANY_KEYS = 5, 20_000
_FEWER, _MORE = 0.1, 10.0


def unknown_of(known: Statistics) -> tuple[str, ...]:
    """Name what a choice of plan rests on and nobody declared or measured.

    >>> from weft.statistics import Statistics
    >>> unknown_of(Statistics(keys=5)), unknown_of(Statistics(events=10, duration="1 day", keys=5))
    (('rate', 'events'), ())
    """
    return (*(n for n in ("rate", "keys") if n in known.assumed), *_unknown_span(known))


def _unknown_span(known: Statistics) -> tuple[str, ...]:
    return () if known.is_duration_known else ("events",)


def plausible(model: CostModel) -> tuple[CostModel, ...]:
    """Return the model, then what it could be as well: events close together, or far apart.

    Few keys and many events are the one end of what is plausible, many keys and few events the
    other; what is known stays. A stream is asked for what a micro-batch has, so how long it lasts
    does not matter. Other models stand alone.
    """
    if isinstance(model, StreamModel):
        return (model, *(replace(model, statistics=one) for one in _of_streams(model)))
    if not isinstance(model, BatchModel):
        return (model,)
    known, lasts_us = model.volumes.statistics, model.volumes.lasts_us
    unknown = unknown_of(known)
    if not unknown:
        return (model,)
    found: list[CostModel] = [model]
    for part, told in _ends(known, model.volumes.events):
        lasts_us = lasts_us * part if unknown == ("events",) else lasts_us
        other = replace(model.volumes, statistics=told, lasts_us=lasts_us)
        found.append(batch_model(model.engine, other))
    return tuple(found)


def _of_streams(model: StreamModel) -> list[Statistics]:
    known = model.statistics
    if not {"rate", "keys"} & set(known.assumed):
        return []
    return [told for _, told in _ends(known, known.events_per_us * model.micro_batch_us)]


def _ends(known: Statistics, events: float) -> Iterator[tuple[float, Statistics]]:
    """Give both ends of what is plausible: which part of the events there is, and what is told."""
    unknown = unknown_of(known)
    many = max(min(_MANY_KEYS, int(events)), 1)
    for keys, part in ((_FEW_KEYS, _MORE), (many, _FEWER)):
        told: dict[str, Any] = {"keys": keys} if "keys" in unknown else {}
        if "rate" in unknown:
            told["rate"] = known.events_per_us * 1e6 * part
        yield part, replace(known, **told)


def safest(costs: Sequence[Sequence[float]]) -> int:
    """Choose among options by their costs in each case, the first of which is the expected one.

    Of those within a factor of the cheapest, it is the one that is least dearer than the best in
    the case that is worst for it. With one case it is the cheapest.

    >>> safest([(10.0, 50.0), (11.0, 12.0), (40.0, 10.0)]), safest([(10.0,), (9.0,)])
    (1, 1)
    """
    expected = min(each[0] for each in costs)
    if not isfinite(expected):
        return 0
    best = [min(case) for case in zip(*costs, strict=True)]
    if len(best) == 1:
        return min(range(len(costs)), key=lambda at: costs[at][0])
    near = [at for at, each in enumerate(costs) if each[0] <= WITHIN * expected]
    worst = {at: max(c / b for c, b in zip(costs[at], best, strict=True)) for at in near}
    return min(near, key=lambda at: (worst[at], costs[at][0]))
