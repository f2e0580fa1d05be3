"""Weights beside KV on one link: shares by formula and by simulation, and real processes that take turns on it."""

import threading
import time
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InputError, UserError
from workbench.executor.faults import RunFailed, RunStopped
from workbench.executor.instances.ports import Port, paced
from workbench.executor.processes import Pool
from workbench.scaling.model.interference import SharedLink
from workbench.scaling.model.link_race import race_times
from workbench.scaling.real import link_race, race_on_link
from workbench.scaling.simulated.interference import simulate_race

real = [
    pytest.mark.torch,
    pytest.mark.real,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: real runs need it"),
]
INSTANTS = (-0.3, -0.1, 0.05, 0.1, 0.3, 0.7, 1.1, 1.2)
"""Of transfers that take 0.1 s alone each, before, beside and after a load of 1 s."""


@pytest.fixture(scope="module")
def pool():
    with Pool(3) as processes:
        yield processes


def link(same=True, **change):
    given = {"bytes_per_s": 1e9, "weight_bytes": 1e9, "kv_bytes": 1e8, "batches_per_s": 0.0, "same_direction": same}
    return SharedLink(**given | change)


class TestPrediction:
    @given(st.integers(0, 2**32 - 1), st.booleans())
    def test_formula_equals_simulation(self, seed, same):
        random = np.random.default_rng(seed)
        one = link(same, kv_bytes=float(random.choice([0.0, 1e7, 3e8])))
        instants = random.uniform(-1, 3, random.integers(0, 12)).tolist()
        formula, simulated = race_times(one, instants), simulate_race(one, instants)
        assert formula.load_s == pytest.approx(simulated.load_s)
        assert formula.kv_s == pytest.approx(simulated.kv_s, abs=1e-9)

    def test_by_hand(self):
        """Two transfers of 0.1 s beside a load: all three share from 0.2 on, a third each."""
        found = race_times(link(), [0.2, 0.2])
        assert found.kv_s == pytest.approx([0.3, 0.3])
        assert found.load_s == pytest.approx(1.2)
        assert race_times(link(False), [0.2, 0.2]).load_s == pytest.approx(1.0)
        assert race_times(link(False), [0.2, 0.2]).kv_s == pytest.approx([0.2, 0.2])

    def test_what_cannot_be_is_refused(self):
        with pytest.raises(InputError, match="kv_at_s"):
            race_times(link(), [float("nan")])


def test_a_port_carries_one_piece_at_a_time_and_flows_take_turns():
    port, order = Port(), []

    def flow(name, count):
        paced(port, iter([(0.02, lambda due_s: order.append((due_s, name)))] * count), lambda: None)

    begun_s = time.monotonic()
    threads = [threading.Thread(target=flow, args=one) for one in (("weights", 12), ("kv", 4))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    through = sorted(order)
    assert np.diff([due_s for due_s, _ in through]).min() >= 0.02 * (1 - 1e-6)
    assert through[-1][0] - begun_s >= 16 * 0.02 * (1 - 1e-6)
    # Neither flow waits for the whole other one.
    names = [name for _, name in through]
    assert names.index("kv") < 12
    assert names.index("weights") < 4


class TestRace:
    pytestmark = real

    def test_only_the_same_direction_hurts(self, pool):
        same, opposite = (race_on_link(link(one), INSTANTS, pool=pool) for one in (True, False))
        predicted = race_times(link(), INSTANTS)
        # Never faster than the link; the shares of a busy machine may differ a little either way.
        assert opposite.load_s >= 1 - 1e-6
        assert same.load_s >= 0.9 * predicted.load_s
        assert (np.concatenate([same.kv_s, opposite.kv_s]) >= 0.1 * (1 - 1e-6)).all()
        assert same.load_s > 1.2
        assert same.load_s > 1.1 * opposite.load_s
        assert same.kv_s.mean() > opposite.kv_s.mean()
        assert same.scale.theta == pytest.approx(1.5)
        assert same.overhead >= 0
        assert same.label == ("paced" if same.waiting_share > 0.5 else "busy")

    def test_nothing_beside_it(self, pool):
        alone = race_on_link(link(), [], pool=pool)
        assert alone.load_s >= 1 - 1e-6
        assert len(alone.kv_s) == 0

    def test_other_bytes_and_a_stop_end_it(self, pool, monkeypatch):
        gather = link_race.gather

        def spoilt(*arguments):
            reports = gather(*arguments)
            reports[2].reached[0] = reports[2].reached[0]._replace(digest="another")
            return reports

        monkeypatch.setattr(link_race, "gather", spoilt)
        with pytest.raises(RunFailed, match="Transfer 0 arrived with other bytes"):
            race_on_link(link(weight_bytes=1e8), [], pool=pool)
        with pytest.raises(RunStopped):
            race_on_link(link(), INSTANTS, pool=pool, stop=lambda: True)

    def test_a_transfer_too_short_for_this_machine_is_refused(self):
        with pytest.raises(UserError, match="more than 100"):
            race_on_link(link(kv_bytes=1e5), INSTANTS)
