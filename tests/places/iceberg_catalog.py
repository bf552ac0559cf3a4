"""A catalog of Iceberg's in a file, for as long as the process lives."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache


@cache
def iceberg_catalog() -> str:
    """Describe a catalog to pyiceberg, which reads that once, and return its name."""
    folder = tempfile.mkdtemp(prefix="weft-iceberg-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["PYICEBERG_CATALOG__LAKE__TYPE"] = "sql"
    os.environ["PYICEBERG_CATALOG__LAKE__URI"] = f"sqlite:///{folder}/catalog.db"
    os.environ["PYICEBERG_CATALOG__LAKE__WAREHOUSE"] = f"file://{folder}"
    return "lake"
