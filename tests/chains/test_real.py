"""Chains of real processes: the right tokens, every slot counted, jobs in the right order, and servers that die.

Times that hold on a quiet machine are the recorded run's to show; here a loaded machine may be late, never early.
"""

from importlib.util import find_spec

import chain_cases as cases
import numpy as np
import pytest

from workbench.chains import Composition, Placement, TokenTimes, allocate, chains_of, dispatch_path
from workbench.chains.real import check_outputs, serve_chains
from workbench.errors import InputError, UserError
from workbench.executor.faults import Kill, ProcessLost, RunFailed, RunStopped, Stop, Swap
from workbench.executor.processes import Pool
from workbench.executor.transformer import NotIdentical, Shape

SHAPE = Shape(layers=12, hidden=128, heads=8, kv_heads=4, ffn=344, vocabulary=320, longest=64)
MADE, TIMES = cases.real_servers()
JOBS = cases.token_jobs([0.0] * 10, output=10)
real = [
    pytest.mark.torch,
    pytest.mark.real,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: real runs need it"),
]


@pytest.fixture(scope="module")
def pool():
    with Pool(4) as processes:
        yield processes


def serve(pool, jobs=JOBS, made=MADE, times=TIMES, **options):
    return serve_chains(made, times, jobs, shape=SHAPE, theta=1.0, pool=pool, seed=3, **options)


@pytest.fixture(scope="module")
def crowd(pool):
    """Ten jobs at once on chains for nine."""
    return serve(pool)


def right(run, pool):
    """Bit for bit, or within 1e-5 where the machine's library does not keep the bits of rows."""
    identity = check_outputs(run, SHAPE, 3, pool)
    assert identity.difference == 0 or not identity.same_order
    assert identity.gap > 0
    assert [len(output.tokens) for output in run.outputs] == [10] * len(run.outputs)
    return identity


def only(k):
    return lambda inside, slots, rate_per_s, waiting, draw, memory: k


class TestServing:
    pytestmark = real

    @pytest.mark.parametrize("k", [0, 1, 2])
    def test_a_job_alone_takes_its_nominal_seconds(self, pool, k):
        """τc + τp m: never less, and on a machine that does other things too not several times as much."""
        jobs = JOBS.first(1)
        nominal_s = float(dispatch_path(jobs, chains_of(MADE, TIMES, JOBS.work[0]), only(k)).response_s[0])
        chain = MADE.chains[k]
        hops = zip(chain.servers, chain.blocks, strict=True)
        by_hand = sum(JOBS.work[0] @ (TIMES.communication_s[j] + TIMES.compute_s[j] * m) for j, m in hops)
        assert nominal_s == pytest.approx(by_hand)
        run = serve(pool, jobs, policy=only(k))
        assert run.jobs["servers"].to_list() == [" - ".join(f"j{j + 1}" for j in chain.servers)]
        assert 0.99 * nominal_s < run.mean_service_s < 4 * nominal_s

    def test_jobs_in_flight_say_the_right_things(self, crowd, pool):
        assert right(crowd, pool).tokens == 100

    def test_jobs_take_the_fastest_free_chain_in_order(self, crowd):
        """Six, one and two at once (see `real_servers`); the tenth waits for whoever is done first, and follows it."""
        servers = crowd.jobs["servers"].to_list()
        assert servers[:9] == ["j1 - j2"] * 6 + ["j3 - j1 - j2"] + ["j3 - j4 - j2"] * 2
        first = crowd.jobs[:9].sort("finish_s").row(0, named=True)
        tenth = crowd.jobs.row(9, named=True)
        assert tenth["servers"] == first["servers"]
        assert 0 <= tenth["start_s"] - first["finish_s"] < 0.5
        assert (crowd.jobs["start_s"][:9] < first["finish_s"]).all()
        assert set(crowd.jobs["attempts"]) == {1}

    def test_every_slot_is_counted(self, crowd):
        """By hand: j1 6·6 + 2, j2 6·6 + 6 + 2·4, j3 4 + 2·4, j4 2·4 slots; all free at the end; passes by chain."""
        assert crowd.servers["most_slots"].to_list() == [38, 50, 12, 8]
        assert crowd.servers["slots"].to_list() == [38, 51, 26, 26]
        assert crowd.servers["sessions_left"].to_list() == [0] * 4
        through = [sum(f"j{j}" in chain for chain in crowd.jobs["servers"]) for j in (1, 2, 3, 4)]
        assert crowd.servers["passes"].to_list() == [10 * jobs for jobs in through]

    def test_a_server_computes_one_pass_after_the_other(self, crowd):
        """All ten go through j2, which cannot be done before it has spent their time."""
        blocks = {"j1 - j2": 6, "j3 - j1 - j2": 6, "j3 - j4 - j2": 4}
        each_s = float(JOBS.work[0] @ TIMES.compute_s[1])
        least_s = sum(blocks[chain] * each_s for chain in crowd.jobs["servers"])
        assert crowd.jobs["finish_s"].max() > least_s
        times = crowd.tokens.sort("job", "place")
        assert (times.group_by("job").len()["len"] == 10).all()
        assert all((part["time_s"].diff().drop_nulls() > 0).all() for _, part in times.group_by("job"))

    def test_batched_steps_say_the_same_and_keep_servers_less_busy(self, crowd, pool):
        run = serve(pool, batched=True)
        right(run, pool)
        assert run.servers["passes"][1] == crowd.servers["passes"][1] == 100
        wall_s = [one.jobs["finish_s"].max() for one in (run, crowd)]
        held_s = [one.servers["held_share"][1] * wall for one, wall in zip((run, crowd), wall_s, strict=True)]
        assert held_s[0] < 0.8 * held_s[1]

    def test_theta_is_chosen_so_that_a_pass_takes_20_ms(self, pool):
        """Two blocks of 3 ms a token are the shortest pass: at least 20/6."""
        run = serve_chains(MADE, TIMES, cases.token_jobs([0.0], 4, 3), shape=SHAPE, pool=pool)
        assert run.scale.theta >= 20 / 6 - 1e-9
        assert run.waiting_share > 0.5
        assert run.label == "paced"


