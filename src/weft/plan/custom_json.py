"""Custom aggregates in plans that are written down: by the module that defines them, and a version.

No code is written. Where a plan is read, a name that is not known yet is looked for by importing
the module that defined it elsewhere.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from weft.aggregates.base import aggregate_function, custom_names, is_built_in
from weft.errors import QueryError
from weft.plan.nodes import Emit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from weft.plan.nodes import Node


def customs_of(nodes: Iterable[Node]) -> tuple[str, ...]:
    """Return the names of the custom aggregates that nodes ask for, each once."""
    calls = (call for node in nodes if isinstance(node, Emit) for _, call in node.outputs)
    return tuple(dict.fromkeys(c.function for c in calls if not is_built_in(c.function)))


def customs_to_json(nodes: Iterable[Node]) -> dict[str, Any]:
    """Say where the custom aggregates of nodes are defined, and in which version."""
    found = {name: aggregate_function(name) for name in customs_of(nodes)}
    return {n: {"module": own.module, "version": own.version} for n, own in found.items()}


def find_customs(told: Mapping[str, Any]) -> None:
    """Make custom aggregates known that a plan needs, or say what is missing."""
    for name, where in told.items():
        module, version = where["module"], where["version"]
        # What a script defines is not looked for: `__main__` is another one here.
        if name not in custom_names() and module not in (None, "__main__"):
            _imported(name, module)
        if name not in custom_names():
            raise QueryError(
                f"the plan uses the custom aggregate {name!r} of module {module!r}, which does "
                "not define it here",
                hint="define it with weft.agg.custom before the plan is read",
            )
        own = aggregate_function(name)
        if own.version != version:
            raise QueryError(
                f"the plan uses version {version} of custom aggregate {name!r}, and here is "
                f"version {own.version}",
                hint="go back to that version, or start anew with this one",
            )


def _imported(name: str, module: str) -> None:
    try:
        importlib.import_module(module)
    except Exception as reason:  # noqa: BLE001  # a module of the user's may raise anything
        raise QueryError(
            f"the module {module!r} of custom aggregate {name!r} cannot be imported: {reason}",
            hint="run where it can be, or define the aggregate before the plan is read",
        ) from None
