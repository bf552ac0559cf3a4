"""The command `weft`: thin commands over the library, one module each."""

from __future__ import annotations


def main() -> None:
    """Run the command line, and leave with its exit status."""
    from weft.cli.app import app

    app(prog_name="weft")
