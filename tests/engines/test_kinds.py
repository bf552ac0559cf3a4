"""Each engine has one table of partial kinds, and it is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from weft.aggregates import PARTIAL_KINDS, function_names, monoid_names
from weft.aggregates.base import is_built_in
from weft.cost.strategies import SHIPPED_PARTIALS
from weft.engines.local.partials.kinds import LOCAL_KINDS
from weft.engines.local.partials.lower import LOWER
from weft.engines.spark.sql.kinds import SPARK_KINDS
from weft.engines.spark.sql.partials import Gathered, Ranked, SpreadPartial
from weft.kernels.partials import _OPERATIONS, KERNEL_KINDS
from weft.plain_sql.partials import PLAIN_KINDS
from weft.plan.scope import scopes_of
from weft.query import Query, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLES = {"local": LOCAL_KINDS, "spark": SPARK_KINDS, "plain SQL": PLAIN_KINDS}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_table_has_a_row_for_each_kind(table: Mapping[str, object]) -> None:
    assert set(table) == set(PARTIAL_KINDS)


def test_the_reference_engine_has_a_monoid_of_each_kind() -> None:
    assert {name for name in monoid_names() if is_built_in(name)} == set(PARTIAL_KINDS)


def test_kernels_have_an_operation_of_each_of_their_kinds() -> None:
    assert {kind for kind, _ in _OPERATIONS} == set(KERNEL_KINDS) <= set(PARTIAL_KINDS)


def test_the_local_engine_lowers_every_function() -> None:
    assert set(LOWER) == {name for name in function_names() if is_built_in(name)}


def test_what_is_priced_as_shipped_is_one_column_that_combines() -> None:
    plain = {
        kind
        for kind, native in SPARK_KINDS.items()
        if not isinstance(native, SpreadPartial | Ranked | Gathered)
    }
    assert plain == SHIPPED_PARTIALS


def test_a_sketch_of_spark_s_own_is_not_mixed_with_queries_of_other_filters() -> None:
    ask = {"source": "s", "time": "ts", "windows": {"4": "4 us"}}
    sketched, counted = (
        Query("q", where="x > 1", aggs={"a": call}, **ask)  # type: ignore[arg-type]
        for call in ("approx_top_k_accumulate(x)", "count(x)")
    )
    assert not scopes_of(Workload([sketched]))[0].may_be_mixed
    assert scopes_of(Workload([counted]))[0].may_be_mixed
