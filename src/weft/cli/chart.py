"""The windows of a result over time, for a quick look: as lines of bars, or as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import InputError, require

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from weft.query import AnyQuery

    Floats = npt.NDArray[np.float64]

BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 60
_MOST_LINES = 12  # of one window: the keys with most instances
_MICROSECONDS = pa.timestamp("us")


@dataclass(frozen=True, slots=True)
class Line:
    """One aggregate of one key and window, instance by instance."""

    window: str
    key: str
    starts_us: npt.NDArray[np.int64]
    values: Floats


def lines_of(query: AnyQuery, rows: pa.Table) -> tuple[str, list[Line]]:
    """Return what is drawn: the first aggregate that is a number, of the keys seen most."""
    alias = next(
        (alias for alias, _ in query.aggs if _is_number(rows.schema.field(alias).type)), ""
    )
    if not alias:
        return "", []
    label, start, _ = query.window_columns
    names = [name for name, _ in query.keys]
    starts: Any = rows[start]
    columns: dict[str, Any] = {
        "window": rows[label],
        "key": _texts(rows, names) if names else pa.array(["all"] * rows.num_rows),
        "start": starts.cast(pa.timestamp("us", starts.type.tz)).cast(pa.int64()),
        "value": rows[alias].cast(pa.float64(), safe=False),
    }
    drawn = pa.table(columns)
    return alias, list(_lines(drawn, [name for name, _ in _windows(query)]))


def _windows(query: AnyQuery) -> list[tuple[str, Any]]:
    return [*getattr(query, "windows", ())] or [(getattr(query, "label", ""), None)]


def _lines(drawn: pa.Table, labels: list[str]) -> Iterator[Line]:
    for label in labels:
        own = drawn.filter(pc.equal(drawn["window"], pa.scalar(label)))
        counted = own.group_by("key").aggregate([([], "count_all")])
        most = counted.sort_by([("count_all", "descending"), ("key", "ascending")])
        keys: list[Any] = most["key"].slice(0, _MOST_LINES).to_pylist()
        for key in keys:
            line = own.filter(pc.equal(own["key"], pa.scalar(key))).sort_by("start")
            values = line["value"].to_numpy()
            if not np.isnan(values).all():
                yield Line(label, key, line["start"].to_numpy(), values)


def _texts(rows: pa.Table, names: list[str]) -> Any:
    texts: list[Any] = [rows[name].cast(pa.string()) for name in names]
    parts: list[Any] = [text.fill_null("NULL") for text in texts]
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, ", ")


def _is_number(type: pa.DataType) -> bool:
    is_plain = pa.types.is_integer(type) or pa.types.is_floating(type)
    return is_plain or pa.types.is_decimal(type)


def drawn_as_text(query: AnyQuery, rows: pa.Table) -> str:
    """Draw a line of bars for each key and window; time goes to the right, gaps are blank.

    >>> import weft
    >>> ts = pa.array([0, 60, 120, 300], pa.timestamp("s")).cast(pa.timestamp("us"))
    >>> table = pa.table({"ts": ts, "v": [1.0, 3.0, 8.0, 4.0]})
    >>> query = weft.Query("v", source="t", time="ts", windows={"1m": "1 minute"},
    ...                    aggs={"hi": "max(v)"})
    >>> print(drawn_as_text(query, weft.run(query, {"t": table}, engine="reference")))
    v: hi, 1970-01-01 00:00:00 to 1970-01-01 00:05:00
    1m  all  ▁           ▃           █                                   ▄  1 to 8
    """
    alias, lines = lines_of(query, rows)
    if not lines:
        return f"{query.name}: nothing to draw: there is no row, or no aggregate that is a number"
    first = min(int(line.starts_us[0]) for line in lines)
    last = max(int(line.starts_us[-1]) for line in lines)
    wide = [max(len(text) for text in texts) for texts in zip(*_titles(lines), strict=True)]
    told = [f"{query.name}: {alias}, {_instant(first)} to {_instant(last)}"]
    for line in lines:
        low, high = np.nanmin(line.values), np.nanmax(line.values)
        bars = _bars(line, first, last, float(low), float(high))
        title = f"{line.window:{wide[0]}}  {line.key:{wide[1]}}"
        told.append(f"{title}  {bars}  {low:.6g} to {high:.6g}")
    return "\n".join(told)


def _titles(lines: list[Line]) -> list[tuple[str, str]]:
    return [(line.window, line.key) for line in lines]


def _bars(line: Line, first: int, last: int, low: float, high: float) -> str:
    """Put the instances that begin in a column together, as the mean of their values."""
    seen = ~np.isnan(line.values)
    column = (line.starts_us[seen] - first) * (_WIDTH - 1) // max(last - first, 1)
    count = np.bincount(column, minlength=_WIDTH)
    total = np.bincount(column, line.values[seen], minlength=_WIDTH)
    mean = total / np.maximum(count, 1)
    height = np.clip((mean - low) / (high - low) * 7.5, 0, 7) if high > low else mean * 0 + 3
    bars = np.array(list(BARS))[height.astype(np.int64)]
    return "".join(np.where(count > 0, bars, " ").tolist())


def _instant(us: int) -> str:
    text: str = pa.scalar(us, _MICROSECONDS).cast(pa.string()).as_py()
    return text.removesuffix(".000000")


def draw_to(path: Path, query: AnyQuery, rows: pa.Table) -> None:
    """Draw a picture: a curve for each key and window."""
    require("matplotlib", "bench", "a picture")
    from matplotlib.figure import Figure

    alias, lines = lines_of(query, rows)
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    for line in lines:
        times = line.starts_us.astype("datetime64[us]")
        axes.step(times, line.values, where="post", label=f"{line.window} {line.key}", lw=1)
    axes.set(title=f"{query.name}: {alias}", xlabel="start of the window, UTC", ylabel=alias)
    if lines:
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot draw to {path}: {error}", hint="name a file that ends in .svg, .png or .pdf"
        ) from error
