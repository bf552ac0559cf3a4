"""What functions of Spark are: which aggregate, which of those weft shares, which never repeat."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from weft.aggregates.spark_sketches import MERGED_BY

if TYPE_CHECKING:
    from collections.abc import Mapping

_OF_PAIRS = ("intercept", "r2", "slope", "sxx", "sxy", "syy")

# Aggregates of Spark that weft computes to Spark's answer, and weft's name of each.
SHARED: Mapping[str, str] = MappingProxyType(
    {
        "any": "bool_or",
        "array_agg": "collect_list",
        "avg": "avg",
        "bit_and": "bit_and",
        "bit_or": "bit_or",
        "bit_xor": "bit_xor",
        "bool_and": "bool_and",
        "bool_or": "bool_or",
        "collect_list": "collect_list",
        "collect_set": "collect_set",
        "corr": "corr",
        "count": "count",
        "count_if": "count",
        "covar_pop": "covar_pop",
        "covar_samp": "covar_samp",
        "every": "bool_and",
        "kurtosis": "kurtosis",
        "max": "max",
        "max_by": "max_by",
        "mean": "avg",
        "min": "min",
        "min_by": "min_by",
        **{f"regr_{name}": f"regr_{name}" for name in _OF_PAIRS},
        "skewness": "skewness",
        "some": "bool_or",
        "std": "stddev",
        "stddev": "stddev",
        "stddev_pop": "stddev_pop",
        "stddev_samp": "stddev",
        "sum": "sum",
        "var_pop": "var_pop",
        "var_samp": "var",
        "variance": "var",
        **{name: name for name in MERGED_BY},
    }
)
# What some are of distinct values.
DISTINCT: Mapping[str, str] = MappingProxyType(
    {
        "array_agg": "collect_set",
        "avg": "avg_distinct",
        "collect_list": "collect_set",
        "collect_set": "collect_set",
        "count": "count_distinct",
        "mean": "avg_distinct",
        "sum": "sum_distinct",
    }
)
# Those that no event is too many for: what they say of distinct values, they say of all.
INDIFFERENT = frozenset({"max", "min", "bool_and", "bool_or", "bit_and", "bit_or"})
# Every aggregate that Spark 4 has under a name of SQL.
_AGGREGATES = """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg
    bitmap_or_agg bool_and bool_or collect_list collect_set corr count count_if count_min_sketch
    covar_pop covar_samp every first first_value grouping grouping_id histogram_numeric
    hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
    kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis last last_value
    listagg max max_by mean measure median min min_by mode percentile percentile_approx
    percentile_cont percentile_disc product regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg skewness some std stddev stddev_pop
    stddev_samp string_agg sum theta_intersection_agg theta_sketch_agg theta_union_agg try_avg
    try_sum tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double
    tuple_sketch_agg_integer tuple_union_agg_double tuple_union_agg_integer var_pop var_samp
    variance vector_avg vector_sum
"""
AGGREGATES = frozenset(_AGGREGATES.split())
# What differs from call to call, or from one moment to the next.
_VOLATILE = """
    current_date current_time current_timestamp curdate input_file_block_length
    input_file_block_start input_file_name localtimestamp monotonically_increasing_id now rand
    randn random randstr session_user shuffle spark_partition_id uniform uuid
"""
VOLATILE = frozenset(_VOLATILE.split())
