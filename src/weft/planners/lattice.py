"""The lattice of key sets: slices by (k1, k2) are regrouped to slices by k1, by k2, and by none.

Scopes of one scan whose keys are among those of another may read its slices in place of events.
That pays where many events make one row of the finest keys, and is dear where each makes its own,
so both ways are priced, as they run: from one read, and in one chain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NamedTuple

from weft.aggregates.base import is_built_in
from weft.cost.batch.model import BatchModel, SparkModel
from weft.cost.batch.unknowns import plausible, safest
from weft.cost.strategies import KEPT_AS_ROWS, SHIPPED_PARTIALS, columnar_costs
from weft.cost.volumes import KeyedVolumes
from weft.plan import Slice, StrategyChoice
from weft.plan.body import COLUMNAR, NATIVE, STRATEGIES
from weft.plan.nodes import topological
from weft.plan.validate import validate
from weft.planners.base import Proposal
from weft.planners.naming import named
from weft.planners.slicing import roll
from weft.planners.trials import Trial
from weft.techniques import FAN_OUT
from weft.window import CalendarWindow, CumulatingWindow, Edges, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft.plan import Emit, Node, Scope
    from weft.planners.base import Context
    from weft.planners.trials import Desk
    from weft.query import Keys
    from weft.techniques import Form

_BY_THE_CLOCK = (PeriodicWindow, CumulatingWindow, CalendarWindow)
_MOST_CHOICES = 4  # coarser scopes of which every choice is priced
_MOST_DEALT = 8  # scopes of which it is searched who regroups whose; of more, the longest first
LATTICE = "lattice"
KeySets = Literal["together", "apart"]


@dataclass(frozen=True)
class Lattice:
    """Scopes of one scan: the finest first, then those that may regroup its slices."""

    finest: Scope
    coarser: tuple[Scope, ...]
    context: Context  # of the finest

    def emits(self, *, through_slices: bool) -> tuple[Emit, ...]:
        """Return the results of all: slices of the finest keys, and whatever is made of them.

        Coarser windows read them as they are, or through slices of their own keys.
        """
        finest = self.finest
        scopes = (finest, *self.coarser)
        windows = tuple(dict.fromkeys(w for scope in scopes for w in scope.windows))
        partials = tuple(dict.fromkeys(p for s in scopes for p in s.partials_for(s.windows)))
        columns = {name for scope in scopes for name in scope.scan.columns}
        scan = replace(finest.scan, columns=tuple(sorted(columns)))
        base = Slice(scan, finest.keys, Edges.of(windows), partials)
        found: list[Emit] = []
        for scope in scopes:
            slices = base
            if scope is not finest and through_slices:
                own = scope.partials_for(scope.windows)
                slices = Slice(base, scope.keys, Edges.of(scope.windows), own)
            found += scope.emits({w: roll(scope, slices, w, FAN_OUT) for w in scope.windows})
        return tuple(found)

    def ways(self) -> list[Way]:
        """List how these slices can be regrouped where the plan is to run."""
        context = self.context
        if not isinstance(context.model, SparkModel):
            return [Way(None, context.form or "whole", through_slices=True)]
        scopes = (self.finest, *self.coarser)
        kinds = {p.kind for scope in scopes for p in scope.partials_for(scope.windows)}
        found: list[Way] = []
        if context.strategy != COLUMNAR and all(map(is_built_in, kinds)):
            found += [Way(NATIVE, "spread", through_slices=way) for way in (True, False)]
        if context.strategy != NATIVE and kinds <= SHIPPED_PARTIALS:
            found.append(Way(COLUMNAR, "whole", through_slices=True))
        return found

    def named(self, emits: tuple[Emit, ...], form: Form) -> tuple[Emit, ...]:
        """Name the techniques of a plan of these scopes."""
        exact = {p for s in (self.finest, *self.coarser) for p in s.partials_for(s.windows)}
        columns = self.finest.exact_columns
        known = {p for p in exact if all(arg in columns for arg in p.args)}
        return named(emits, form, known.__contains__, self.context.technique)


class Way(NamedTuple):
    """How slices are regrouped and read: in this process, natively on Spark, or for its kernels."""

    strategy: str | None
    form: Form
    through_slices: bool


@dataclass(frozen=True, eq=False)
class Offer:
    """Coarser scopes that regroup slices of a finest, and what the family costs so, by case."""

    lattice: Lattice
    strategy: str | None
    emits: tuple[Emit, ...]
    costs: list[float]
    saved: float  # as expected, against all apart

    @property
    def scopes(self) -> frozenset[Scope]:
        """The scopes that it puts together."""
        return frozenset((self.lattice.finest, *self.lattice.coarser))


@dataclass(frozen=True, eq=False)
class Family:
    """A scope, those that could regroup its slices, and what is offered in place of all apart."""

    finest: Scope
    below: tuple[Scope, ...]
    models: list[BatchModel]
    apart: list[float]
    offers: list[Offer]


def regrouped(
    scopes: Sequence[Scope],
    chosen: Sequence[Trial],
    desk: Desk,
    as_run: Callable[[Sequence[Trial]], Sequence[Trial]] | None = None,
    *,
    forced: bool,
) -> tuple[list[Trial], tuple[str, ...]]:
    """Put scopes together whose slices are cheaper regrouped; say which, and what is gained.

    Where it is `forced`, whatever can be regrouped is. `as_run` prices plans that share a read.
    """
    trials = dict(zip(scopes, chosen, strict=True))
    able = [scope for scope in trials if _is_able(scope, desk)]
    below = {
        finest: tuple(scope for scope in able if _is_below(scope, finest))
        for finest in sorted(able, key=lambda scope: -len(scope.keys))
    }
    priced: dict[Scope, Family] = {}
    if not forced and len(able) <= _MOST_DEALT:
        priced = {f: _family(f, own, trials, desk) for f, own in below.items() if own}
        below = _dealt([*priced.values()])
    left = dict(trials)
    found: list[Trial] = []
    told: list[str] = []
    for finest, dealt in below.items():
        members = tuple(scope for scope in dealt if scope in left)
        if finest not in left or not members:
            continue
        family = priced.get(finest)
        if family is None or family.below != members:
            family = _family(finest, members, trials, desk)
        trial, together, note = _decided(family, trials, forced=forced)
        if trial is None:
            continue
        rest = {scope: own for scope, own in left.items() if scope not in together}
        if as_run is not None and rest.keys() - {*members}:
            # What is regrouped for kernels leaves the one read of all that Catalyst runs.
            ways = [*found, trial, *rest.values()], [*found, *left.values()]
            regroups, apart = (sum(one.cost for one in as_run(way)) for way in ways)
            if regroups > apart:
                continue
        found.append(trial)
        told.append(note)
        left = rest
    return [*found, *left.values()], tuple(told)


def _dealt(families: Sequence[Family]) -> dict[Scope, tuple[Scope, ...]]:
    """Give scopes that could regroup slices of several others to where most is saved."""
    wanted = [scope for family in families for scope in (family.finest, *family.below)]
    if len(set(wanted)) == len(wanted):
        return {family.finest: family.below for family in families}
    _, taken = _packed(families, frozenset())
    return {offer.lattice.finest: offer.lattice.coarser for offer in taken}


def _packed(families: Sequence[Family], taken: frozenset[Scope]) -> tuple[float, tuple[Offer, ...]]:
    """Choose an offer of each family, or none, so that no scope is in two and most is saved."""
    if not families:
        return 0.0, ()
    best = _packed(families[1:], taken)
    for offer in families[0].offers:
        if offer.saved > 0 and taken.isdisjoint(offer.scopes):
            saved, others = _packed(families[1:], taken | offer.scopes)
            if saved + offer.saved > best[0]:
                best = saved + offer.saved, (offer, *others)
    return best


def _is_able(scope: Scope, desk: Desk) -> bool:
    """Tell whether slices of a scope may be regrouped, and are where it runs."""
    context = desk.context_of(scope)
    partials = [p for w in scope.windows for p in scope.shareable_partials(w)]
    apart = KEPT_AS_ROWS if isinstance(context.model, SparkModel) else frozenset()
    return (
        isinstance(context.model, BatchModel)
        and context.technique is None
        and all(isinstance(window, _BY_THE_CLOCK) for window in scope.windows)
        and not any(scope.holistic_partials(window) for window in scope.windows)
        and all(p.laws().commutative and p.kind not in apart for p in partials)
    )


def _is_below(scope: Scope, finest: Scope) -> bool:
    """Tell whether a scope has the events of another, whatever it reads of them, and fewer keys."""
    same = replace(scope.scan, columns=()) == replace(finest.scan, columns=())
    return same and set(scope.keys) < set(finest.keys)


def _family(
    finest: Scope, below: tuple[Scope, ...], trials: dict[Scope, Trial], desk: Desk
) -> Family:
    """Price every choice of the coarser scopes, and all apart."""
    scopes = (finest, *below)
    models = _models(scopes, desk)
    apart = _costs(models, [trials[scope] for scope in scopes])
    offers: list[Offer] = []
    for some in _choices(below):
        lattice = Lattice(finest, some, desk.context_of(finest))
        rest = [trials[scope] for scope in below if scope not in some]
        for way in lattice.ways():
            emits = lattice.named(lattice.emits(through_slices=way.through_slices), way.form)
            costs = _costs(models, rest, emits, way.strategy)
            offers.append(Offer(lattice, way.strategy, emits, costs, apart[0] - costs[0]))
    return Family(finest, below, models, apart, offers)


def _decided(
    family: Family, trials: dict[Scope, Trial], *, forced: bool
) -> tuple[Trial | None, tuple[Scope, ...], str]:
    """Return the plan that regroups what is cheaper so, the scopes of it, and what it gains."""
    offers = family.offers
    if forced:
        offers = [offer for offer in offers if offer.lattice.coarser == family.below]
        if not offers:
            return None, (), ""
        chosen = offers[safest([offer.costs for offer in offers])]
    else:
        best = safest([family.apart, *(offer.costs for offer in offers)])
        if best == 0:
            return None, (), ""
        chosen = offers[best - 1]
    lattice, emits = chosen.lattice, chosen.emits
    nodes = topological(emits)
    validate(nodes)
    priced = _priced(nodes, family.models[0], chosen.strategy)
    coarser = ", ".join(_by(scope.keys) for scope in lattice.coarser)
    ratio = family.apart[0] / max(chosen.costs[0], 1e-300)
    note = (
        f"slices {coarser} are regrouped from slices {_by(family.finest.keys)}: "
        f"from events all would cost {ratio:.3g}x"
    )
    choices: tuple[StrategyChoice, ...] = ()
    if chosen.strategy is not None:
        queries = tuple(dict.fromkeys(emit.query for emit in emits))
        known = {name: sum(priced) if name == chosen.strategy else None for name in STRATEGIES}
        why = "slices are regrouped natively"
        if chosen.strategy == COLUMNAR:
            why = "slices are regrouped by Catalyst, and shipped"
        costs = known[NATIVE], known[COLUMNAR]
        choices = (StrategyChoice(queries, chosen.strategy, "slices", *costs, why),)
    apart = [trials[scope] for scope in (family.finest, *family.below)]
    reasons = {w: why for trial in apart for w, why in trial.proposal.reasons.items()}
    trial = Trial(LATTICE, Proposal(emits, reasons=reasons), nodes, priced, choices=choices)
    return trial, (family.finest, *lattice.coarser), note


def _choices(below: Sequence[Scope]) -> list[tuple[Scope, ...]]:
    """List which coarser scopes may regroup: of few every choice, of many all or one."""
    if len(below) > _MOST_CHOICES:
        return [tuple(below), *((scope,) for scope in below)]
    counts = range(len(below), 0, -1)
    return [some for count in counts for some in combinations(below, count)]


def _models(scopes: Sequence[Scope], desk: Desk) -> list[BatchModel]:
    """Return the model of all these scopes together, as expected and as the unknown may have it."""
    each = {scope: plausible(desk.context_of(scope).model) for scope in scopes}
    found: list[BatchModel] = []
    for case in range(max(map(len, each.values()))):
        own = {scope: cases[min(case, len(cases) - 1)] for scope, cases in each.items()}
        volumes = {s.keys: m.volumes for s, m in own.items() if isinstance(m, BatchModel)}
        model = own[scopes[0]]
        assert isinstance(model, BatchModel)
        known = model.volumes
        keyed = KeyedVolumes(
            known.statistics,
            known.lasts_us,
            known.dropped,
            known.pushes,
            by_keys=tuple(volumes.items()),
        )
        found.append(replace(model, volumes=keyed))
    return found


def _costs(
    models: Sequence[BatchModel],
    apart: Sequence[Trial],
    regrouped: tuple[Emit, ...] = (),
    strategy: str | None = None,
) -> list[float]:
    """Price a plan in every case: natively all is one chain, elsewhere each scope is by itself."""
    chain = [trial for trial in apart if _is_native(trial)]
    others = [trial for trial in apart if not _is_native(trial)]
    emits = tuple(emit for trial in chain for emit in trial.proposal.emits)
    if strategy == NATIVE:
        emits, regrouped = (*regrouped, *emits), ()
    together, own = topological(emits), topological(regrouped)
    return [
        (sum(model.node_costs(together)) if together else 0.0)
        + (sum(_priced(own, model, strategy)) if own else 0.0)
        + sum(trial.case(at) for trial in others)
        for at, model in enumerate(models)
    ]


def _priced(nodes: tuple[Node, ...], model: BatchModel, strategy: str | None) -> tuple[float, ...]:
    if isinstance(model, SparkModel) and strategy == COLUMNAR:
        return columnar_costs(nodes, model, "slices")
    return model.node_costs(nodes)


def _is_native(trial: Trial) -> bool:
    """Tell whether a plan of a scope is part of the one chain that Catalyst runs for all."""
    return bool(trial.choices) and all(choice.strategy == NATIVE for choice in trial.choices)


def _by(keys: Keys) -> str:
    return f"by {', '.join(name for name, _ in keys)}" if keys else "without keys"
