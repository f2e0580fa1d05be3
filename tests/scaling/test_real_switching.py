"""Real processes recompute and move caches, and receive blocks in every way: what arrives is right, never early."""

from importlib.util import find_spec

import pytest

from workbench.errors import InputError, UserError
from workbench.executor.faults import RunStopped
from workbench.executor.processes import Pool
from workbench.executor.transformer_serving.packing import Way
from workbench.scaling.model import Switching, move_s, recompute_s
from workbench.scaling.real.packing import block_times
from workbench.scaling.real.recomputing import resume_elsewhere

real = [
    pytest.mark.torch,
    pytest.mark.real,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: real runs need it"),
]


@pytest.fixture(scope="module")
def pool():
    with Pool(2) as processes:
        yield processes


def switching(nodes=4, **changes):
    """Two seconds of prefill for 1,000 tokens, at least 0.1 s; 0.1 s overhead and 1 MB/s for 1 kB a token."""
    given = {
        "parameters": 1e6, "flops_per_s": 1e9, "least_s": 0.1, "kv_bytes": 1000.0, "nodes": nodes,
        "bytes_per_s": 1e6, "alpha_s": 0.1,
    }  # fmt: skip
    return Switching(**{**given, **changes})


class TestResuming:
    pytestmark = real

    @pytest.mark.parametrize("nodes", [2, 3, 8])
    def test_what_follows_is_right_and_the_cache_is_never_early(self, pool, nodes):
        tokens = [9, 200]
        run = resume_elsewhere(switching(nodes), tokens, pool=pool)
        assert run.times["tokens"].to_list() == tokens
        assert (run.times["recompute_s"].to_numpy() >= recompute_s(switching(nodes), tokens) * (1 - 1e-9)).all()
        assert (run.times["move_s"].to_numpy() >= move_s(switching(nodes), tokens) * (1 - 1e-6)).all()
        assert run.identity["way"].to_list() == ["recompute", "move"] * 2
        assert run.identity["fault"].to_list() == [""] * 4
        assert run.identity["distinct"].min() >= 8
        assert run.identity.filter(way="move")["difference"].to_list() == [0.0, 0.0]

    def test_the_scale_and_the_waiting_are_told(self, pool):
        run = resume_elsewhere(switching(), [20], pool=pool)
        layers, kv_heads, width = 8, 4, 32
        assert run.scale.sigma == pytest.approx(1000 / (layers * 2 * kv_heads * width * 4))
        assert run.scale.theta >= 1
        assert run.label == ("paced" if run.waiting_share > 0.5 else "busy")
        assert run.overhead >= 0

    def test_what_is_too_fast_for_this_machine_is_refused(self, pool):
        with pytest.raises(UserError, match="more than 100"):
            resume_elsewhere(switching(alpha_s=0.0, bytes_per_s=1e12), [20], pool=pool)

    def test_it_stops_on_request(self, pool):
        with pytest.raises(RunStopped):
            resume_elsewhere(switching(), [20], pool=pool, stop=lambda: True)

    @pytest.mark.parametrize(
        ("nodes", "tokens", "words"),
        [(4, [], "at least one"), (4, [0], "tokens"), (4, [1025], "1,024"), (1, [5], "nodes"), (17, [5], "nodes")],
    )
    def test_impossible_switches_are_refused(self, nodes, tokens, words):
        with pytest.raises(InputError, match=words):
            resume_elsewhere(switching(nodes), tokens)


class TestReceiving:
    pytestmark = real

    def test_every_way_receives_everything(self, pool):
        """Whether each message landed where it should the receiver checks itself; blocks need no whole pieces."""
        ways = [
            Way(2, 100_000, size, ahead, direct)
            for size in (100_000, 30_000, 200_000)
            for ahead in (True, False)
            for direct in (True, False)
        ]
        took_s = block_times(ways, 3, pool=pool)
        assert took_s.shape == (3, 12)
        assert (took_s > 0).all()

    def test_it_stops_on_request(self, pool):
        with pytest.raises(RunStopped):
            block_times([Way(64, 1 << 22, 1 << 10)], pool=pool, stop=lambda: True)

    @pytest.mark.parametrize(
        ("ways", "repeats", "words"),
        [([], 1, "at least one way"), ([Way(0, 1, 1)], 1, "blocks"), ([Way(1, 1, 0)], 1, "message_bytes"),
         ([Way(1, 1, 1)], 0, "repeats")],
    )  # fmt: skip
    def test_impossible_ways_are_refused(self, ways, repeats, words):
        with pytest.raises(InputError, match=words):
            block_times(ways, repeats)


def test_a_way_counts_its_messages():
    assert Way(3, 10, 10).messages == 3
    assert Way(3, 10, 4).messages == 9
    assert Way(3, 10, 100).messages == 3
