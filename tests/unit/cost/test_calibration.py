"""Calibration: prices that are fitted to probes, checked, and refused from a busy host."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from weft.calibration import Probe, calibrate, fit, learned, save
from weft.calibration.past_runs import remember
from weft.calibration.random_plans import workload_probes
from weft.cost.prices import OPERATIONS, coefficients_of, shipped_coefficients, user_coefficients
from weft.engines.measures import Measures
from weft.errors import DataError, UnsupportedError


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("WEFT_COEFFICIENTS", str(tmp_path))


@pytest.mark.soak
def test_calibration_fits_the_reference_engine() -> None:
    seen: list[str] = []
    found = calibrate("reference", events=300, progress=seen.append)
    assert len(seen) == len(found.probes) + 1 > 30, "and a warm-up"
    assert found.rank_correlation > 0.5
    (fitted,) = found.coefficients
    assert all(v >= 0 for k, v in asdict(fitted).items() if k.endswith(("_ns", "_ms")))
    calm = replace(found, probes=tuple(replace(p, spread=0.0) for p in found.probes))
    assert save(calm) == (user_coefficients("reference"),)
    assert coefficients_of("reference") == fitted


def test_plans_of_random_workloads_are_probes_too() -> None:
    seen: list[str] = []
    probes = list(workload_probes("local", 2, 2_000, seen.append, "wall"))
    assert len(seen) == len(probes) >= 2
    assert len({probe.name for probe in probes}) == len(probes)
    for probe in probes:
        assert probe.ms > 0
        assert probe.work["local", "run"] == 1
        assert probe.work["local", "fold_event"] >= 200


def test_random_workloads_are_not_run_where_nobody_compares_plans() -> None:
    with pytest.raises(UnsupportedError, match="not run to calibrate 'reference'") as refused:
        calibrate("reference", workloads=3)
    assert refused.value.hint == "leave them out, or calibrate spark, spark-stream, local"


def test_a_busy_host_is_refused() -> None:
    probes = tuple(Probe(f"{n}", n * 1.0, {("local", "run"): n * 1.0}, 0.5) for n in range(1, 9))
    found = fit(("local",), probes, "a test")
    with pytest.raises(DataError, match="repeated probes differ by 50%"):
        save(found)
    assert not user_coefficients("local").exists()


def test_runs_of_code_that_was_new_do_not_make_a_host_busy() -> None:
    def probe(n: int, spread: float | None) -> Probe:
        return Probe(f"{n}", n * 1.0, {("local", "run"): n * 1.0}, spread)

    new = [probe(n, None) for n in range(1, 7)]
    assert not fit(("local",), tuple(new), "a test").is_busy
    assert fit(("local",), (*new, probe(7, 0.3)), "a test").spread == 0.3


def test_no_two_prices_have_one_name() -> None:
    assert len(set(OPERATIONS)) == len(OPERATIONS)


def test_prices_are_found_again_and_held_back_probes_say_how_well() -> None:
    """Two strategies share what Catalyst does, so they are fitted together."""
    before = [shipped_coefficients(engine) for engine in ("spark", "spark-columnar")]
    prices = {
        ("spark", "run"): before[0].run_ms * 1.5e6,
        ("spark", "scan_event"): before[0].scan_event_ns * 0.7,
        ("spark-columnar", "ship_row"): before[1].ship_row_ns * 2,
    }
    probes = []
    for at, events in enumerate((1e4, 1e5, 3e5, 1e6, 2e6, 4e6, 5e6, 6e6, 7e6, 8e6)):
        work = {("spark", "run"): 1.0, ("spark", "scan_event"): events}
        if at % 2:
            work["spark-columnar", "ship_row"] = events * (at + 1)
        ms = sum(count * prices[what] for what, count in work.items()) / 1e6
        probes.append(Probe(f"{events:g}", ms, work))
    found = fit(("spark", "spark-columnar"), tuple(probes), "a test")
    native, columnar = found.coefficients
    assert native.run_ms * 1e6 == pytest.approx(prices["spark", "run"], rel=0.02)
    assert native.scan_event_ns == pytest.approx(prices["spark", "scan_event"], rel=0.02)
    assert columnar.ship_row_ns == pytest.approx(prices["spark-columnar", "ship_row"], rel=0.1)
    assert found.q_error(0.9) < 1.05
    assert found.rank_correlation == pytest.approx(1.0)


def test_prices_are_learned_from_runs_that_were_measured(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("WEFT_RUNS", str(tmp_path / "runs.jsonl"))
    with pytest.raises(DataError, match="0 runs on local were measured"):
        learned("local")
    for events in range(100_000, 1_300_000, 100_000):
        work = {("local", "run"): 1.0, ("local", "emit_row"): float(events)}
        seconds = (5e6 + 70.0 * events) / 1e9
        remember(Measures("local", 1, 0, events, None, seconds, None, work=work))
    (found,) = learned("local").coefficients
    assert found.run_ms == pytest.approx(5, rel=0.2)
    assert found.emit_row_ns == pytest.approx(70, rel=0.1)
    assert found.lift_ns == shipped_coefficients("local").lift_ns, "no run told of it"


def test_costs_that_no_probe_tells_apart_stay_near_the_shipped_ones() -> None:
    shipped = shipped_coefficients("spark-joins")
    before = shipped.read_partial_ns + shipped.combine_ns
    probes = []
    for count in (1e8, 2e8, 5e8, 6e8):  # both always as often, and twice as dear as shipped
        work = {("spark-joins", name): count for name in ("read_partial", "combine")}
        probes.append(Probe(f"{count:g}", 2 * count * before / 1e6, work))
    (found,) = fit(("spark-joins",), tuple(probes), "a test").coefficients
    assert found.read_partial_ns + found.combine_ns == pytest.approx(2 * before, rel=0.05)
    assert found.combine_ns == pytest.approx(shipped.combine_ns, rel=0.2), "the cheaper one"
