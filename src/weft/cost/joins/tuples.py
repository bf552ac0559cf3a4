"""What a join costs tuple by tuple, for every placement of early aggregation.

The model of Tran & Lee, "Transformation of Continuous Aggregation Join Queries over Data Streams":
a tuple that arrives or expires updates its window, its aggregation set if there is one, probes the
other inputs one after the other, and every match updates the result. Their equations (5) to (12)
are the eight two-way instances of

    C = sum over k of 2 rate_k (U + e_k update_k + (product of all matches) result
                                + sum over i of (product of matches before i) probe_i)

with (6) corrected: there the buckets of the join and of the groups are exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Literal

from weft.cost.occupancy import occupancy

Placement = tuple[bool, ...]  # per input: is it aggregated early?
Method = Literal["hash", "nested loop"]
MOST_BUCKETS = 1021  # of a hash table, in the published experiments
_FEWEST_MATCHES = 1e-6  # products of sparse joins stay above zero
# Up to here every placement is priced; beyond, single inputs are changed while that helps.
_MOST_ENUMERATED = 12


@dataclass(frozen=True, slots=True)
class SideLoad:
    """What one input of a join brings."""

    rate: float  # tuples per second
    window_tuples: float
    groups: float  # distinct values of the grouping attributes it owns
    join_values: float  # distinct values of its join attributes
    at_a_time: float = 0.0  # (group, join value) that may show up within a slice; 0: all

    @property
    def pairs(self) -> float:
        """The (group, join value) that tuples of one slice are spread over."""
        return self.at_a_time or self.groups * self.join_values

    @property
    def matches(self) -> float:
        """Tuples of the window that share one join value."""
        return self.window_tuples / self.join_values


@dataclass(frozen=True, slots=True)
class TuplePrices:
    """What single steps cost; in the papers' counting each costs one."""

    probe: float = 1.0  # look at one row of an aggregation set
    tuple_probe: float = 1.0  # look at one tuple of a window
    window_update: float = 1.0  # add a tuple to a window, or remove it
    set_update: float = 1.0  # apply a tuple to its input's aggregation set
    match: float = 1.0  # apply a matching row of an aggregation set to the result
    tuple_match: float = 1.0  # apply a matching tuple of a window to the result


# Nanoseconds of the local engine. A set update was measured by itself, on inputs that share no join
# value (14 to 35 with two inputs, 55 to 113 with three); the others were fitted to one run of
# `weft bench joins/figures`, given that one. Rows of an aggregation set lie side by side, tuples of
# a window are linked; with more than two inputs combinations of rows are walked one by one, where
# two inputs go through rows in one loop. To read and number tuples, which no placement changes, is
# not among the prices.
_LOCAL_TWO = TuplePrices(
    probe=1.1,
    tuple_probe=6.0,
    window_update=25.0,
    set_update=20.0,
    match=2.4,
    tuple_match=7.6,
)
_LOCAL_MANY = TuplePrices(
    probe=1.8,
    tuple_probe=5.2,
    window_update=132.0,
    set_update=60.0,
    match=26.0,
    tuple_match=20.5,
)


def local_prices(inputs: int) -> TuplePrices:
    """Return what steps of a join of so many inputs cost on the local engine, in nanoseconds."""
    return _LOCAL_TWO if inputs == 2 else _LOCAL_MANY


@dataclass(frozen=True, slots=True)
class PaperEstimates:
    """Sizes as Tran & Lee estimate them, equations (13) to (22): capped products.

    >>> both = PaperEstimates((SideLoad(300, 5000, 150, 10), SideLoad(300, 5000, 1, 10)))
    >>> both.rows(0, True), both.matches(0, True), both.result_chain()
    (1500, 150, 1.0)
    """

    loads: tuple[SideLoad, ...]
    buckets: int = MOST_BUCKETS

    def rows(self, side: int, early: bool) -> float:
        """Rows that a probe finds on an input: alpha_i of an aggregation set, or w_i."""
        load = self.loads[side]
        if not early:
            return load.window_tuples
        return min(load.window_tuples, load.groups * load.join_values)

    def matches(self, side: int, early: bool) -> float:
        """Rows that match one probing tuple: n_i of an aggregation set, or m_i."""
        load = self.loads[side]
        return min(load.matches, load.groups) if early else load.matches

    def bucket_rows(self, side: int, early: bool) -> float:
        """Rows in the bucket that a hash probe searches."""
        return self.rows(side, early) / min(self.loads[side].join_values, self.buckets)

    def update_chain(self, side: int) -> float:
        """Rows that an update of an early aggregation set searches."""
        return self.bucket_rows(side, True)

    def result_chain(self) -> float:
        """Rows that an update of the result searches: its groups per bucket of the first input."""
        groups = prod(min(load.window_tuples, load.groups) for load in self.loads)
        return groups / min(self.loads[0].groups, self.buckets)


