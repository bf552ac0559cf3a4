"""The slice store: partials of slices in files, so that yesterday's work is not done again."""

from weft.store.changed_results import refresh
from weft.store.store import Store

__all__ = ["Store", "refresh"]
