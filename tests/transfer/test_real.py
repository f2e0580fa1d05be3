"""Real processes multicast real bytes: every block arrives where and when the schedule says, nothing wrong survives.

Times that must hold on a quiet machine are printed by tests/benchmarks; here a loaded machine may be late, never early.
"""

import math
import multiprocessing.util
import os
import tempfile
import threading
from importlib.util import find_spec

import numpy as np
import polars as pl
import psutil
import pytest

from workbench.errors import InputError, UnknownName, UserError
from workbench.executor.ceilings import Ceilings
from workbench.executor.faults import BlocksLost, Flip, Kill, ProcessLost, RunFailed, RunStopped, Stop, Swap
from workbench.executor.processes import Pool
from workbench.transfer.policy import check, from_transfers, k_way, make_schedule, steps
from workbench.transfer.real import WrongBytes, run_multicast, run_scaled_multicast
from workbench.transfer.real.planning import block_sizes

STEP_S = 0.025
BLOCK_BYTES = 100_000
real = [
    pytest.mark.torch,
    pytest.mark.real,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: real runs need it"),
]


@pytest.fixture(scope="module")
def pool():
    with Pool(8) as processes:
        yield processes


def multicast(pool, name, nodes, blocks, clock="stamped", **options):
    """A run whose steps last 25 ms."""
    schedule = make_schedule(name, nodes, blocks)
    return run_multicast(schedule, BLOCK_BYTES * blocks, BLOCK_BYTES / STEP_S, clock=clock, pool=pool, **options)


def check_run(run, schedule, message_bytes):
    """What holds for every run that ended well: all transfers of the schedule, each once, bytes kept, hashes equal."""
    rows = run.transfers.select("source", "target", "block").sort(pl.all()).rows()
    planned = zip(schedule.source.tolist(), schedule.target.tolist(), schedule.block.tolist(), strict=True)
    assert rows == sorted(planned)
    assert run.moved_bytes == (schedule.nodes - len(schedule.holders)) * message_bytes
    assert len(set(run.fingerprints)) == 1
    assert all(run.completion_s[node] == 0 for node in schedule.holders)
    assert run.wall_s == max(run.completion_s)
    order = {(s, t, b): step for step, s, t, b in zip(*(column.tolist() for column in schedule[4:]), strict=True)}
    held_s = {(node, block): 0.0 for node in schedule.holders for block in range(schedule.blocks)}
    for start_s, end_s, *transfer in run.transfers.select("start_s", "end_s", "source", "target", "block").rows():
        source, target, block = transfer
        assert 0 <= start_s < end_s
        held_s[target, block] = end_s
        if run.clock != "unpaced":
            # never faster than the model: a block that arrives in step t needs t + 1 steps
            assert end_s >= (order[source, target, block] + 1) * run.step_s * (1 - 1e-6)
    if run.clock == "real":
        for start_s, source, block in run.transfers.select("start_s", "source", "block").rows():
            assert start_s >= held_s[source, block] - 1e-9