@dataclass(frozen=True, slots=True)
class ExpectedEstimates:
    """Sizes as they are to be expected: occupancies instead of caps, and no chains.

    With x tuples over K equally likely values K (1 - (1 - 1/K)^x) of them show up. A join value
    of one input exists in the other only as far as the smaller domain goes.

    >>> one = ExpectedEstimates((SideLoad(1, 200, 20, 10), SideLoad(1, 200, 1, 10)))
    >>> round(one.rows(0, True), 1), round(one.matches(0, True), 2)
    (126.6, 12.83)
    """

    loads: tuple[SideLoad, ...]

    def rows(self, side: int, early: bool) -> float:
        """Rows that a nested loop looks at."""
        load = self.loads[side]
        if not early:
            return load.window_tuples
        return occupancy(load.groups * load.join_values, load.window_tuples)

    def matches(self, side: int, early: bool) -> float:
        """Rows that match one probing tuple."""
        load = self.loads[side]
        if not early:
            return load.window_tuples / max(other.join_values for other in self.loads)
        present = load.join_values / max(other.join_values for other in self.loads)
        return present * occupancy(load.groups, load.matches)

    def bucket_rows(self, side: int, early: bool) -> float:
        """Rows that a hash probe looks at: those that match, and one to find there are none."""
        return 1.0 + self.matches(side, early)

    def update_chain(self, side: int) -> float:
        """Rows are found by their number, whatever there is beside them."""
        return 1.0

    def result_chain(self) -> float:
        """Groups are found by their number."""
        return 1.0


Estimates = PaperEstimates | ExpectedEstimates


@dataclass(frozen=True, slots=True)
class TupleCost:
    """Prices placements of early aggregation for a join that is evaluated at every tuple.

    The published default setting, nested loops, late aggregation and early on both inputs:

    >>> loads = (SideLoad(300, 5000, 150, 10), SideLoad(300, 5000, 1, 10))
    >>> model = TupleCost(PaperEstimates(loads), method="nested loop")
    >>> model.cost((False, False)), model.cost((True, True))
    (6601200.0, 1088400.0)
    """

    estimates: Estimates
    prices: TuplePrices = TuplePrices()
    method: Method = "hash"

    @property
    def arity(self) -> int:
        """The number of inputs."""
        return len(self.estimates.loads)

    def cost(self, early: Placement) -> float:
        """Price a placement, per second."""
        return sum(self._side(k, early) for k in range(self.arity))

    def probe_order(self, side: int, early: Placement) -> tuple[int, ...]:
        """Order the other inputs for tuples of one: by rank, (matches - 1) / probe, ascending.

        >>> loads = (SideLoad(1, 9, 1, 9), SideLoad(1, 90, 1, 9), SideLoad(1, 9, 1, 9))
        >>> TupleCost(PaperEstimates(loads)).probe_order(0, (False, False, False))
        (2, 1)
        """
        others = [j for j in range(self.arity) if j != side]
        return tuple(sorted(others, key=lambda j: (self._rank(j, early[j]), j)))

    def pays_alone(self, side: int) -> bool:
        """Tell whether early aggregation of one of two inputs pays; the other one has no say.

        For two inputs the saving of one is the same with and without the other, because each
        term of the cost depends on one placement only.
        """
        late = (False,) * self.arity
        return self.cost(tuple(i == side for i in range(self.arity))) < self.cost(late)

    def best(self) -> Placement:
        """Return the cheapest placement; of equal ones the later aggregation."""
        if self.arity == 2:
            return tuple(self.pays_alone(side) for side in range(2))
        if self.arity <= _MOST_ENUMERATED:
            return min(placements(self.arity), key=self.cost)
        return self._climbed()

    def _side(self, k: int, early: Placement) -> float:
        estimates, prices = self.estimates, self.prices
        work = prices.window_update
        if early[k]:
            work += estimates.update_chain(k) * prices.set_update
        matched, price = 1.0, 1.0
        for j in self.probe_order(k, early):
            price = prices.match if early[j] else prices.tuple_match
            work += matched * self._probe(j, early[j])
            matched *= self._matches(j, early[j])
        work += matched * estimates.result_chain() * price
        return 2 * estimates.loads[k].rate * work

    def _probe(self, side: int, early: bool) -> float:
        by_hash = self.method == "hash"
        find = self.estimates.bucket_rows if by_hash else self.estimates.rows
        return find(side, early) * (self.prices.probe if early else self.prices.tuple_probe)

    def _matches(self, side: int, early: bool) -> float:
        return max(self.estimates.matches(side, early), _FEWEST_MATCHES)

    def _rank(self, side: int, early: bool) -> float:
        return (self._matches(side, early) - 1) / self._probe(side, early)

    def _climbed(self) -> Placement:
        chosen: Placement = (False,) * self.arity
        while True:
            near = [(*chosen[:i], not chosen[i], *chosen[i + 1 :]) for i in range(self.arity)]
            found = min(near, key=self.cost)
            if self.cost(found) >= self.cost(chosen):
                return chosen
            chosen = found


def placements(arity: int) -> tuple[Placement, ...]:
    """List all placements, the later aggregation first.

    >>> [placement_name(p) for p in placements(2)]
    ['LAP', 'EAP01', 'EAP10', 'EAP11']
    """
    return tuple(product((False, True), repeat=arity))


def placement_name(early: Placement) -> str:
    """Name a placement as Tran & Lee do: late, or early with a digit for each input."""
    return f"EAP{''.join('01'[e] for e in early)}" if any(early) else "LAP"


def placement_named(name: str, arity: int) -> Placement | None:
    """Read the name of a placement of so many inputs, if it is one.

    >>> placement_named("EAP10", 2), placement_named("LAP", 3), placement_named("EAP1", 2)
    ((True, False), (False, False, False), None)
    """
    found = {placement_name(early).casefold(): early for early in placements(arity)}
    return found.get(name.casefold())
