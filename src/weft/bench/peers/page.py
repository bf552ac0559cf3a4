"""The page `docs/peers.md`, written from the cells of all runs that were kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.bench.frame import Spread
from weft.bench.peers.environments import PEERS
from weft.bench.peers.workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.bench.peers.contest import Cell

Cells = dict[tuple[str, str], "Cell"]
_HERE, _SPARK = "weft", "weft-spark"
_MIB = 1 << 20
_CALM = 0.1
_CLOSE = 0.05  # ratios this near to one are no victory

HEADER = """\
# Peers

weft beside what people use, in one run: `make bench-peers`. Every contender reads the same parquet
files and writes its rows to files, each in a process of its own with two threads; what is timed is
all of that, planning included. weft knows nothing of the data beforehand. The first run is shown by
itself, for it loads and compiles; ratios are of the warm runs after it, with quartiles. A contender
in Java does one workload after the other in the same process; the others begin anew.
A run of some workloads or contenders replaces their figures here, so they may be of several runs.
Every answer is compared with weft's, row by row; {compared}

{host}

{load}

"""

NOTES = """\
## How each is written

- **weft** in the process: Arrow tables, `weft.run`, `weft.rolling`, `weft.as_of`; the auction is
  one statement.
- **weft on Spark** and the other three on Spark: the session that weft starts (two partitions, the
  parallel collector, no adaptive plans), the same for all.
- **Spark, stock**: one `window()` aggregation for each window, united; for ranges one frame each,
  for labels a join to the events of the longest range, which is faster than frames over both.
- **Spark, by an expert's hand**: aggregate once to slices by all keys and filtered columns, keep
  them, and make every window from them; bids are aggregated by minute before the join.
- **Spark, its segment tree on**: `spark.sql.window.segmentTree.enabled`; labels are rows among the
  events.
- **Flink SQL**: one mini-cluster with two slots, a statement set, window table functions as a
  stream, objects reused; the auction as a batch. Its sessions take in an event that comes exactly a
  gap later, the others begin a new one: gaps are a millisecond shorter there, which is the same for
  times in milliseconds. In one process every run starts a cluster and ends it, for seconds: the
  time is what Flink says that the job took, without that and without planning.
- **DuckDB**: a statement for each query, windows united, hops by copies, grouped by whole numbers.
- **Polars**: lazy frames on the streaming engine; hops by `group_by_dynamic` over rows sorted by
  key.
- **pandas**: a `groupby` for each window, hops by copies; one thread, as it has.
- **Bytewax**: one flow, a `fold_window` in Python for each window. Its sessions also take in an
  event exactly a gap later: gaps are a microsecond shorter.
- **Pathway**: one graph, a `windowby` for each window; standard deviations from sums of squares.

