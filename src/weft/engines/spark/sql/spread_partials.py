"""Sets and sketches as rows: exact distinct values, HyperLogLog registers, quantile buckets."""

from __future__ import annotations

from weft.aggregates.sketches import HLL_BITS, HLL_REGISTERS, QUANTILE_RELATIVE_ERROR
from weft.engines.spark.sql.partials import Aggregation, Args, SpreadPartial

_GAMMA = (1 + QUANTILE_RELATIVE_ERROR) / (1 - QUANTILE_RELATIVE_ERROR)
_RANK_BITS = 64 - HLL_BITS
_ALPHA = 0.7213 / (1 + 1.079 / HLL_REGISTERS)
# Buckets (sign class, exponent) as one number that sorts as they do; exponents stay below 40,000.
_CLASS = 1_000_000
_REST = f"(xxhash64({{x}}) & {(1 << _RANK_BITS) - 1}L)"
RANK = f"{_RANK_BITS + 1} - CASE WHEN {_REST} = 0 THEN 0 ELSE length(bin({_REST})) END"


class Distinct(SpreadPartial):
    """One row per distinct value."""

    def entry(self, args: Args) -> str:
        """Tell which entry an event belongs to."""
        return args[0]

    def collapse(self, name: str, entry: str) -> Aggregation:
        """Fold the entries of a group."""
        return Aggregation({name: f"count({entry})"})


class Tally(SpreadPartial):
    """One row per distinct value, with how often it is there; read as the most frequent one."""

    def entry(self, args: Args) -> str:
        """Tell which entry an event belongs to."""
        return args[0]

    def collapse(self, name: str, entry: str) -> Aggregation:
        """Fold the entries of a group; of values that are as frequent, the least wins."""
        order = f"named_struct('n', -{name}, 'value', {entry})"
        return Aggregation(
            {name: f"min_by({entry}, CASE WHEN {entry} IS NOT NULL THEN {order} END)"}
        )


class HyperLogLog(SpreadPartial):
    """One row per register that is not empty, with its greatest rank."""

    def entry(self, args: Args) -> str:
        """Tell which entry an event belongs to."""
        register = f"shiftrightunsigned(xxhash64({args[0]}), {_RANK_BITS})"
        return f"CASE WHEN {args[0]} IS NOT NULL THEN {register} END"

    def collapse(self, name: str, entry: str) -> Aggregation:
        """Fold the entries of a group."""
        used, weight = f"{name}_used", f"{name}_weight"
        counted = f"CASE WHEN {entry} IS NOT NULL THEN pow(2D, -{name}) END"
        return Aggregation(
            {used: f"count({entry})", weight: f"coalesce(sum({counted}), 0D)"},
            _estimate(f"({HLL_REGISTERS} - {used})", weight),
        )


def _estimate(empty: str, weight: str) -> str:
    """Estimate as `weft.aggregates.sketches.hll_estimate` does, from the registers in use."""
    m = float(HLL_REGISTERS)
    raw = f"({_ALPHA * m * m!r}D / ({weight} + {empty}))"
    linear = f"{m!r}D * ln({m!r}D / {empty})"
    small = f"{raw} <= {2.5 * m!r}D AND {empty} > 0"
    return f"cast(round(CASE WHEN {small} THEN {linear} ELSE {raw} END) AS bigint)"


class Quantiles(SpreadPartial):
    """One row per logarithmic bucket, with the number of its values."""

    def entry(self, args: Args) -> str:
        """Tell which entry an event belongs to."""
        value = f"cast({args[0]} AS double)"
        exponent = f"cast(ceil(ln(abs({value})) / ln({_GAMMA!r}D)) AS int)"
        return (
            f"CASE WHEN {value} IS NULL THEN NULL WHEN isnan({value}) THEN {3 * _CLASS} "
            f"WHEN {value} = 0 THEN 0 WHEN {value} = double('Infinity') THEN {2 * _CLASS} "
            f"WHEN {value} = double('-Infinity') THEN {-2 * _CLASS} "
            f"WHEN {value} > 0 THEN {exponent} + {_CLASS} ELSE -{exponent} - {_CLASS} END"
        )

    def collapse(self, name: str, entry: str) -> Aggregation:
        """Fold the entries of a group."""
        buckets = f"{name}_buckets"
        pair = f"named_struct('bucket', {entry}, 'n', {name})"
        return Aggregation(
            {buckets: f"collect_list(CASE WHEN {entry} IS NOT NULL THEN {pair} END)"},
            f"array_sort({buckets})",
        )


def quantile_at(buckets: str, rank: float) -> str:
    """Return the middle of the bucket at a rank, as `weft.aggregates.sketches.quantile_of` does."""
    total = f"aggregate({buckets}, 0L, (n, b) -> n + b.n)"
    place = f"cast(floor({float(rank)!r}D * ({total} - 1)) AS bigint)"
    found = (
        f"aggregate({buckets}, named_struct('left', {place}, 'bucket', cast(NULL AS int)), "
        "(a, b) -> named_struct('left', a.left - b.n, "
        "'bucket', CASE WHEN a.left >= 0 THEN b.bucket ELSE a.bucket END), a -> a.bucket)"
    )
    return f"element_at(transform(array({found}), b -> {_bucket_value('b')}), 1)"


def _bucket_value(bucket: str) -> str:
    size = f"{2 / (_GAMMA + 1)!r}D * pow({_GAMMA!r}D, abs({bucket}) - {_CLASS})"
    return (
        f"CASE WHEN {bucket} IS NULL THEN NULL WHEN {bucket} = 0 THEN 0D "
        f"WHEN {bucket} = {3 * _CLASS} THEN double('NaN') "
        f"WHEN {bucket} = {2 * _CLASS} THEN double('Infinity') "
        f"WHEN {bucket} = {-2 * _CLASS} THEN double('-Infinity') "
        f"ELSE sign({bucket}) * {size} END"
    )
