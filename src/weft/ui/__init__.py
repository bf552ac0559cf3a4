"""A page in the browser: plans, running streams, their results, and runs that were measured.

Served by this process, drawn on the server, and read-only unless it is told otherwise. Nothing is
loaded from elsewhere, and no statement that is pasted is run: it is planned.
"""

from weft.ui.application import application
from weft.ui.settings import Settings

__all__ = ["Settings", "application"]
