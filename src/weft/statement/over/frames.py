"""What stands in `OVER (...)`: keys, an order, and a frame that ends at its row or before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.errors import QueryError
from weft.statement.relations import Obstacle
from weft.statement.syntax import PlainInterval, written_of
from weft.time import duration_us
from weft.window.frame import HERE, Distance, Frame

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

_ONE_PASS = "its frame begins with the partition, and Spark computes that in one pass"


@dataclass(frozen=True)
class Over:
    """What stands in the parentheses of OVER."""

    keys: tuple[exp.Expr, ...]
    order: exp.Ordered
    frame: Frame

    @property
    def nulls_first(self) -> bool:
        """Tell whether rows without a value come before all others."""
        return bool(self.order.args.get("nulls_first"))

    @property
    def descends(self) -> bool:
        """Tell whether greater values come first."""
        return bool(self.order.args.get("desc"))


def over_of(window: exp.Window, named: Mapping[str, exp.Window]) -> Over:
    """Read OVER, or raise the obstacle that leaves it to Spark."""
    name = window.args.get("alias")
    if name is not None:
        known = named.get(name.name.casefold())
        if known is None or window.args.get("order") or window.args.get("partition_by"):
            raise Obstacle(f"the window {name.name} is Spark's")
        window = known
    order = window.args.get("order")
    if order is None:
        raise Obstacle("without ORDER BY its frame is the whole partition")
    if len(order.expressions) != 1:
        raise Obstacle("its frame is in the order of several values")
    spec = window.args.get("spec")
    if spec is None:
        raise Obstacle(_ONE_PASS)
    return Over(tuple(window.args.get("partition_by") or ()), order.expressions[0], _frame(spec))


def _frame(spec: exp.WindowSpec) -> Frame:
    kind = str(spec.args["kind"]).upper()
    if kind not in ("RANGE", "ROWS"):
        raise Obstacle(f"{kind} is Spark's")
    if spec.args.get("exclude"):
        raise Obstacle("EXCLUDE is Spark's")
    first = _distance(spec.args.get("start"), spec.args.get("start_side"))
    last = _distance(spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"))
    return Frame("ROWS" if kind == "ROWS" else "RANGE", first, last)


def _distance(bound: exp.Expr | str | None, side: str | None) -> Distance:
    if str(side).upper() == "FOLLOWING":
        raise Obstacle("FOLLOWING is Spark's")
    if isinstance(bound, str):
        if bound.upper() == "CURRENT ROW":
            return HERE
        raise Obstacle(_ONE_PASS)
    written = "" if bound is None else written_of(bound)
    if written.isdigit():
        return Distance(int(written), "number")
    if not isinstance(bound, PlainInterval):
        raise Obstacle(f"the bound {written} is Spark's")
    words = " ".join(written_of(part).strip("'\"") for part in bound.expressions)
    try:
        return Distance(duration_us(words), "interval")
    except QueryError as error:
        raise Obstacle(f"the bound {written} is Spark's") from error
