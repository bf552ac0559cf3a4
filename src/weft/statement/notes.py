"""What became of the blocks of a statement, and of its functions OVER frames, in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """What became of one block of a statement.

    >>> print(Note(2, "SELECT ... GROUP BY site", shared=False, reason="mode is not shared"))
    block 2 runs as Spark runs it: mode is not shared
    """

    number: int  # from 1, in the order of the text; 0 is a whole statement
    text: str
    shared: bool
    reason: str = ""

    def __str__(self) -> str:
        if self.shared:
            return f"block {self.number} is shared"
        name = f"block {self.number}" if self.number else "the statement"
        return f"{name} runs as Spark runs it: {self.reason}"


@dataclass(frozen=True)
class OverNote:
    """What became of one function OVER a frame.

    >>> print(OverNote("rank() OVER (ORDER BY ts)", taken=False, reason="rank is no aggregate"))
    rank() OVER (ORDER BY ts) runs as Spark runs it: rank is no aggregate
    """

    text: str
    taken: bool
    reason: str = ""

    def __str__(self) -> str:
        if self.taken:
            return f"{self.text} is taken over"
        return f"{self.text} runs as Spark runs it: {self.reason}"
