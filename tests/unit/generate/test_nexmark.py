"""The `nexmark` set: proportions, ids, hot ratios, prices, expiries, channels, references."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import QueryError
from weft.generate import nexmark
from weft.time import MILLISECOND, SECOND

ROWS = 100_000
HOT_CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return nexmark(ROWS, 7)


def ints(table: pa.Table, name: str) -> np.ndarray:
    return table[name].cast(pa.int64()).to_numpy()


def bid_epochs(tables: dict[str, pa.Table]) -> np.ndarray:
    return np.arange(tables["bid"].num_rows) // 46


def test_proportions_are_1_3_46(tables):
    assert {name: table.num_rows for name, table in tables.items()} == {
        "person": 2000,
        "auction": 6000,
        "bid": 92_000,
    }
    for table in tables.values():
        table.validate(full=True)


def test_ids_count_up_from_a_thousand(tables):
    assert ints(tables["person"], "id").tolist() == list(range(1000, 3000))
    assert ints(tables["auction"], "id").tolist() == list(range(1000, 7000))


def test_times_are_steady_whole_milliseconds(tables):
    ts = np.sort(np.concatenate([ints(table, "date_time") for table in tables.values()]))
    assert not (ts % MILLISECOND).any()
    assert np.bincount((ts - ts[0]) // SECOND).tolist() == [10_000] * 10
    assert (np.diff(ints(tables["bid"], "date_time")) >= 0).all()


def test_disorder_stays_inside_its_group():
    tables = nexmark(5000, 7, rate=1000.0, disorder_group=100)
    ts = ints(tables["bid"], "date_time")
    lag = np.maximum.accumulate(ts) - ts
    assert 0 < lag.max() < 100 * MILLISECOND
    in_order = nexmark(5000, 7, rate=1000.0)
    every = [np.concatenate([ints(t, "date_time") for t in x.values()]) for x in (tables, in_order)]
    assert np.sort(every[0]).tolist() == np.sort(every[1]).tolist()


def test_half_the_bids_go_to_the_hot_auction(tables):
    last_auction = 3 * bid_epochs(tables) + 2
    auction = ints(tables["bid"], "auction") - 1000
    is_hot = auction == last_auction // 100 * 100
    # One in about 111 of the cold half meets the hot auction by chance.
    assert is_hot.mean() == pytest.approx(0.5 + 0.5 / 111, abs=0.01)
    cold = (auction - last_auction)[~is_hot & (last_auction > 100) & (last_auction < 5980)]
    assert cold.min() == -100
    assert cold.max() == 10
    assert cold.mean() == pytest.approx(-45, abs=1)


def test_three_quarters_of_the_bids_come_from_the_hot_bidder(tables):
    last_person = bid_epochs(tables)
    bidder = ints(tables["bid"], "bidder") - 1000
    is_hot = bidder == last_person // 100 * 100 + 1
    assert is_hot[last_person > 200].mean() == pytest.approx(0.75, abs=0.01)
    behind = (last_person - bidder)[~is_hot & (last_person >= 1000) & (last_person < 1980)]
    assert behind.min() == -10
    assert behind.max() == 999


def test_three_quarters_of_the_auctions_have_the_hot_seller(tables):
    last_person = np.arange(tables["auction"].num_rows) // 3
    is_hot = ints(tables["auction"], "seller") - 1000 == last_person // 100 * 100
    assert is_hot[last_person > 200].mean() == pytest.approx(0.75, abs=0.02)


def test_hot_ratio_one_has_nothing_hot():
    tables = nexmark(ROWS, 7, hot_auction_ratio=1)
    is_hot = ints(tables["bid"], "auction") - 1000 == (3 * bid_epochs(tables) + 2) // 100 * 100
    assert is_hot.mean() < 0.02


@settings(deadline=None, max_examples=60)
@given(rows=st.integers(0, 400), seed=st.integers(0, 1000), padding=st.booleans())
def test_every_reference_meets_its_row(rows, seed, padding):
    tables = nexmark(rows, seed, padding=padding)
    assert sum(table.num_rows for table in tables.values()) == rows
    people = set(tables["person"]["id"].to_pylist())
    auctions = set(tables["auction"]["id"].to_pylist())
    assert set(tables["auction"]["seller"].to_pylist()) <= people
    assert set(tables["bid"]["bidder"].to_pylist()) <= people
    assert set(tables["bid"]["auction"].to_pylist()) <= auctions


def test_prices_are_log_uniform(tables):
    price = ints(tables["bid"], "price")
    assert price.min() >= 100
    assert price.max() <= 100_000_000
    decades = np.bincount(np.floor(np.log10(price)).astype(int), minlength=8)[2:8] / len(price)
    assert decades == pytest.approx(np.full(6, 1 / 6), abs=0.01)


def test_reserve_is_at_least_a_price_above_the_initial_bid(tables):
    auction = tables["auction"]
    gap = ints(auction, "reserve") - ints(auction, "initial_bid")
    assert gap.min() >= 100
    assert np.median(gap) == pytest.approx(100_000, rel=0.2)


def test_auctions_live_up_to_twice_the_time_of_a_hundred_auctions(tables):
    auction = tables["auction"]
    lifetime = (ints(auction, "expires") - ints(auction, "date_time")) // MILLISECOND
    # 1666 events at 10,000 a second are 166 ms, or 167 across a boundary.
    assert lifetime.min() == 1
    assert 325 <= lifetime.max() <= 335
    assert lifetime.mean() == pytest.approx(167, abs=4)


def test_categories_are_uniform(tables):
    counts = np.bincount(ints(tables["auction"], "category") - 10) / 6000
    assert counts == pytest.approx(np.full(5, 0.2), abs=0.02)


def test_half_the_bids_come_through_four_hot_channels(tables):
    channels = tables["bid"]["channel"]
    is_hot = pc.is_in(channels, pa.array(HOT_CHANNELS))
    assert pc.mean(is_hot).as_py() == pytest.approx(0.5, abs=0.01)
    hot_counts = pc.value_counts(channels.filter(is_hot)).field("counts").to_numpy()
    assert hot_counts / hot_counts.sum() == pytest.approx(np.full(4, 0.25), abs=0.01)
    cold = pc.utf8_slice_codeunits(channels.filter(pc.invert(is_hot)), 8).cast(pa.int64())
    assert (pc.min(cold).as_py(), pc.max(cold).as_py()) == (0, 9999)


def test_a_channel_has_one_url(tables):
    pairs = tables["bid"].group_by(["channel", "url"]).aggregate([])
    assert pairs.num_rows == pc.count_distinct(tables["bid"]["channel"]).as_py()
    assert pc.all(pc.match_substring_regex(pairs["url"], r"^https://(\S+/){4}item\.htm\?")).as_py()


def test_people_have_names_places_and_cards(tables):
    person = tables["person"]
    assert pc.count_distinct(person["name"]).as_py() == 11 * 9
    assert pc.count_distinct(person["city"]).as_py() == 10
    assert pc.count_distinct(person["state"]).as_py() == 6
    assert pc.all(pc.match_substring_regex(person["credit_card"], r"^(\d{4} ){3}\d{4}$")).as_py()
    mails = pc.match_substring_regex(person["email_address"], r"^[a-z]{3,7}@[a-z]{3,5}\.com$")
    assert pc.all(mails).as_py()


def test_padding_brings_rows_to_their_average_size(tables):
    bid_extra = pc.binary_length(tables["bid"]["extra"]).to_numpy()
    assert bid_extra.mean() == pytest.approx(100 - 32, abs=0.5)
    assert (bid_extra.min(), bid_extra.max()) == (54, 82)
    auction = tables["auction"]
    sizes = 56 + sum(
        pc.binary_length(auction[name]).to_numpy() for name in ("item_name", "description", "extra")
    )
    assert sizes.mean() == pytest.approx(500, rel=0.01)
    unpadded = nexmark(1000, 7, padding=False)
    assert {set(t["extra"].to_pylist()) == {""} for t in unpadded.values()} == {True}


def test_a_group_that_would_repeat_times_is_refused():
    with pytest.raises(QueryError, match="disorder_group cannot be 1906") as refused:
        nexmark(10, 7, disorder_group=1906)
    assert refused.value.hint == "use 1907"