class TestLosses:
    pytestmark = real

    def test_jobs_of_a_dead_server_finish_on_another_chain(self, pool):
        """j4 is on the chain of jobs 7 and 8; they begin again with what they have said, and say the right things."""
        run = serve(pool, JOBS.first(9), fault=Kill(node=3, at_s=0.5))
        (loss,) = run.losses
        assert (loss.server, loss.kind, loss.jobs) == (3, "died", (7, 8))
        assert loss.detected_s < 1
        assert run.jobs["attempts"].to_list() == [1] * 7 + [2, 2]
        assert not any("j4" in chain for chain in run.jobs["servers"])
        assert run.servers["server"].to_list() == [0, 1, 2]
        assert run.servers["sessions_left"].to_list() == [0] * 3
        assert (run.servers["most_slots"] <= run.servers["slots"]).all()
        right(run, pool)

    def test_a_hung_server_is_lost_too(self, pool):
        run = serve(pool, JOBS.first(9), fault=Stop(node=3, at_s=0.5), heartbeat_s=2.0)
        assert run.losses[0].kind == "hung"
        right(run, pool)

    def test_new_chains_are_allocated_where_none_is_left(self, pool):
        """j1 feeds j2 or j3; all its slots go to the chain through j2, so only allocation anew finds j3."""
        fleet = MADE.fleet.model_copy(update={"memory_bytes": np.array([72, 72, 72, 1])})
        placement = Placement(np.array([0, 6, 6, -1]), np.array([6, 6, 6, 0]), np.full(4, -1), 0, 0.0, False)
        made = allocate(fleet, placement)
        assert [chain.servers for chain in made.chains] == [(0, 1)]
        run = serve(pool, JOBS.first(3), made, fault=Kill(node=1, at_s=0.4))
        assert set(run.jobs["servers"]) == {"j1 - j3"}
        assert run.jobs["attempts"].to_list() == [2, 2, 1]
        right(run, pool)

    def test_jobs_that_nobody_can_finish_are_named(self, pool):
        with pytest.raises(ProcessLost, match=r"node 1 died .* no chain of the other servers hosts all blocks, so"):
            serve(pool, fault=Kill(node=1, at_s=0.3))

    def test_planted_faults_are_found(self, pool):
        """Two blocks that changed places; a session more than a server has slots for; a fault after the end."""
        run = serve(pool, JOBS.first(2), fault=Swap(node=0, block=1, other=4))
        with pytest.raises(NotIdentical):
            check_outputs(run, SHAPE, 3, pool)
        wrong: Composition = MADE._replace(slots=MADE.slots - np.array([0, 20, 0, 0]))
        with pytest.raises(RunFailed, match=r"Server 1 failed with MemoryError: sessions take \d+ cache slots of 31"):
            serve(pool, made=wrong)
        with pytest.raises(UserError, match="over before the fault"):
            serve(pool, JOBS.first(1), fault=Kill(node=0, at_s=30))

    def test_policies_that_leave_jobs_waiting_or_name_no_chain(self, pool):
        with pytest.raises(UserError, match="leaves jobs in the central line"):
            serve(pool, JOBS.first(2), policy=only(-1))
        with pytest.raises(UserError, match="returned no chain"):
            serve(pool, JOBS.first(2), policy=only(7))

    def test_a_run_can_be_stopped(self, pool):
        with pytest.raises(RunStopped):
            serve(pool, stop=lambda: True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": Shape(layers=8)}, "has 8 layers"),
        ({"times": TokenTimes(*(np.ones((2, 3)),) * 2)}, "not token times of these servers"),
        ({"jobs": cases.token_jobs([0.0], 60, 10)}, "at most 64"),
        ({"fault": Kill(node=9, at_s=1)}, "server 9"),
        ({"fault": Swap(node=2, block=1, other=7)}, "blocks 0 to 3"),
    ],
)
def test_what_cannot_be_served(change, message):
    given = {"composition": MADE, "times": TIMES, "jobs": JOBS, "shape": SHAPE} | change
    with pytest.raises(InputError, match=message):
        serve_chains(**given)
