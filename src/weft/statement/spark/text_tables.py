"""Tables of results as text of the statement: Spark looks through them once, with all the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import types as T
from sqlglot import exp

from weft.engines.spark.text_rows import TextRows
from weft.statement.blocks import TRUNCATED, window_call
from weft.statement.projection import call_column, key_column
from weft.statement.relations import Obstacle
from weft.statement.sharing import PRESENT, WINDOW_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from weft.statement.sharing import Group, Member


@dataclass(frozen=True)
class TextTables:
    """The blocks of a group whose results are text, and the types of their aggregates."""

    group: Group
    rows: Mapping[int, TextRows]  # by the number of the block
    types: Mapping[int, T.StructType]
    answers: T.StructType

    @staticmethod
    def of(
        group: Group, found: Mapping[str, DataFrame | TextRows], answers: T.StructType
    ) -> TextTables:
        """Take the blocks that can be text, and ask for the types of all of them at once."""
        rows = {
            member.number: own
            for member in group.members
            if not member.block.sets
            and isinstance(own := found[member.query], TextRows)
            and not _shows_window(member)
        }
        asked = [m for m in group.members if m.number in rows and m.projection.calls]
        return TextTables(group, rows, _types(asked, rows), answers)

    def table(self, member: Member) -> TextRows:
        """Return keys, the window as Spark has it, and aggregates."""
        columns = [key_column(number) for number in range(len(member.block.keys))]
        columns.append(_window(member))
        for number, text in enumerate(_readings(member)):
            own = self.types[member.number].fields[number].dataType
            wanted = self.answers[self.group.answer(member, number)]
            if own != wanted.dataType:
                raise Obstacle(
                    f"an aggregate would be of type {own.simpleString()}, not "
                    f"{wanted.dataType.simpleString()}"
                )
            value = text if wanted.nullable else f"coalesce({text}, {_some_of(own)})"
            columns.append(f"{value} AS {call_column(number)}")
        rows = self.rows[member.number]
        if self.group.own_conditions(member):
            rows = rows.where(f"{PRESENT} > 0")
        return rows.selectExpr(*columns)


def _readings(member: Member) -> list[str]:
    calls = enumerate(member.projection.calls.values())
    return [call.reading.format(call_column(number)) for number, call in calls]


def _types(members: list[Member], rows: Mapping[int, TextRows]) -> dict[int, T.StructType]:
    """Ask Spark for the types of aggregates, of all blocks in one query."""
    if not members:
        return {}
    parts: list[str] = []
    frames: list[DataFrame] = []
    for member in members:
        own = rows[member.number]
        at = next((i for i, frame in enumerate(frames) if frame is own.frame), len(frames))
        frames += [own.frame] if at == len(frames) else []
        listed = ", ".join(
            f"first({text}) AS {call_column(number)}"
            for number, text in enumerate(_readings(member))
        )
        escaped = f"struct({listed})".replace("{", "{{").replace("}", "}}")
        parts.append(f"(SELECT {escaped} FROM ({own.over(f'weft_rows_{at}')}))")
    given = {f"weft_rows_{at}": frame for at, frame in enumerate(frames)}
    session = frames[0].sparkSession
    schema = session.sql(f"SELECT {', '.join(parts)}", args=None, **given).schema
    return {m.number: f.dataType for m, f in zip(members, schema.fields, strict=True)}  # type: ignore[misc]


def _window(member: Member) -> str:
    """Write the window: only one that overlaps others may be NULL by its type, any bound may."""
    _, start, end = WINDOW_COLUMNS
    name = member.block.window.name
    if name == TRUNCATED:
        return f"{_nullable(start)} AS {name}"
    whole = f"named_struct('start', {_nullable(start)}, 'end', {_nullable(end)})"
    return f"{_nullable(whole) if member.block.window.overlaps else whole} AS {name}"


def _nullable(text: str) -> str:
    return f"CASE WHEN 1 = 1 THEN {text} END"


def _some_of(kind: T.DataType) -> str:
    """Return any value of a type; it is never taken, and tells Spark that there is one."""
    name = kind.simpleString()
    if isinstance(kind, T.StructType):
        fields = (f"'{field.name}', {_some_of(field.dataType)}" for field in kind.fields)
        return f"named_struct({', '.join(fields)})"
    empty = {"array": "array()", "map": "map()", "string": "''", "binary": "''"}
    return f"cast({empty.get(kind.typeName(), '0')} AS {name})"


def _shows_window(member: Member) -> bool:
    """Tell whether a block hands its window on as it is: then Spark looks for a mark of it."""
    block = member.block
    for item in block.select.expressions:
        for node in item.walk():
            if isinstance(node, exp.Column) and len(node.parts) == 1:
                if node.name.casefold() == block.window.name:
                    return True
            elif isinstance(node, exp.Anonymous) and window_call(node) is not None:
                return True
    return False
