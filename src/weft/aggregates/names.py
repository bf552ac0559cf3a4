"""The names SQL knows aggregates by."""

from __future__ import annotations

from weft.aggregates.base import function_names

# What other systems call our aggregates; our own names need no entry.
AGGREGATE_SYNONYMS = {
    "any": "bool_or",
    "any_value": "first",
    "count_if": "count",
    "every": "bool_and",
    "first_value": "first",
    "last_value": "last",
    "mean": "avg",
    "percentile_approx": "approx_percentile",
    "some": "bool_or",
    "std": "stddev",
    "stddev_samp": "stddev",
    "stdev": "stddev",
    "stdevp": "stddev_pop",
    "var_samp": "var",
    "variance": "var",
    "varp": "var_pop",
}


def aggregate_name(name: str) -> str | None:
    """Return the name weft knows an aggregate by, or None if it is no aggregate.

    >>> aggregate_name("STDDEV_SAMP"), aggregate_name("Min"), aggregate_name("upper")
    ('stddev', 'min', None)
    """
    folded = name.casefold()
    if folded in AGGREGATE_SYNONYMS:
        return AGGREGATE_SYNONYMS[folded]
    # Custom aggregates keep the case in which they were defined.
    return next((known for known in function_names() if known.casefold() == folded), None)
