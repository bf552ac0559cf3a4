"""Moments of pairs and of higher order as Catalyst columns; means and central sums, as elsewhere.

Values that are all equal have central sums of exactly zero, whatever slices they came in: their
mean is one of them, and no quotient that rounds.
"""

from __future__ import annotations

from weft.engines.spark.sql.partials import Aggregation, Args, NativePartial, Types


def _mean(name: str, total: str, n: str) -> str:
    whole = f"{total} / nullif({n}, 0)"
    return f"CASE WHEN {name}_least = {name}_most THEN {name}_least ELSE {whole} END"


def _range_of(name: str, value: str) -> dict[str, str]:
    return {f"{name}_least": f"min({value})", f"{name}_most": f"max({value})"}


class Comoments(NativePartial):
    """Moments of pairs (y, x)."""

    def lift(self, name: str, args: Args, time: str) -> Aggregation:
        """Fold pairs by aggregates that Spark hashes; one with a NULL does not count."""
        y, x = args
        known = {
            "y": f"CASE WHEN {x} IS NOT NULL THEN cast({y} AS double) END",
            "x": f"CASE WHEN {y} IS NOT NULL THEN cast({x} AS double) END",
        }
        n = f"{name}_n"
        made = {n: f"count({known['y']})", f"{name}_c": f"covar_pop({known['y']}, {known['x']})"}
        fields = [f"'n', {n}"]
        for side, value in known.items():
            own = f"{name}_{side}"
            made |= {f"{own}_total": f"sum({value})", f"{own}_m2": f"var_pop({value})"}
            made |= _range_of(own, value)
            fields.append(f"'mean_{side}', coalesce({_mean(own, f'{own}_total', n)}, 0D)")
        fields.append(f"'c', coalesce({name}_c * {n}, 0D)")
        fields += [f"'m2_{side}', coalesce({name}_{side}_m2 * {n}, 0D)" for side in known]
        return Aggregation(made, f"named_struct({', '.join(fields)})")

    def combine(self, name: str, types: Types) -> Aggregation:
        """Merge any number of partials, as `Moments` does.

        With d the distances of means from their plain average c, what is between partials is
        sum(n*dx*dy) - sum(n*dx) * sum(n*dy) / sum(n), and the covariance of (mean_x, n*mean_y) is
        sum(n*dx*dy) + c_y * sum(n*dx), over the number of partials.
        """
        parts, n = f"{name}_parts", f"{name}_n"
        means = {s: f"CASE WHEN {name}.n > 0 THEN {name}.mean_{s} END" for s in ("y", "x")}
        made = {parts: f"count({means['y']})", n: f"nullif(sum({name}.n), 0)"}
        made[f"{name}_c"] = f"sum({name}.c)"
        made[f"{name}_xy"] = f"covar_pop({means['x']}, {name}.n * ({means['y']}))"
        fields = [f"'n', coalesce({n}, 0L)"]
        squares, lean = [], {}
        for side, mean in means.items():
            own = f"{name}_{side}"
            made |= {
                f"{own}_centre": f"avg({mean})",
                f"{own}_lean": f"covar_pop({mean}, {name}.n)",
                f"{own}_spread": f"covar_pop({mean}, {name}.n * ({mean}))",
                f"{own}_m2": f"sum({name}.m2_{side})",
                **_range_of(own, mean),
            }
            lean[side] = f"({own}_lean * {parts})"
            merged = f"{own}_centre + {lean[side]} / {n}"
            whole = f"CASE WHEN {own}_least = {own}_most THEN {own}_least ELSE {merged} END"
            fields.append(f"'mean_{side}', coalesce({whole}, 0D)")
            apart = f"{own}_spread * {parts} - {own}_centre * {lean[side]}"
            between = f"{apart} - {lean[side]} * {lean[side]} / {n}"
            squares.append(f"'m2_{side}', coalesce({own}_m2 + greatest({between}, 0D), 0D)")
        together = f"{name}_xy * {parts} - {name}_y_centre * {lean['x']}"
        together += f" - {lean['x']} * {lean['y']} / {n}"
        alike = " OR ".join(f"{name}_{side}_least = {name}_{side}_most" for side in means)
        fields.append(
            f"'c', coalesce({name}_c + CASE WHEN {alike} THEN 0D ELSE {together} END, 0D)"
        )
        return Aggregation(made, f"named_struct({', '.join((*fields, *squares))})")


_EMPTY = "named_struct('n', 0L, 'mean', 0D, 'm2', 0D, 'm3', 0D, 'm4', 0D)"
_N = "(a.n + b.n)"
_D, _P, _Q = "(b.mean - a.mean)", f"(a.n / {_N})", f"(b.n / {_N})"
_WEIGHT = f"{_D} * {_D} * {_P} * b.n"
# As `weft.aggregates.moments.ShapeMomentsOf.combine` has it.
_MERGED = (
    f"named_struct('n', {_N}, 'mean', a.mean + {_D} * {_Q}, 'm2', a.m2 + b.m2 + {_WEIGHT}, "
    f"'m3', a.m3 + b.m3 + {_WEIGHT} * {_D} * ({_P} - {_Q}) "
    f"+ 3 * {_D} * ({_P} * b.m2 - {_Q} * a.m2), "
    f"'m4', a.m4 + b.m4 + {_WEIGHT} * {_D} * {_D} * ({_P} * {_P} - {_P} * {_Q} + {_Q} * {_Q}) "
    f"+ 6 * {_D} * {_D} * ({_P} * {_P} * b.m2 + {_Q} * {_Q} * a.m2) "
    f"+ 4 * {_D} * ({_P} * b.m3 - {_Q} * a.m3))"
)


class ShapeMoments(NativePartial):
    """First four moments."""

    def lift(self, name: str, args: Args, time: str) -> Aggregation:
        """Read the central sums back off Spark's own aggregates of them."""
        value, n, m2 = f"cast({args[0]} AS double)", f"{name}_n", f"({name}_variance * {name}_n)"
        made = {
            n: f"count({value})",
            f"{name}_total": f"sum({value})",
            f"{name}_variance": f"var_pop({value})",
            f"{name}_skewness": f"skewness({value})",
            f"{name}_kurtosis": f"kurtosis({value})",
            **_range_of(name, value),
        }
        return Aggregation(
            made,
            f"named_struct('n', {n}, 'mean', coalesce({_mean(name, f'{name}_total', n)}, 0D), "
            f"'m2', coalesce({m2}, 0D), "
            f"'m3', coalesce({name}_skewness * {m2} * sqrt({name}_variance), 0D), "
            f"'m4', coalesce(({name}_kurtosis + 3) * {m2} * {name}_variance, 0D))",
        )

    def combine(self, name: str, types: Types) -> Aggregation:
        """Merge partials one by one: no aggregate of Spark's has the sums between them."""
        merged = f"CASE WHEN a.n = 0 THEN b WHEN b.n = 0 THEN a ELSE {_MERGED} END"
        gathered = f"{name}_gathered"
        return Aggregation(
            {gathered: f"collect_list({name})"},
            f"aggregate({gathered}, {_EMPTY}, (a, b) -> {merged})",
        )