class TestMulticast:
    pytestmark = real

    @pytest.mark.parametrize("clock", ["real", "stamped", "unpaced"])
    @pytest.mark.parametrize(
        ("name", "nodes", "blocks"),
        [("chain", 2, 3), ("chain", 4, 5), ("binomial_pipeline", 4, 5), ("binomial_pipeline", 8, 6)],
    )
    def test_every_block_arrives_as_planned(self, pool, clock, name, nodes, blocks):
        run = multicast(pool, name, nodes, blocks, clock)
        check_run(run, make_schedule(name, nodes, blocks), BLOCK_BYTES * blocks)

    @pytest.mark.parametrize("name", ["binomial_pipeline", "faasnet_tree", "multi_chain", "sharded"])
    def test_other_shapes_and_unequal_blocks(self, pool, name):
        nodes = 6
        schedule = make_schedule(name, nodes, 4)
        run = run_multicast(schedule, 10_007, 10_007 / 4 / 0.01, clock="stamped", pool=pool)
        assert run.moved_bytes == (nodes - len(schedule.holders)) * 10_007
        assert len(set(run.fingerprints)) == 1

    def test_several_sources(self, pool):
        schedule = k_way(8, 4, sources=2)
        run = run_multicast(schedule, 4 * BLOCK_BYTES, BLOCK_BYTES / STEP_S, clock="stamped", pool=pool)
        check_run(run, schedule, 4 * BLOCK_BYTES)
        assert run.completion_s[:2] == (0, 0)

    @pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="shared memory between processes needs Linux")
    def test_blocks_through_shared_memory(self, pool):
        schedule = make_schedule("binomial_pipeline", 4, 8)
        run = run_multicast(schedule, 8 * BLOCK_BYTES, clock="unpaced", path="memory", pool=pool)
        check_run(run, schedule, 8 * BLOCK_BYTES)
        assert run.transfers["path"].unique().to_list() == ["memory"]

    def test_the_table_has_the_columns_that_every_backend_uses(self, pool):
        table = multicast(pool, "chain", 2, 2).transfers
        times, ends, marks = ["start_s", "end_s"], ["source", "target"], ["kind", "model", "version", "path"]
        assert table.columns == [*times, *ends, "block", "bytes", *marks]
        assert table["bytes"].to_list() == [BLOCK_BYTES] * 2

    def test_the_seed_makes_the_bytes(self, pool):
        prints = [
            run_multicast(make_schedule("chain", 2, 2), 1000, clock="unpaced", seed=seed, pool=pool).fingerprints[0]
            for seed in (1, 1, 2)
        ]
        assert prints[0] == prints[1] != prints[2]

    def test_a_run_on_processes_of_its_own_leaves_none(self, tmp_path, monkeypatch):
        """Neither processes nor files; the folder for temporary files is this test's own, others run beside it."""
        multiprocessing.util.get_temp_dir()  # made now, so that what is made below is the run's
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        before = {process.pid for process in psutil.Process().children(recursive=True)}
        run_multicast(make_schedule("chain", 2, 2), 1000, clock="unpaced")
        workers = [
            process
            for process in psutil.Process().children(recursive=True)
            if process.pid not in before and "forkserver" not in " ".join(process.cmdline())
        ]
        assert [process for process in workers if "resource_tracker" not in " ".join(process.cmdline())] == []
        assert list(tmp_path.iterdir()) == []

    def test_connections_stay_on_this_machine(self, pool):
        multicast(pool, "binomial_pipeline", 4, 2)  # its group stays open until the next task
        sockets = [entry for pid in pool.pids() for entry in psutil.Process(pid).net_connections(kind="inet")]
        assert sockets
        assert {entry.laddr.ip for entry in sockets} == {"127.0.0.1"}


