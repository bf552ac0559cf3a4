"""Arrow for code that works on columns of any type, which its stubs type too narrowly for."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow.compute

Array: TypeAlias = Any  # a pyarrow.Array
pc: Any = pyarrow.compute
