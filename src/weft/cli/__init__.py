"""The command `weft`: thin commands over the library, one module each."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, and leave with its exit status."""
    try:
        from weft.cli.app import app

        app(prog_name="weft")
    except KeyboardInterrupt:  # while the commands were loading; afterwards they see to it
        sys.exit(130)