class TestTime:
    pytestmark = real

    @pytest.mark.parametrize("name", ["chain", "binomial_pipeline"])
    @pytest.mark.parametrize("nodes", [4, 8])
    def test_the_real_clock_keeps_the_models_time(self, pool, nodes, name):
        """Never under (m + c)(alpha + S / mB); how little over it on a quiet machine, tests/benchmarks print."""
        blocks, alpha_s, step_s = 8, 0.005, 0.04
        schedule = make_schedule(name, nodes, blocks)
        run = run_multicast(schedule, BLOCK_BYTES * blocks, BLOCK_BYTES / (step_s - alpha_s), alpha_s, pool=pool)
        assert run.wall_s >= steps(name, nodes, blocks) * step_s * (1 - 1e-6)
        assert run.step_s == pytest.approx(step_s)

    @pytest.mark.parametrize(
        ("name", "count"), [("sequential", 18), ("binomial_tree", 12), ("chain", 8), ("binomial_pipeline", 7)]
    )
    def test_on_the_stamped_clock_only_the_last_wake_up_is_late(self, pool, name, count):
        """Four nodes, six blocks: the steps of each schedule, and nothing of a loaded machine's lateness adds up."""
        run = multicast(pool, name, 4, 6)
        assert run.wall_s >= count * STEP_S * (1 - 1e-6)
        assert run.wall_s - run.lateness_worst_s <= count * STEP_S * (1 + 1e-6)

    def test_a_slow_link_slows_its_chain(self, pool):
        """A link of half the rate in a chain of three: the last of four blocks comes after 2 x 4 + 1 steps."""
        rates = np.full((3, 3), BLOCK_BYTES / STEP_S)
        rates[1, 2] /= 2
        schedule = make_schedule("chain", 3, 4)
        run = run_multicast(schedule, 4 * BLOCK_BYTES, rates, clock="stamped", pool=pool)
        assert run.wall_s >= 9 * STEP_S * (1 - 1e-6)
        assert run.completion_s[1] >= 4 * STEP_S * (1 - 1e-6)
        assert run.wall_s - run.lateness_worst_s <= 9 * STEP_S * (1 + 1e-6)

    def test_a_sender_waits_for_the_receivers_port(self, pool):
        """Nodes 1 and 2 both send to 3 at once: their blocks come one after the other, and 1 goes on only then."""
        rows = [(0, 0, 1, 0), (0, 4, 2, 1), (1, 1, 3, 0), (2, 2, 3, 1), (3, 2, 1, 1), (3, 1, 2, 0)]
        schedule = check(from_transfers("meeting", 5, 2, (0, 4), rows))
        run = run_multicast(schedule, 2 * BLOCK_BYTES, BLOCK_BYTES / STEP_S, clock="stamped", pool=pool)
        starts = {(s, t): start_s for start_s, s, t in run.transfers.select("start_s", "source", "target").rows()}
        assert starts[1, 3] == pytest.approx(STEP_S, rel=1e-6)
        assert starts[2, 3] == pytest.approx(2 * STEP_S, rel=1e-6)
        assert starts[2, 1] == pytest.approx(3 * STEP_S, rel=1e-6)

    def test_paced_runs_say_so(self, pool):
        run = multicast(pool, "chain", 2, 8, "real")
        assert run.step_s == pytest.approx(STEP_S)
        assert run.waiting_share > 0.5
        assert run.label == "paced"
        assert 0 <= run.lateness_mean_s <= run.lateness_worst_s
        assert run.overhead == run.lateness_mean_s / run.step_s

    def test_an_unpaced_run_has_no_deadlines(self, pool):
        run = multicast(pool, "chain", 2, 2, "unpaced")
        assert math.isnan(run.lateness_mean_s)
        assert math.isnan(run.overhead)

    def test_a_scale_model_tells_full_size_seconds(self, pool):
        """One gigabyte in four blocks at 5 GB/s: steps of 50 ms, five times too fast for 2.5 GB/s."""
        machine = Ceilings(
            processes=2,
            block_bytes=1 << 20,
            raw_pair_bytes_per_s=3e9,
            gloo_pair_bytes_per_s=2.5e9,
            sum_bytes_per_s=2.5e9,
            copy_bytes_per_s=1e10,
            lateness_s=0.001,
        )
        schedule = make_schedule("chain", 2, 4)
        run = run_scaled_multicast(schedule, 1e9, 5e9, clock="stamped", ceilings=machine, pool=pool)
        assert run.scale.sigma >= 5
        assert run.message_bytes * run.scale.sigma == pytest.approx(1e9, rel=1e-3)
        assert run.step_s == pytest.approx(0.05 * run.scale.theta, rel=1e-3)
        late_s = run.lateness_worst_s / run.scale.theta
        assert run.full_size_s - late_s <= 0.2 * (1 + 1e-3)
        assert run.full_size_s >= 0.2 * (1 - 1e-3)


