"""Deterministic user-defined windows, after Carbone et al., "Cutty" (CIKM 2016)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, ClassVar

from weft.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    Counts = npt.NDArray[np.int64]


class UserWindow:
    """A window whose begins and ends you decide, event by event, in event-time order per key.

    For each event `ends` is asked first, then `begins`. Windows of a key end in the order in
    which they began. `state` is a dict of your own, one per key, empty at first, kept between
    batches: put in it only numbers, strings, booleans, None, and lists or dicts of them.

    Plans, snapshots and checkpoints name the class by its module and name, and hold none of its
    code. A `version` goes along, if the class has one, and another one is refused where they are
    read: change it when an old `state` means something else.

    >>> class EveryTen(UserWindow):
    ...     def begins(self, event, state):
    ...         state["seen"] = state.get("seen", 0) + 1
    ...         return 1 if state["seen"] % 10 == 1 else 0
    ...     def ends(self, event, state):
    ...         return 1 if state.get("seen", 0) and state["seen"] % 10 == 0 else 0
    >>> EveryTen() == EveryTen(), str(EveryTen())
    (True, 'USER EveryTen')
    """

    version: ClassVar[str | None] = None

    def begins(self, event: Mapping[str, Any], state: dict[str, Any]) -> int:
        """Return how many windows begin with this event."""
        raise _undefined(self, "begins")

    def ends(self, event: Mapping[str, Any], state: dict[str, Any]) -> int:
        """Return how many windows, oldest first, end before this event, which is not in them."""
        raise _undefined(self, "ends")

    def discretize(
        self, columns: Mapping[str, Any], state: dict[str, Any]
    ) -> tuple[Counts, Counts]:
        """Return (begins, ends) for whole columns of one key's events, in event-time order.

        Override it for speed, with numpy or numba; this default asks `ends` and `begins` event
        by event.
        """
        import numpy as np

        names = list(columns)
        length = len(next(iter(columns.values()))) if names else 0
        begins = np.zeros(length, np.int64)
        ends = np.zeros(length, np.int64)
        for i in range(length):
            event = {name: columns[name][i] for name in names}
            ends[i] = self.ends(event, state)
            begins[i] = self.begins(event, state)
        return begins, ends

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self).__qualname__, repr(sorted(vars(self).items()))))

    def __str__(self) -> str:
        settings = ", ".join(f"{k}={v!r}" for k, v in sorted(vars(self).items()))
        return f"USER {type(self).__name__}" + (f"({settings})" if settings else "")


def _undefined(window: UserWindow, method: str) -> QueryError:
    return QueryError(
        f"{type(window).__name__} does not define {method}(event, state)",
        hint=f"let {method} return for each event how many windows it {method}",
    )


_SENT: dict[str, type[UserWindow]] = {}


def place_of(window: type[UserWindow]) -> str:
    """Name a class by its module and its name in there."""
    return f"{window.__module__}:{window.__qualname__}"


def add_window_class(place: str, window: type[UserWindow]) -> None:
    """Make a class known in a process that cannot import it, under the place it has elsewhere."""
    _SENT[place] = window


def window_class(place: str, version: str | None) -> type[UserWindow]:
    """Return the class at a place, of this version."""
    found: Any = _SENT.get(place)
    module, _, name = place.partition(":")
    if found is None:
        try:
            found = importlib.import_module(module)
        except Exception as reason:  # noqa: BLE001  # a module of the user's may raise anything
            raise QueryError(
                f"the module {module!r} of window class {name!r} cannot be imported: {reason}",
                hint="run where it can be: install it, or put its folder on PYTHONPATH",
            ) from None
        for part in name.split("."):
            found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, UserWindow)):
        raise QueryError(
            f"the plan uses the window class {name!r} of module {module!r}, which is not there",
            hint="define the class at the top of an importable module",
        )
    if found.version != version:
        raise QueryError(
            f"the plan uses version {version} of window class {place}, and here is version "
            f"{found.version}",
            hint="go back to that version, or start anew with this one",
        )
    return found
