"""Two runs of the same requests: differences by hand, intervals that keep their word, what cannot be compared."""

import numpy as np
import pytest
from operating_cases import SERVED, SERVER, TICK_S, gpus, table

import workbench as wb
from workbench.errors import InputError
from workbench.operating import compare


def random_trace(seed, n=2000, rate=0.8):
    rng = np.random.default_rng(seed)
    arrival_s = np.cumsum(rng.exponential(1 / rate, n))
    prompt = np.maximum(1, np.rint(rng.exponential(1.0, n) / TICK_S)).astype(int)
    return table(*zip(arrival_s.tolist(), prompt.tolist(), [1] * n, strict=True))


def served(servers, trace, **options):
    return wb.simulate(
        SERVER.replaced(name=f"{servers} servers"), cluster=gpus(servers), trace=trace, **SERVED | options
    )


def test_differences_by_hand():
    """Services of 2 s at 0 and at 0.5: one server finishes them at 2 and 4, two at 2 and 2.5."""
    trace = table((0.0, 2_000_000, 1), (0.5, 2_000_000, 1))
    found = compare(served(1, trace), served(2, trace), wb.slo(ttft_s=2.5, tbt_s=1))
    rows = {row["measure"]: row for row in found.table.to_dicts()}
    assert rows["e2e_s"]["a"] == pytest.approx(2.75)
    assert rows["e2e_s"]["b"] == pytest.approx(2.0)
    assert rows["e2e_s"]["difference"] == pytest.approx(-0.75)
    assert rows["attainment_request"]["difference"] == pytest.approx(0.5)
    assert rows["e2e_s"]["low"] is None
    assert rows["e2e_s"]["method"] == "too few requests for an interval"
    assert "tpot_s" not in rows  # nobody asked for two tokens
    assert "e2e_s by -0.75" in found.sentence
    assert found.sentence in found._repr_html_()
    assert "attainment_request" in found._repr_html_()
    assert "low, high: too few requests for an interval" in found._repr_html_()


def test_the_interval_of_one_pair_holds_the_known_difference():
    """M/M/1 at 0.8 takes 5 s, M/M/2 takes 1/(1 - 0.4²) s; of eight 95 % intervals fewer than six hold the difference
    once in 170 such tests, and the seeds are fixed."""
    exact, held = 1 / (1 - 0.4**2) - 5, 0
    for seed in range(8):
        trace = random_trace(seed, n=60_000)
        row = compare(served(1, trace), served(2, trace)).table.row(0, named=True)
        assert row["measure"] == "ttft_s"
        assert row["method"] == "Student over 20 batches of consecutive requests"
        held += row["low"] < exact < row["high"]
    assert held >= 6


def test_several_pairs_are_replications():
    traces = [random_trace(seed) for seed in range(6)]
    one, two = ([served(count, trace) for trace in traces] for count in (1, 2))
    row = compare(one, two).table.row(0, named=True)
    assert row["method"] == "Student over 6 pairs of runs"
    assert row["requests"] == 6 * 2000
    differences = [
        (b.requests["first_token_s"] - a.requests["first_token_s"]).mean() for a, b in zip(one, two, strict=True)
    ]
    assert row["difference"] == pytest.approx(np.mean(differences))
    half = 2.5706 * np.std(differences, ddof=1) / 6**0.5  # Student's t of 5 degrees at 97.5 %
    assert row["high"] - row["low"] == pytest.approx(2 * half, rel=1e-4)


def test_pairing_narrows_the_interval():
    """Common random numbers: the interval of the paired difference is narrower than that of unpaired runs."""
    one, other = random_trace(1, n=20_000), random_trace(2, n=20_000)
    paired = compare(served(2, one), served(3, one)).table.row(0, named=True)
    widths = []
    for trace, servers in ((one, 2), (other, 3)):
        waits = (served(servers, trace).requests["first_token_s"] - trace["arrival_s"]).to_numpy()
        widths.append(wb_interval(waits))
    assert paired["high"] - paired["low"] < np.hypot(*widths)


def wb_interval(values):
    from workbench.queueing.statistics import batch_means

    return 2 * batch_means(values, 20).interval.half_width


def test_a_run_compared_with_itself_does_not_differ():
    run = served(1, random_trace(3, n=100))
    for row in compare(run, run).table.to_dicts():
        assert row["difference"] == row["low"] == row["high"] == 0


def test_other_requests_cannot_be_compared():
    one, other = served(1, random_trace(1, n=50)), served(1, random_trace(2, n=50))
    with pytest.raises(InputError, match="served other requests"):
        compare(one, other)
    with pytest.raises(InputError, match="give equally many"):
        compare([one, one], one)
    with pytest.raises(InputError, match="give equally many"):
        compare([], [])
