"""What became of the blocks of a statement, in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """What became of one block of a statement.

    >>> print(Note(2, "SELECT ... GROUP BY site", shared=False, reason="mode is not shared"))
    block 2 runs as Spark runs it: mode is not shared
    """

    number: int  # from 1, in the order of the text
    text: str
    shared: bool
    reason: str = ""

    def __str__(self) -> str:
        if self.shared:
            return f"block {self.number} is shared"
        return f"block {self.number} runs as Spark runs it: {self.reason}"