Contenders that take microseconds for every copy of an event are given fewer events, as the column
says, and what a run costs whatever its events weighs more there; their answers are compared with
weft's to the same events. Those that are made for a cluster are compared with weft on Spark, and
are all given fewer events than those in one process.
"""

_SMALL = """Inputs are small, so that Flink and stock Spark end in minutes, and
[what a run takes once](evidence.md#how-it-grows) weighs more than over
[millions of events](spark.md#speed).

"""


def page(cells: Sequence[Cell], host: Mapping[str, Any]) -> str:
    """Write the whole page."""
    known: Cells = {(cell.workload, cell.contender): cell for cell in cells}
    wrong = [cell for cell in cells if cell.wrong]
    compared = (
        "all agree where both have one."
        if not wrong
        else "**some differ: see the end of the page.**"
    )
    told = "; ".join(f"{name}: {value}" for name, value in host.items())
    parts = [
        HEADER.format(compared=compared, host=told, load=_load(cells)),
        "## Who wins where\n\n" + _winners(known),
        "## Times of weft in the process\n\n" + _ratios(known, _HERE, _beside(_HERE)),
        f"## Times of weft on Spark\n\n{_SMALL}" + _ratios(known, _SPARK, _beside(_SPARK)),
        _losses(known),
        "## Figures\n\n" + _figures(known),
        _states(known),
        _reasons(cells, known),
        NOTES,
    ]
    return "\n".join(part for part in parts if part)


def _load(cells: Sequence[Cell]) -> str:
    """Say how busy the machine was with other things.

    >>> _load([])
    ''
    """
    shares = [cell.others for cell in cells if cell.warm]
    if not shares:
        return ""
    busy = Spread.of(shares)
    said = (
        f"Other programs had {busy.low:.0%} to {busy.high:.0%} of the machine in half of the runs"
    )
    if busy.median < _CALM:
        return f"{said}."
    return f"{said}: times are longer than on a calm one, and ratios are rough."


def _beside(weft: str) -> list[str]:
    """Name who is compared with weft in the process, and who with weft on Spark."""
    return [
        name
        for name, peer in PEERS.items()
        if peer.cluster == PEERS[weft].cluster and name not in (_HERE, _SPARK)
    ]


def _ratio(cell: Cell | None, weft: Cell | None) -> Spread | None:
    """Tell how many times as long a contender takes for an event as weft does.

    All warm runs of the one against all of the other.
    """
    if cell is None or weft is None or not cell.warm or not weft.warm:
        return None
    size = weft.events / cell.events
    return Spread.of(size * a / b for a in cell.warm for b in weft.warm)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _winners(known: Cells) -> str:
    """Name the fastest of each workload, in one process and on a cluster's engine."""
    rows = []
    for workload in WORKLOADS:
        row = [workload.title]
        for weft in (_HERE, _SPARK):
            own = known.get((workload.name, weft))
            times = {weft: 1.0} if own is not None and own.warm else {}
            for name in _beside(weft):
                ratio = _ratio(known.get((workload.name, name)), own)
                if ratio is not None:
                    times[name] = ratio.median
            order = sorted(times, key=lambda name: times[name])
            row.append(" > ".join(_short(name) for name in order[:3]) or "")
        rows.append(row)
    said = (
        "From the fastest, the first three of those that run in one process, and of those that are "
        "made for a cluster.\n\n"
    )
    return said + _table(["", "in the process", "on Spark, and Flink"], rows)


def _short(name: str) -> str:
    return f"**{name}**" if name in (_HERE, _SPARK) else name


def _ratios(known: Cells, weft: str, peers: Sequence[str]) -> str:
    rows = []
    for workload in WORKLOADS:
        own = known.get((workload.name, weft))
        ratios = [_ratio(known.get((workload.name, name)), own) for name in peers]
        if any(ratios):
            rate = (
                f"{own.events / Spread.of(own.warm).median / 1e6:.2f}" if own and own.warm else ""
            )
            rows.append([workload.title, rate, *(str(ratio or "") for ratio in ratios)])
    said = (
        "How many times as long as weft the others take for an event: above 1 weft is faster. "
        "Median and quartiles.\n\n"
    )
    if not rows:
        return "No runs are kept that could be compared: see below what has no figure.\n"
    head = ["", "weft, million events/s", *(PEERS[name].title for name in peers)]
    return said + _table(head, rows)


def _losses(known: Cells) -> str:
    lines = []
    for workload in WORKLOADS:
        for weft in (_HERE, _SPARK):
            own = known.get((workload.name, weft))
            for name in _beside(weft):
                ratio = _ratio(known.get((workload.name, name)), own)
                if ratio is not None and ratio.median < 1 - _CLOSE:
                    sure = "" if ratio.high < 1 else ", though within the spread"
                    lines.append(
                        f"- {workload.title}: {PEERS[name].title} is {1 / ratio.median:.2f} times "
                        f"as fast as {PEERS[weft].title}{sure}."
                    )
    return "## Where weft loses\n\n" + ("\n".join(lines) or "Nowhere in this run.") + "\n"


def _figures(known: Cells) -> str:
    parts = []
    for workload in WORKLOADS:
        rows = []
        for name in workload.contenders:
            cell = known.get((workload.name, name))
            if cell is None or not cell.warm:
                continue
            warm = Spread.of(cell.warm)
            rows.append(
                [
                    PEERS[name].title,
                    f"{cell.events:,}",
                    f"{cell.seconds[0]:.2f}",
                    f"{warm} in {len(cell.warm)}",
                    f"{cell.events / warm.median / 1e6:.3g}",
                    f"{cell.peak_bytes / _MIB:,.0f}",
                    f"{cell.others:.0%}",
                ]
            )
        if rows:
            head = [
                "", "events", "first run, s", "warm runs, s", "million events/s", "peak, MiB",
                "others had",
            ]  # fmt: skip
            parts.append(f"### {workload.title}\n\n" + _table(head, rows))
    said = (
        "Peak memory adds up the peaks of all processes of a contender. `others had` is the share "
        "of the machine that other programs took meanwhile.\n\n"
    )
    return said + "\n".join(parts)


def _states(known: Cells) -> str:
    rows = []
    for workload in WORKLOADS:
        for name in workload.contenders:
            cell = known.get((workload.name, name))
            if cell is not None and cell.state:
                count = cell.state.get("rows")
                size = f"{cell.state['bytes'] / 1024:,.0f}"
                rows.append(
                    [workload.title, PEERS[name].title, f"{count:,}" if count else "", size]
                )
    said = (
        "The same events as a stream of four batches: the most that is held between two of them, "
        "where the engine tells. On Spark both bytes have what a state store takes when empty.\n\n"
    )
    return "## State\n\n" + said + _table(["", "", "rows", "KiB"], rows) if rows else ""


def _not_run(known: Cells) -> list[str]:
    """List who was not run on what, by contender."""
    lines = []
    for name, peer in PEERS.items():
        asked = [workload for workload in WORKLOADS if name in workload.contenders]
        left = [workload.name for workload in asked if (workload.name, name) not in known]
        if left:
            told = "anything" if len(left) == len(asked) else ", ".join(left)
            lines.append(f"- {peer.title}: not run yet on {told}.")
    return lines


def _reasons(cells: Sequence[Cell], known: Cells) -> str:
    lines = [
        f"- {PEERS[cell.contender].title}, {cell.workload}: {cell.wrong or cell.reason}"
        for cell in cells
        if cell.wrong or cell.reason
    ]
    lines += _not_run(known)
    return "## What has no figure\n\n" + "\n".join(lines) + "\n" if lines else ""
