"""The `nexmark` set: people who open auctions and bid on them.

The streams and distributions are those of the NEXMark benchmark (Tucker et al., "NEXMark: A
Benchmark for Queries over Data Streams"), as its present-day generators fix them. Of every 50
events the first is a person, the next three are auctions and the other 46 are bids.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weft.errors import QueryError
from weft.generate import draws, options
from weft.generate.draws import Column, Ints, stream
from weft.time import MILLISECOND

if TYPE_CHECKING:
    import datetime as dt

EPOCH_EVENTS = 50
AUCTIONS_PER_EPOCH = 3
FIRST_PERSON_ID = 1000
FIRST_AUCTION_ID = 1000
FIRST_CATEGORY_ID = 10
CATEGORIES = 5
IN_FLIGHT_AUCTIONS = 100
ACTIVE_PEOPLE = 1000
# References run up to this many ids ahead of what exists, so that joins meet rows not yet there.
ID_LEAD = 10
# Hot ids change once in this many: all hot bids go to one auction for a hundred auctions.
HOT_SPAN = 100

_HORIZON_EVENTS = IN_FLIGHT_AUCTIONS * EPOCH_EVENTS // AUCTIONS_PER_EPOCH
_SHUFFLE_STEP = 953
_AVERAGE_BYTES = {"person": 200, "auction": 500, "bid": 100}
# The benchmark does not count these towards the size of a bid: they alone would fill it.
_UNCOUNTED = {"channel", "url"}
_HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_COLD_CHANNELS = 10_000
_FIRST_NAMES = [
    "Ada", "Bruno", "Clara", "Dario", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kira",
]  # fmt: skip
_LAST_NAMES = ["Adler", "Brandt", "Costa", "Duran", "Engel", "Fischer", "Grant", "Hansen", "Ito"]
_CITIES = [
    "Tucson", "Fresno", "Oakland", "Sacramento", "Nampa", "Eugene", "Salem", "Spokane",
    "Tacoma", "Laramie",
]  # fmt: skip
_STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]


@dataclass(frozen=True, slots=True)
class _Stream:
    """What all three tables share: the seed, the size, the clock and the hot ratios."""

    rows: int
    seed: int
    rate: float
    start_us: int
    disorder_group: int
    hot_auction_ratio: int
    hot_bidder_ratio: int
    hot_seller_ratio: int
    padding: bool

    def random(self, column: str) -> np.random.Generator:
        return stream(self.seed, f"nexmark.{column}")

    def elapsed_ms(self, position: Ints) -> Ints:
        return draws.steady_us(position, self.rate) // MILLISECOND

    def clock_position(self, event: Ints) -> Ints:
        """Shuffle the clock inside each group of events; the events keep their order."""
        group = self.disorder_group
        return (event // group) * group + (event * _SHUFFLE_STEP) % group

    def ts_us(self, event: Ints) -> Ints:
        return self.start_us + self.elapsed_ms(self.clock_position(event)) * MILLISECOND

    @property
    def people(self) -> int:
        return -(-self.rows // EPOCH_EVENTS)

    @property
    def auctions(self) -> int:
        epochs, rest = divmod(self.rows, EPOCH_EVENTS)
        return epochs * AUCTIONS_PER_EPOCH + min(max(rest - 1, 0), AUCTIONS_PER_EPOCH)


def nexmark(
    rows: int,
    seed: int,
    rate: float = 10_000.0,
    disorder_group: int = 1,
    hot_auction_ratio: int = 2,
    hot_bidder_ratio: int = 4,
    hot_seller_ratio: int = 4,
    padding: bool = True,
    start: dt.datetime | int = options.START,
) -> dict[str, pa.Table]:
    """Make the first `rows` events of a NEXMark stream: tables `person`, `auction` and `bid`.

    Event times (`date_time`) are whole milliseconds, `rate` events a second over all three
    tables. With a `disorder_group` above 1 times are shuffled inside each group of that many
    events. A hot ratio of r sends 1 - 1/r of the rows to the one hot id of the moment. `padding`
    fills the column `extra` up to the benchmark's average row sizes of 200, 500 and 100 bytes.

    References may point a little ahead of the stream, to an id that appears later; at the end of
    the set they are folded onto the last id, so that every reference meets its row.

    >>> tables = nexmark(rows=5000, seed=7)
    >>> [tables[name].num_rows for name in ("person", "auction", "bid")]
    [100, 300, 4600]
    >>> tables["bid"].schema.names
    ['auction', 'bidder', 'price', 'channel', 'url', 'date_time', 'extra']
    >>> hot = sum(id % 100 == 0 for id in tables["bid"]["auction"].to_pylist())
    >>> 0.45 < hot / 4600 < 0.55
    True
    """
    events = _Stream(
        rows=options.whole("rows", rows, least=0),
        seed=options.whole("seed", seed, least=0),
        rate=options.positive("rate", rate),
        start_us=options.start_us(start),
        disorder_group=options.whole("disorder_group", disorder_group, least=1),
        hot_auction_ratio=options.whole("hot_auction_ratio", hot_auction_ratio, least=1),
        hot_bidder_ratio=options.whole("hot_bidder_ratio", hot_bidder_ratio, least=1),
        hot_seller_ratio=options.whole("hot_seller_ratio", hot_seller_ratio, least=1),
        padding=padding,
    )
    if events.disorder_group % _SHUFFLE_STEP == 0:
        raise QueryError(
            f"disorder_group cannot be {disorder_group}: a multiple of {_SHUFFLE_STEP} gives "
            "many events the same time",
            hint=f"use {events.disorder_group + 1}",
        )
    # Auctions expire beyond the last event, by at most twice the time of 100 more auctions.
    spare_rows = disorder_group + 4 * _HORIZON_EVENTS
    draws.check_span(rows, rate, events.start_us, spare_rows)

    event = np.arange(events.rows, dtype=np.int64)
    slot = event % EPOCH_EVENTS
    return {
        "person": _people(events, event[slot == 0]),
        "auction": _auctions(events, event[(slot >= 1) & (slot <= AUCTIONS_PER_EPOCH)]),
        "bid": _bids(events, event[slot > AUCTIONS_PER_EPOCH]),
    }


def _people(events: _Stream, event: Ints) -> pa.Table:
    count = len(event)
    names = [" ".join(pair) for pair in product(_FIRST_NAMES, _LAST_NAMES)]
    columns = {
        "id": draws.numbers(FIRST_PERSON_ID + event // EPOCH_EVENTS),
        "name": _any_of(events, "person.name", names, count),
        "email_address": draws.concat(
            _word(events, "person.mailbox", count, longest=7),
            "@",
            _word(events, "person.domain", count, longest=5),
            ".com",
        ),
        "credit_card": draws.digits(events.random("person.card"), count, groups=4),
        "city": _any_of(events, "person.city", _CITIES, count),
        "state": _any_of(events, "person.state", _STATES, count),
        "date_time": draws.timestamps(events.ts_us(event)),
    }
    return _padded(events, "person", columns)


def _auctions(events: _Stream, event: Ints) -> pa.Table:
    epoch, slot = event // EPOCH_EVENTS, event % EPOCH_EVENTS
    ts_us = events.ts_us(event)
    initial_bid = _prices(events.random("auction.initial_bid"), len(event))
    hot_seller = epoch // HOT_SPAN * HOT_SPAN
    seller = _hot_or_active_person(
        events, "auction.seller", events.hot_seller_ratio, hot_seller, epoch
    )
    category = events.random("auction.category").integers(CATEGORIES, size=len(event))
    columns = {
        "id": draws.numbers(FIRST_AUCTION_ID + AUCTIONS_PER_EPOCH * epoch + slot - 1),
        "item_name": _word(events, "auction.item_name", len(event), longest=20),
        "description": _word(events, "auction.description", len(event), longest=100),
        "initial_bid": draws.numbers(initial_bid),
        "reserve": draws.numbers(
            initial_bid + _prices(events.random("auction.reserve"), len(event))
        ),
        "date_time": draws.timestamps(ts_us),
        "expires": draws.timestamps(ts_us + _lifetimes_ms(events, event) * MILLISECOND),
        "seller": draws.numbers(FIRST_PERSON_ID + seller),
        "category": draws.numbers(FIRST_CATEGORY_ID + category),
    }
    return _padded(events, "auction", columns)


def _bids(events: _Stream, event: Ints) -> pa.Table:
    epoch = event // EPOCH_EVENTS
    last_auction = AUCTIONS_PER_EPOCH * epoch + AUCTIONS_PER_EPOCH - 1
    oldest_auction = np.maximum(last_auction - IN_FLIGHT_AUCTIONS, 0)
    auction = _hot_or(
        events.random("bid.auction.hot"),
        events.hot_auction_ratio,
        last_auction // HOT_SPAN * HOT_SPAN,
        draws.uniform_between(events.random("bid.auction"), oldest_auction, last_auction + ID_LEAD),
    )
    # One beside the hot seller, or the busiest people would mostly bid on their own auctions.
    hot_bidder = epoch // HOT_SPAN * HOT_SPAN + 1
    bidder = _hot_or_active_person(events, "bid.bidder", events.hot_bidder_ratio, hot_bidder, epoch)
    channel = _channels(events, len(event))
    channel_names, urls = _channel_names_and_urls(events)
    columns = {
        "auction": draws.numbers(FIRST_AUCTION_ID + np.minimum(auction, events.auctions - 1)),
        "bidder": draws.numbers(FIRST_PERSON_ID + bidder),
        "price": draws.numbers(_prices(events.random("bid.price"), len(event))),
        "channel": draws.pick(channel_names, channel),
        "url": draws.pick(urls, channel),
        "date_time": draws.timestamps(events.ts_us(event)),
    }
    return _padded(events, "bid", columns)


def _hot_or(random: np.random.Generator, ratio: int, hot: Ints, cold: Ints) -> Ints:
    return np.where(random.random(len(hot)) < 1.0 - 1.0 / ratio, hot, cold)


def _hot_or_active_person(
    events: _Stream, column: str, ratio: int, hot: Ints, last_person: Ints
) -> Ints:
    active = np.minimum(last_person + 1, ACTIVE_PEOPLE)
    cold = draws.uniform_between(
        events.random(column), last_person + 1 - active, last_person + ID_LEAD
    )
    person = _hot_or(events.random(f"{column}.hot"), ratio, hot, cold)
    return np.minimum(person, events.people - 1)


def _prices(random: np.random.Generator, count: int) -> Ints:
    """Cents, log-uniform between 1 and 1,000,000 units."""
    return np.rint(10.0 ** (6.0 * random.random(count)) * 100.0).astype(np.int64)


def _lifetimes_ms(events: _Stream, event: Ints) -> Ints:
    """Uniform up to twice the time in which as many auctions open as are in flight."""
    position = events.clock_position(event)
    horizon_ms = events.elapsed_ms(position + _HORIZON_EVENTS) - events.elapsed_ms(position)
    most_ms = np.maximum(2 * horizon_ms, 1)
    return draws.uniform_between(events.random("auction.expires"), np.ones_like(most_ms), most_ms)


def _channels(events: _Stream, count: int) -> Ints:
    """Positions in the list of channels: half of the rows share the four hot ones."""
    is_hot = events.random("bid.channel.hot").random(count) < 0.5
    hot = events.random("bid.channel").integers(len(_HOT_CHANNELS), size=count)
    cold = events.random("bid.channel.cold").integers(_COLD_CHANNELS, size=count)
    return np.where(is_hot, hot, len(_HOT_CHANNELS) + cold)


def _channel_names_and_urls(events: _Stream) -> tuple[list[str], list[str]]:
    """Name every channel, and give it one address with three random folders."""
    names = [*_HOT_CHANNELS, *(f"channel-{number}" for number in range(_COLD_CHANNELS))]
    queries = ["query=1"] * len(_HOT_CHANNELS) + [
        f"query=1&channel_id={number}" for number in range(_COLD_CHANNELS)
    ]
    lengths = np.full(len(names), 9, dtype=np.int64)
    folders = draws.letters(events.random("bid.url"), lengths).to_pylist()
    urls = [
        f"https://www.nexmark.com/{path[:3]}/{path[3:6]}/{path[6:]}/item.htm?{query}"
        for path, query in zip(folders, queries, strict=True)
    ]
    return names, urls


def _any_of(events: _Stream, column: str, names: list[str], count: int) -> Column:
    return draws.pick(names, events.random(column).integers(len(names), size=count))


def _word(events: _Stream, column: str, count: int, *, longest: int) -> Column:
    lengths = events.random(f"{column}.length").integers(3, longest, size=count, endpoint=True)
    return draws.letters(events.random(column), lengths)


def _padded(events: _Stream, table: str, columns: dict[str, Column]) -> pa.Table:
    """Add `extra`: what each row lacks to its average size, give or take a fifth."""
    taken = np.zeros(len(columns["date_time"]), dtype=np.int64)
    for name in columns.keys() - _UNCOUNTED:
        is_text = pa.types.is_string(columns[name].type)
        taken += draws.byte_lengths(columns[name]) if is_text else 8
    lacking = (
        np.maximum(_AVERAGE_BYTES[table] - taken, 0) if events.padding else np.zeros_like(taken)
    )
    give = np.rint(lacking * 0.2).astype(np.int64)
    lengths = draws.uniform_between(
        events.random(f"{table}.extra.length"), lacking - give, lacking + give
    )
    return pa.table({**columns, "extra": draws.letters(events.random(f"{table}.extra"), lengths)})
