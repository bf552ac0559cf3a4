"""Partials as Arrow columns and back, for snapshots.

A column of partials becomes plain columns of numbers, and a description in JSON: its kind, and
what its numbers stand for. Lists of values are stored beside, as columns of their own length.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.engines.local.partials.bags import Bags
from weft.engines.local.partials.columns import (
    Held,
    InTimeOrder,
    KernelPartials,
    LimbSums,
    ObjectPartials,
)
from weft.engines.local.partials.kinds import LOCAL_KINDS
from weft.engines.local.state.custom_partials import (
    NO_PICKLES,
    Trust,
    read_partials,
    written_partials,
)
from weft.engines.local.state.table_bytes import read_table, table_chunk
from weft.engines.local.values.coding import Bits, Coding, Direct, Listed
from weft.engines.local.values.distinct import distinct
from weft.errors import InternalError
from weft.kernels.partials import Partials, operation_of

if TYPE_CHECKING:
    from weft.aggregates import Partial
    from weft.engines.local.values.arrow import Array
    from weft.kernels.partials import KernelKind

Description = dict[str, Any]


@dataclass(slots=True)
class Shelf:
    """Columns of one length, lists of any, and the descriptions that tell what they are."""

    columns: dict[str, Array] = field(default_factory=dict)
    lists: list[Array] = field(default_factory=list)
    told: Description = field(default_factory=dict)
    trust: Trust = NO_PICKLES

    def put(self, name: str, held: Held) -> None:
        """Store partials under a name."""
        match held.settled():
            case KernelPartials() as kernel:
                self.told[name] = self._put_kernel(name, kernel)
            case LimbSums() as sums:
                for at, limb in enumerate(sums.limbs):
                    self.columns[f"{name}.{at}"] = pa.array(limb)
                self.told[name] = {"form": "limbs", "n": len(sums.limbs), "scale": sums.scale}
            case Bags() as bags:
                self.told[name] = self._put_bags(name, bags)
            case ObjectPartials() as objects:
                column, described = written_partials([*objects.objects], self.trust)
                self.columns[name], self.told[name] = column, described
            case other:
                raise InternalError(f"no snapshot of {type(other).__name__}")

    def _put_kernel(self, name: str, kernel: KernelPartials) -> Description:
        codings = []
        for at, (numbers, coding) in enumerate(zip(kernel.fields, kernel.codings, strict=True)):
            used, described = self._compacted(numbers, coding)
            self.columns[f"{name}.{at}"] = pa.array(used)
            codings.append(described)
        if kernel.present is not None:
            self.columns[f"{name}.present"] = pa.array(kernel.present)
        flags = kernel.present is not None
        return {
            "form": "kernel", "kind": kernel.partials.kind, "codings": codings, "flags": flags
        }  # fmt: skip

    def _put_bags(self, name: str, bags: Bags) -> Description:
        items, described = self._compacted(bags.items, bags.coding)
        offsets: Array = pa.array(bags.offsets)
        for part, values in (("items", items), ("counts", bags.counts)):
            column: Array = pa.array(values, pa.int64())
            self.columns[f"{name}.{part}"] = pa.LargeListArray.from_arrays(offsets, column)
        return {"form": "bags", "coding": described, "size": bags.size}

    def _compacted(self, numbers: Any, coding: Coding | None) -> tuple[Any, Description | None]:
        """Describe a coding; of a list, only the values in use are stored."""
        if coding is None:
            return numbers, None
        if isinstance(coding, Listed):
            inside = (numbers >= 0) & (numbers < len(coding.values))
            used = distinct(numbers[inside])
            places = np.searchsorted(used, numbers)
            self.lists.append(coding.values.take(pa.array(used)))
            return np.where(inside, places, numbers), {"list": len(self.lists) - 1}
        described: Description = {"type": _type_text(coding.type)}
        if isinstance(coding, Bits):
            described["bits"] = True
        elif coding.null_number:
            described["null"] = True
        return numbers, described

    def get(self, name: str, partial: Partial) -> Held:
        """Return the partials stored under a name."""
        told = self.told[name]
        match told["form"]:
            case "kernel":
                return self._get_kernel(name, told)
            case "limbs":
                limbs = [_numbers(self.columns[f"{name}.{at}"]) for at in range(told["n"])]
                return LimbSums(tuple(limbs), told["scale"])
            case "bags":
                return self._get_bags(name, told)
            case _:
                monoid = partial.monoid
                if not monoid.laws.commutative:
                    monoid = InTimeOrder(monoid)
                objects = read_partials(self.columns[name], told, self.trust)
                return ObjectPartials(monoid, objects)

    def _get_kernel(self, name: str, told: Description) -> KernelPartials:
        codings = tuple(self._coding(one) for one in told["codings"])
        fields = tuple(_numbers(self.columns[f"{name}.{at}"]) for at in range(len(codings)))
        kind: KernelKind = told["kind"]
        deciding = fields[LOCAL_KINDS[kind].typed_by]
        present = None
        if told["flags"]:
            present = self.columns[f"{name}.present"].to_numpy(zero_copy_only=False)
        columns = fields if len(fields) > 1 else fields[0]
        operation = operation_of(kind, deciding.dtype.name)
        return KernelPartials(Partials(kind, operation, columns, present), codings)

    def _get_bags(self, name: str, told: Description) -> Bags:
        items, counts = self.columns[f"{name}.items"], self.columns[f"{name}.counts"]
        offsets = _numbers(items.offsets)
        coding = self._coding(told["coding"])
        size = len(coding.values) if isinstance(coding, Listed) else told["size"]
        inside = slice(int(offsets[0]), int(offsets[-1]))
        flat = [_numbers(column.values)[inside] for column in (items, counts)]
        return Bags(offsets - offsets[0], flat[0], flat[1], size, coding)

    def _coding(self, told: Description | None) -> Coding | None:
        if told is None:
            return None
        if "list" in told:
            return Listed(self.lists[told["list"]])
        type = _read_type(told["type"])
        return Bits(type) if "bits" in told else Direct(type, "null" in told)

    def dump(self) -> bytes:
        """Write everything as Arrow IPC: the columns first, then each list."""
        tables = [pa.table(self.columns), *(pa.table({"list": one}) for one in self.lists)]
        return _framed([table_chunk(table) for table in tables])

    @classmethod
    def load(cls, blob: bytes, told: Description, trust: Trust = NO_PICKLES) -> Shelf:
        """Read what `dump` wrote."""
        first, *lists = [read_table(part) for part in _unframed(blob)]
        columns = {name: _one(first.column(name)) for name in first.column_names}
        return cls(columns, [_one(table.column("list")) for table in lists], told, trust)


def _one(column: Any) -> Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _numbers(array: Array) -> Any:
    return np.array(array.to_numpy(zero_copy_only=False))


def _type_text(type: pa.DataType) -> str:
    return base64.b64encode(pa.schema([("t", type)]).serialize().to_pybytes()).decode()


def _read_type(text: str) -> pa.DataType:
    found: pa.DataType = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text))).field(0).type
    return found


def _framed(parts: list[bytes]) -> bytes:
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def _unframed(blob: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(blob):
        size = int.from_bytes(blob[at : at + 8], "little")
        parts.append(blob[at + 8 : at + 8 + size])
        at += 8 + size
    return parts
