"""The `trace` set: TCP connections in the manner of the wide-area traces of LBL.

Connections begin as a Poisson process. Sizes and durations have a lognormal body and a Pareto
tail, as Paxson and Floyd found ("Wide-Area Traffic: The Failure of Poisson Modeling", IEEE/ACM
Transactions on Networking 1995), so a few connections carry most of the bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weft.generate import draws, options
from weft.generate.draws import Floats, Ints, stream
from weft.time import SECOND

if TYPE_CHECKING:
    import datetime as dt

# The tail begins where a standard normal has 3 % above it.
_TAIL_SHARE = 0.03
_TAIL_SCORE = 1.8807936081512509
# Pareto exponents below 2 have no variance; 1.1 is in the middle of what was measured.
_TAIL_EXPONENT = 1.1
_LARGEST_BYTES = 1 << 40
_LONGEST_SECONDS = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class _Spread:
    """A lognormal body, by its median and the standard deviation of its logarithm."""

    median: float
    sigma: float


@dataclass(frozen=True, slots=True)
class _Protocol:
    name: str
    share: float
    seconds: _Spread
    sent: _Spread
    received: _Spread


@dataclass(frozen=True, slots=True)
class _State:
    """How a connection ended, and what a monitor then knows of it.

    Byte counts come from the sequence numbers of the closing packets: a side that was never
    seen to close has an unknown count, and a connection that never closed an unknown duration.
    """

    name: str
    share: float
    knows_duration: bool
    knows_sent: bool
    knows_received: bool


_PROTOCOLS = (
    _Protocol("smtp", 0.34, _Spread(3.0, 1.3), _Spread(1_600, 1.2), _Spread(330, 0.3)),
    _Protocol("nntp", 0.20, _Spread(6.0, 2.0), _Spread(900, 2.2), _Spread(500, 1.6)),
    _Protocol("ftp-data", 0.18, _Spread(1.5, 1.7), _Spread(400, 2.5), _Spread(3_500, 2.3)),
    _Protocol("http", 0.10, _Spread(1.2, 1.4), _Spread(110, 0.4), _Spread(2_800, 1.7)),
    _Protocol("telnet", 0.08, _Spread(240.0, 1.9), _Spread(140, 1.7), _Spread(4_500, 1.8)),
    _Protocol("ftp", 0.06, _Spread(45.0, 1.5), _Spread(110, 0.8), _Spread(900, 0.9)),
    _Protocol("finger", 0.04, _Spread(1.0, 1.2), _Spread(8, 0.6), _Spread(220, 1.2)),
)

_STATES = (
    _State("SF", 0.84, True, True, True),  # opened and closed by both
    _State("REJ", 0.05, True, False, False),  # refused
    _State("S0", 0.04, False, False, False),  # never answered
    _State("RSTO", 0.03, True, True, True),  # reset by the originator
    _State("S1", 0.02, False, False, False),  # opened, never seen to close
    _State("S2", 0.01, False, True, False),  # closed by the originator only
    _State("S3", 0.01, False, False, True),  # closed by the responder only
)


def trace(
    rows: int,
    seed: int,
    rate: float = 0.25,
    hosts: int = 2000,
    skew: float = 1.0,
    start: dt.datetime | int = options.START,
) -> pa.Table:
    """Make `rows` connections among `hosts` hosts, about `rate` beginning each second.

    Columns: `ts` (begin), `duration` in seconds, `protocol`, `bytes_sent` and `bytes_received`
    as the originator sees them, `source`, `destination` and `state`. Duration and bytes are NULL
    where a monitor could not have known them, which `state` explains. `skew` is the Zipf
    exponent of the hosts; a busy source is not, as a rule, a busy destination.

    >>> table = trace(rows=1000, seed=7)
    >>> table.schema.names[:5]
    ['ts', 'duration', 'protocol', 'bytes_sent', 'bytes_received']
    >>> unanswered = [row for row in table.to_pylist() if row["state"] == "S0"]
    >>> {row["bytes_sent"] for row in unanswered}
    {None}
    """
    rows = options.whole("rows", rows, least=0)
    seed = options.whole("seed", seed, least=0)
    hosts = options.whole("hosts", hosts, least=2)
    rate = options.positive("rate", rate)
    skew = options.non_negative("skew", skew)
    start_us = options.start_us(start)
    # Twice the expected span: the sum of the random gaps stays below it but for tiny sets.
    draws.check_span(rows, rate, start_us, spare_rows=rows + 100)

    gaps = stream(seed, "trace.ts").standard_exponential(rows)
    ts_us = start_us + np.floor(np.cumsum(gaps) * (SECOND / rate)).astype(np.int64)
    protocol = draws.weighted(stream(seed, "trace.protocol"), rows, [p.share for p in _PROTOCOLS])
    state = draws.weighted(stream(seed, "trace.state"), rows, [s.share for s in _STATES])
    source, destination = _ends(seed, rows, hosts, skew)
    seconds = _heavy(seed, "trace.duration", protocol, [p.seconds for p in _PROTOCOLS])
    seconds = np.minimum(seconds, _LONGEST_SECONDS).round(6)
    sent = _heavy(seed, "trace.bytes_sent", protocol, [p.sent for p in _PROTOCOLS])
    received = _heavy(seed, "trace.bytes_received", protocol, [p.received for p in _PROTOCOLS])

    width = max(4, len(str(hosts - 1)))
    host_names = [f"host-{host:0{width}d}" for host in range(hosts)]
    knows_duration = np.array([s.knows_duration for s in _STATES])[state]
    knows_sent = np.array([s.knows_sent for s in _STATES])[state]
    knows_received = np.array([s.knows_received for s in _STATES])[state]
    return pa.table(
        {
            "ts": draws.timestamps(ts_us),
            "duration": draws.numbers(seconds, missing=~knows_duration),
            "protocol": draws.pick([p.name for p in _PROTOCOLS], protocol),
            "bytes_sent": draws.numbers(_whole_bytes(sent), missing=~knows_sent),
            "bytes_received": draws.numbers(_whole_bytes(received), missing=~knows_received),
            "source": draws.pick(host_names, source),
            "destination": draws.pick(host_names, destination),
            "state": draws.pick([s.name for s in _STATES], state),
        }
    )


def _ends(seed: int, rows: int, hosts: int, skew: float) -> tuple[Ints, Ints]:
    """Draw the two hosts of each connection, never the same one twice."""
    source = draws.zipf(stream(seed, "trace.source"), rows, hosts, skew)
    host_of_rank = stream(seed, "trace.servers").permutation(hosts)
    destination = host_of_rank[
        draws.zipf(stream(seed, "trace.destination"), rows, hosts, skew)
    ].astype(np.int64)
    return source, np.where(source == destination, (destination + 1) % hosts, destination)


def _heavy(seed: int, column: str, kind: Ints, spreads: list[_Spread]) -> Floats:
    """Draw from a lognormal body whose upper 3 % is replaced by a Pareto tail.

    The tail begins at the value where the body stops, so the density has no gap.
    """
    log_median = np.log([s.median for s in spreads])[kind]
    sigma = np.array([s.sigma for s in spreads])[kind]
    score = stream(seed, column).standard_normal(len(kind))
    excess = stream(seed, f"{column}.tail").standard_exponential(len(kind)) / _TAIL_EXPONENT
    tail = score > _TAIL_SCORE
    logarithm = log_median + sigma * np.minimum(score, _TAIL_SCORE) + np.where(tail, excess, 0.0)
    sizes: Floats = np.exp(np.minimum(logarithm, math.log(_LARGEST_BYTES)))
    return sizes


def _whole_bytes(size: Floats) -> Ints:
    return np.rint(size).astype(np.int64)
