"""Prices fitted to probes, checked on probes that were held back."""

from __future__ import annotations

import datetime as dt
import os
import platform
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from weft.cost.prices import ONCE, OPERATIONS, Coefficients, coefficients_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.cost.batch.work import Work

# A price twice as high counts as much as all probes together that are wrong by so much: where less
# counts, operations that come together pay for one another, down to the least price.
WEIGHT_OF_SHIPPED = 0.01
# Nothing is free: what other operations seem to pay for is not where those are missing, as bytes
# of keys are where there are no keys.
LEAST_OF_SHIPPED = 0.25
MOST_SPREAD = 0.2  # in the median; a calm host repeats itself
_HELD_BACK = 5  # of so many probes, one is not fitted to


@dataclass(frozen=True, slots=True)
class Probe:
    """One plan on one data set, its running time, and the work the model counts for it."""

    name: str
    ms: float
    work: Work
    # How much longer the second-best of its runs took; None where the first ran code that was new.
    spread: float | None = 0.0


@dataclass(frozen=True, slots=True)
class Calibration:
    """Fitted coefficients, and how well they tell the times of probes."""

    coefficients: tuple[Coefficients, ...]  # one for each file
    probes: tuple[Probe, ...]
    rank_correlation: float
    q_errors: tuple[float, ...]  # of probes that were held back when prices were fitted

    def expected_ms(self, probe: Probe) -> float:
        """Return what the fitted prices expect of a probe."""
        return expected(probe, self.coefficients)

    @property
    def spread(self) -> float:
        """How much repeated runs of a probe differ, in the median."""
        ordered = sorted(probe.spread for probe in self.probes if probe.spread is not None)
        return ordered[len(ordered) // 2] if ordered else 0.0

    @property
    def is_busy(self) -> bool:
        """True when runs differ so much that other work must have been in the way."""
        return self.spread > MOST_SPREAD

    def q_error(self, share: float) -> float:
        """Return the factor that so many of the held-back probes are at most wrong by."""
        ordered = sorted(self.q_errors)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def expected(probe: Probe, coefficients: Sequence[Coefficients]) -> float:
    """Price the work of a probe, in ms."""
    known = {one.engine: one for one in coefficients}
    return sum(n * known[engine].ns(name) for (engine, name), n in probe.work.items()) / 1e6


def fit(engines: tuple[str, ...], probes: tuple[Probe, ...], command: str) -> Calibration:
    """Fit prices to the times, by least squares of relative errors; none is far below those in use.

    Operations that always come together, such as reading a partial and combining it, cannot be
    told apart by any probe. The prices in use decide between them, with little weight. How far
    prices can be trusted is told by probes that they were not fitted to.
    """
    from scipy.stats import spearmanr

    learned = tuple(p for at, p in enumerate(probes) if (at + 1) % _HELD_BACK)
    held_back = probes[_HELD_BACK - 1 :: _HELD_BACK] or probes
    checked = _solved(engines, learned)
    q_errors = tuple(_q_error(probe.ms, expected(probe, checked)) for probe in held_back)
    words = (
        f"{command}, {len(probes)} probes, {platform.machine()} with {os.cpu_count()} cores, "
        f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"
    )
    fitted = tuple(replace(one, measured_by=words) for one in _solved(engines, probes))
    told = [expected(probe, fitted) for probe in probes]
    rank = float(spearmanr(told, [probe.ms for probe in probes]).statistic)
    return Calibration(fitted, probes, rank, q_errors)


def _q_error(measured: float, told: float) -> float:
    return max(measured / max(told, 1e-9), told / measured)


def _solved(engines: tuple[str, ...], probes: Sequence[Probe]) -> tuple[Coefficients, ...]:
    import numpy as np
    from scipy.optimize import nnls

    columns = [(engine, operation) for engine in engines for operation in OPERATIONS]
    seen = [c for c in columns if any(c in probe.work for probe in probes)]
    shipped = {engine: coefficients_of(engine) for engine in engines}
    ms = np.array([probe.ms for probe in probes])
    rows = np.array([[probe.work.get(c, 0.0) for c in seen] for probe in probes]) / 1e6
    before = np.array([shipped[engine].ns(name) for engine, name in seen])
    known = np.flatnonzero(before)
    prior = np.zeros((known.size, len(seen)))
    weight = WEIGHT_OF_SHIPPED * len(probes) ** 0.5
    prior[np.arange(known.size), known] = weight / before[known]
    wanted = np.concatenate([np.ones(len(probes)), np.full(known.size, weight)])
    matrix = np.vstack([rows / ms[:, None], prior])
    least = before * LEAST_OF_SHIPPED
    above, _ = nnls(matrix, wanted - matrix @ least)
    solution = least + above
    found: dict[str, dict[str, Any]] = {engine: {} for engine in engines}
    for (engine, name), ns in zip(seen, solution, strict=True):
        unit, value = ("ms", ns / 1e6) if name in ONCE else ("ns", ns)
        found[engine][f"{name}_{unit}"] = float(f"{value:.4g}")
    cores = os.cpu_count() or 1
    return tuple(replace(shipped[e], **values, cores=cores) for e, values in found.items())