class TestFaults:
    pytestmark = real
    long = make_schedule("chain", 2, 200)

    @pytest.mark.parametrize("name", ["chain", "binomial_pipeline"])
    def test_a_node_dies_and_the_run_ends_in_one_error(self, pool, name):
        with pytest.raises(ProcessLost, match=r"node 2 died .* on_fault='replan'") as caught:
            multicast(pool, name, 4, 12, fault=Kill(node=2, at_s=0.1))
        assert caught.value.detected_s > 0  # the 0.1 s of a quiet machine are in the benchmark
        assert multicast(pool, name, 4, 2).recovery is None  # the pool is whole again

    @pytest.mark.parametrize(("name", "nodes"), [("chain", 4), ("binomial_pipeline", 8)])
    def test_a_node_dies_and_the_others_complete_by_another_path(self, pool, name, nodes):
        blocks = 12
        run = multicast(pool, name, nodes, blocks, "real", fault=Kill(node=2, at_s=0.12), on_fault="replan")
        assert (run.recovery.node, run.recovery.kind) == (2, "died")
        assert 0.12 <= run.recovery.noticed_s <= run.recovery.resumed_s <= run.wall_s
        assert math.isnan(run.completion_s[2])
        assert run.fingerprints[2] == ""
        survivors = {print_ for node, print_ in enumerate(run.fingerprints) if node != 2}
        assert len(survivors) == 1
        # blocks that survivors had are not moved again: each of them received each block once
        arrived = run.transfers.select("target", "block")
        assert len(arrived) == arrived.n_unique() == (nodes - 2) * blocks
        late = run.transfers.filter(pl.col("start_s") >= run.recovery.resumed_s)
        assert len(late) == run.recovery.blocks_moved
        assert 2 not in late["source"].to_list()

    def test_a_hung_node_is_found_by_its_silence(self, pool):
        stop = Stop(node=1, at_s=0.1)
        run = multicast(pool, "chain", 4, 10, fault=stop, on_fault="replan", heartbeat_s=0.6)
        assert run.recovery.kind == "hung"
        assert run.recovery.detected_s >= 0.3
        assert len({run.fingerprints[node] for node in (0, 2, 3)}) == 1

    def test_the_source_dies_with_the_only_copy(self, pool):
        with pytest.raises(BlocksLost, match=r"only copy of blocks? .* load") as caught:
            multicast(pool, "chain", 3, 12, fault=Kill(node=0, at_s=0.1), on_fault="replan")
        assert 0 < len(caught.value.blocks) < 12
        assert 11 in caught.value.blocks

    def test_the_source_dies_when_all_blocks_have_left_it(self, pool):
        """The source of a chain of eight is done after 2 of 8 steps."""
        run = multicast(pool, "chain", 8, 2, fault=Kill(node=0, at_s=4.5 * STEP_S), on_fault="replan")
        assert run.recovery.node == 0
        assert len(set(run.fingerprints[1:])) == 1

    def test_a_fault_after_the_end_is_said(self, pool):
        with pytest.raises(UserError, match="over before the fault at 60 s"):
            multicast(pool, "chain", 2, 2, fault=Kill(node=1, at_s=60))

    @pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="shared memory between processes needs Linux")
    def test_a_node_dies_and_the_others_fetch_from_memory(self, pool):
        options = {"clock": "unpaced", "path": "memory", "fault": Kill(node=1, at_s=0.0), "on_fault": "replan"}
        run = run_multicast(make_schedule("chain", 3, 32), 32 * 4_000_000, pool=pool, **options)
        assert run.recovery.kind == "died"
        assert run.fingerprints[0] == run.fingerprints[2] != ""

    def test_one_flipped_byte_is_caught_where_it_went(self, pool):
        with pytest.raises(WrongBytes, match="Node 1 holds wrong bytes in block 2") as caught:
            multicast(pool, "chain", 4, 4, fault=Flip(node=1, block=2))
        assert caught.value.wrong == [(1, 2), (2, 2), (3, 2)]

    def test_swapped_blocks_are_caught(self, pool):
        """Node 2 is the last of its chain: both blocks are wrong there and nowhere else."""
        with pytest.raises(WrongBytes) as caught:
            multicast(pool, "chain", 3, 4, fault=Swap(node=2, block=1, other=3))
        assert caught.value.wrong == [(2, 1), (2, 3)]

    def test_a_run_is_stopped_on_request(self, pool):
        """A chain that would take 50 s: the processes of the run end, and the pool starts others for the next."""
        wanted = threading.Event()
        timer = threading.Timer(0.5, wanted.set)
        timer.start()
        with pytest.raises(RunStopped, match="stopped before it was finished"):
            run_multicast(self.long, 200_000, 4000.0, pool=pool, stop=wanted.is_set)
        timer.join()
        assert len(set(multicast(pool, "chain", 2, 2, stop=lambda: False).fingerprints)) == 1

    def test_whoever_is_asked_may_end_the_run_with_an_error_of_their_own(self, pool):
        def stop():
            raise KeyError("enough")

        with pytest.raises(KeyError, match="enough"):
            run_multicast(self.long, 200_000, 4000.0, pool=pool, stop=stop)
        with pytest.raises(KeyError, match="enough"):
            run_scaled_multicast(make_schedule("chain", 2, 4), 1e9, 5e9, pool=pool, stop=stop)

    def test_time_runs_out_in_a_sentence(self, pool):
        with pytest.raises(RunFailed, match="longer than the 2 s it may"):
            multicast(pool, "chain", 2, 200, timeout_s=2.0)  # 5 s long; time enough to meet on a busy machine


