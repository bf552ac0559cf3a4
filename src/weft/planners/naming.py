"""The last step of a plan: every Roll names the technique that its engine is to run.

Planners decide what is shared; which technique puts overlapping instances together follows from
where the plan runs. A batch of kernels answers whole arrays, a session and a columnar stream keep
windows as events come, and Catalyst spreads every row over the instances that hold it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weft.aggregates.base import is_built_in
from weft.errors import InternalError, UnsupportedError
from weft.plan import FOLD, PICK, RANGES, STAIR, Roll, Scan, Slice
from weft.plan.nodes import topological
from weft.techniques import FAN_OUT, INCREMENTAL, TECHNIQUES, WHOLE, technique_named
from weft.window import CumulatingWindow, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from weft.aggregates import Partial
    from weft.plan import Emit, Plan
    from weft.techniques import Form
    from weft.window import Window

# In the order of what they cost for one window; the first that is legal is taken.
_DEFAULTS: dict[Form, tuple[str, ...]] = {
    "incremental": ("prefix_ring", "slick_deque", "two_stacks_lite"),
    "whole": ("prefix_sums", "sliding_ranges"),
    "spread": (FAN_OUT,),
}
_RUN_BY: dict[Form, tuple[str, ...]] = {
    "incremental": INCREMENTAL,
    "whole": (*WHOLE, *INCREMENTAL, FAN_OUT),
    "spread": (FAN_OUT,),
}
_COMPILED = ("prefix_sums", "sparse_table", "disjoint_sparse_table")
_PLACES: dict[Form, str] = {
    "incremental": "sessions and streams keep windows as events come",
    "whole": "a batch of kernels has no such form",
    "spread": "Catalyst spreads rows over instances",
}


def check_technique(name: str, form: Form | None) -> None:
    """Refuse a technique that there is not, or that cannot run in this form.

    >>> check_technique("sliding_ranges", "incremental")
    Traceback (most recent call last):
    weft.errors.UnsupportedError: technique sliding_ranges cannot run here: sessions and streams
    keep windows as events come
    hint: use one of naive, subtract_on_evict, prefix_ring, flat_fat, b_int, flat_fit, two_stacks,
    two_stacks_lite, daba, daba_lite, slick_deque_inv, slick_deque, fiba
    """
    technique_named(name)
    if form is not None and name not in _RUN_BY[form]:
        raise UnsupportedError(
            f"technique {name} cannot run here: {_PLACES[form]}",
            hint=f"use one of {', '.join(_RUN_BY[form])}",
        )


def legal(
    names: Iterable[str], partials: Iterable[Partial], exact: Callable[[Partial], bool]
) -> list[str]:
    """Keep the techniques whose laws all partials have; those that grow are gathered anyway.

    Some have compiled code alone, which knows nothing of aggregates written in Python.
    """
    known = [p for p in partials if not p.monoid.grows]
    laws = [p.laws(exact=exact(p)) for p in known]
    compiled = all(is_built_in(p.kind) for p in known)
    return [
        name
        for name in names
        if not any(x.missing(TECHNIQUES[name].needs) for x in laws)
        and (compiled or name not in _COMPILED)
    ]


def named(
    emits: tuple[Emit, ...],
    form: Form | None,
    exact: Callable[[Partial], bool],
    forced: str | None = None,
) -> tuple[Emit, ...]:
    """Return the plan with every technique named, for one form of running it.

    Without a form, as papers count, what planners chose stays, and the rest is spread.
    """
    nodes = topological(emits)
    overlapped = {
        node.feeder
        for node in nodes
        if isinstance(node, Roll) and isinstance(node.feeder, Slice) and overlaps(node.window)
    }
    fed = {
        feeder
        for node in nodes
        if isinstance(node, Roll) and node.read != PICK
        for feeder in node.inputs
        if isinstance(feeder, Roll)
    }
    made: dict[Roll, Roll] = {}
    for node in nodes:
        if not isinstance(node, Roll):
            continue
        inputs = tuple(made[i] if isinstance(i, Roll) else i for i in node.inputs)
        roll = replace(node, inputs=inputs)
        kept = form == "incremental" and node not in fed and _is_kept(node)
        if form is None and node.technique is not None:
            made[node] = roll
        elif _combines(node) or (kept and node.feeder in overlapped):
            # What a session does not keep it puts together anew whenever windows close.
            anew = form == "incremental" and not kept
            own: Form = "whole" if anew else form or "spread"
            asked = None if anew and forced in INCREMENTAL else forced
            chosen = _technique(node, own, exact, asked)
            read = node.read if node.read == STAIR or isinstance(inputs[0], Scan) else RANGES
            made[node] = replace(roll, read=read, technique=chosen)
        else:
            read = FOLD if node.read == RANGES else node.read
            made[node] = replace(roll, read=read, technique=None)
    return tuple(
        replace(emit, inputs=tuple(made[i] if isinstance(i, Roll) else i for i in emit.inputs))
        for emit in emits
    )


def for_stream(plan: Plan) -> Plan:
    """Return a plan whose windows are kept as events come, if it was one for whole tables.

    >>> from weft import Query, Workload, agg, hopping, optimize
    >>> hop = Query("q", source="s", windows={"h": hopping(6, 2)}, aggs={"n": agg.max("x")})
    >>> plan = optimize(Workload([hop]), "slice", "local")
    >>> [n.technique for p in (plan, for_stream(plan)) for n in p.nodes if isinstance(n, Roll)]
    ['one_by_one', 'slick_deque']
    """
    joins = tuple(emit for emit in plan.emits if not isinstance(emit.inputs[0], Roll))
    single = tuple(emit for emit in plan.emits if isinstance(emit.inputs[0], Roll))
    changed = dict(zip(single, named(single, "incremental", lambda _: False), strict=True))
    changed |= {emit: emit for emit in joins}
    nodes = topological(tuple(changed[emit] for emit in plan.emits))
    if len(nodes) != len(plan.nodes):
        raise InternalError("naming techniques changed the shape of a plan")
    return replace(plan, nodes=nodes)


def overlaps(window: Window) -> bool:
    """True when an instant may be in several instances of a window that follows the clock."""
    if isinstance(window, PeriodicWindow):
        return window.range_us > window.slide_us
    return isinstance(window, CumulatingWindow)


def _combines(roll: Roll) -> bool:
    """True when what a Roll reads may be in several of its instances."""
    if roll.read == PICK:
        return False
    if roll.read == STAIR:
        inner, window = roll.inputs[0], roll.window
        assert isinstance(inner, Roll)
        assert isinstance(inner.window, PeriodicWindow)
        assert isinstance(window, PeriodicWindow)
        return window.range_us - inner.window.range_us > window.slide_us
    if isinstance(roll.feeder, Roll) and roll.feeder.window == roll.window:
        return False
    return overlaps(roll.window)


def _is_kept(roll: Roll) -> bool:
    """True when a session keeps the windows of a Roll in a store, by its technique."""
    return (
        isinstance(roll.window, PeriodicWindow)
        and isinstance(roll.feeder, Scan | Slice)
        and not any(p.monoid.grows for p in roll.partials)
    )


def _technique(roll: Roll, form: Form, exact: Callable[[Partial], bool], forced: str | None) -> str:
    if forced is not None and forced in _RUN_BY[form]:
        for partial in roll.partials:
            if not partial.monoid.grows and roll.technique != forced:  # else it was legal before
                TECHNIQUES[forced].check(partial.laws(exact=exact(partial)), str(partial))
        return forced
    if roll.technique is not None and TECHNIQUES[roll.technique].form == form:
        return roll.technique
    return legal(_DEFAULTS[form], roll.partials, exact)[0]
