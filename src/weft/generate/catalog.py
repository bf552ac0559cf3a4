"""Every data set by name."""

from __future__ import annotations

import inspect
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from weft.generate.auctions import nexmark
from weft.generate.connections import trace
from weft.generate.options import known
from weft.generate.readings import sensors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

# A set that is one table is known by that table's name.
_ONLY_TABLE = {"sensors": "readings", "trace": "connections"}

_COMMON = ("rows", "seed")

SETS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"nexmark": nexmark, "sensors": sensors, "trace": trace}
)


def generate(name: str, rows: int, seed: int, **options: Any) -> dict[str, pa.Table]:
    """Make the set called `name`: its tables by table name, rows in order of arrival.

    The options are those of the set's own function. `sensors` is the table `readings`, `trace`
    the table `connections`, and `nexmark` the tables `person`, `auction` and `bid`.

    >>> generate("sensors", rows=1000, seed=7, devices=3)["readings"].num_rows
    1000
    >>> generate("sensor", rows=1000, seed=7)
    Traceback (most recent call last):
    weft.errors.QueryError: unknown data set 'sensor'
    hint: did you mean 'sensors'? the choices are nexmark, sensors, trace
    """
    make = SETS[known("data set", name, SETS)]
    accepted = [option for option in inspect.signature(make).parameters if option not in _COMMON]
    for option in options:
        known(f"option of {name}", option, accepted)
    made = make(rows, seed, **options)
    return made if isinstance(made, dict) else {_ONLY_TABLE[name]: made}