class TestRefusals:
    """What is asked for wrongly is refused before any process starts."""

    chain = make_schedule("chain", 3, 4)

    @pytest.mark.parametrize(
        ("options", "error", "words"),
        [
            ({}, UserError, "give bytes_per_s"),
            ({"bytes_per_s": 0.0}, InputError, "bytes_per_s.*above 0"),
            ({"bytes_per_s": np.nan}, InputError, "bytes_per_s.*above 0"),
            ({"bytes_per_s": np.ones((2, 2))}, InputError, r"shape \(2, 2\).*3 x 3"),
            ({"bytes_per_s": 1e6, "alpha_s": -1.0}, InputError, "alpha_s"),
            ({"bytes_per_s": 1e6, "clock": "sundial"}, UnknownName, "sundial"),
            ({"bytes_per_s": 1e6, "path": "pigeon"}, UnknownName, "pigeon"),
            ({"bytes_per_s": 1e6, "path": "memory"}, UserError, "clock='unpaced'"),
            ({"bytes_per_s": 1e6, "on_fault": "ignore"}, UnknownName, "ignore"),
            ({"bytes_per_s": 1e6, "seed": -1}, InputError, "seed"),
            ({"bytes_per_s": 1e6, "seed": "a"}, InputError, "seed"),
            ({"bytes_per_s": "fast"}, InputError, "bytes_per_s"),
            ({"bytes_per_s": 1e6, "alpha_s": np.nan}, InputError, "alpha_s"),
            ({"bytes_per_s": 1e6, "message_bytes": 4000.5}, InputError, "message_bytes"),
            ({"bytes_per_s": 1e6, "message_bytes": 10**400}, InputError, "message_bytes"),
            ({"bytes_per_s": 1e6, "timeout_s": 0}, InputError, "timeout_s"),
            ({"bytes_per_s": 1e6, "heartbeat_s": -1}, InputError, "heartbeat_s"),
            ({"bytes_per_s": 1e6, "message_bytes": 3}, InputError, "message_bytes.*at least one byte a block"),
            ({"bytes_per_s": 1e6, "message_bytes": 10**15}, InputError, "message_bytes.*free memory"),
            ({"bytes_per_s": 1e6, "fault": Kill(node=3, at_s=0)}, InputError, "fault.node.*one of the 3 nodes"),
            ({"bytes_per_s": 1e6, "fault": Flip(node=0, block=1)}, InputError, "block that node 0 receives"),
            ({"bytes_per_s": 1e6, "fault": Swap(node=1, block=1, other=9)}, InputError, "fault.block.*9"),
        ],
    )
    def test_it_says_what_to_change(self, options, error, words):
        with pytest.raises(error, match=words):
            run_multicast(self.chain, **{"message_bytes": 4000, **options})

    def test_an_invalid_schedule_is_refused(self):
        early = self.chain._replace(step=self.chain.step * 0)
        with pytest.raises(InputError, match="step 0"):
            run_multicast(early, 4000, 1e6)

    def test_a_scale_model_needs_a_size(self):
        with pytest.raises(InputError, match="message_bytes"):
            run_scaled_multicast(self.chain, 0, 1e9)
        with pytest.raises(InputError, match="alpha_s"):
            run_scaled_multicast(self.chain, 1e9, 1e9, -1.0)


@pytest.mark.parametrize(("message_bytes", "blocks"), [(10, 3), (64, 64), (1_000_003, 17)])
def test_blocks_differ_by_one_byte_at_most(message_bytes, blocks):
    sizes = block_sizes(message_bytes, blocks)
    assert sum(sizes) == message_bytes
    assert len(sizes) == blocks
    assert max(sizes) - min(sizes) <= 1
