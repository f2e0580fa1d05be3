"""Jobs token by token: by hand, alone exactly nominal, never more work at a server than time; and the desk itself."""

import chain_cases as cases
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.chains import JobList, TokenTimes, chains_of, chains_with, compose, dispatch_path
from workbench.chains.model.desk import Desk
from workbench.chains.simulated import simulate_steps
from workbench.errors import InputError


def one_server(compute=(0.0, 1.0, 2.0), trip=3.0):
    """One block on one server: a token of a prompt takes 1 s, every further token 2 s, each way 3 s."""
    times = TokenTimes(np.array([[trip, 0.0, trip]]), np.array([compute]))
    fleet = cases.Fleet(memory_bytes=[100], communication_s=[1], compute_s=[1], layers=1, block_bytes=10, cache_bytes=1)
    return chains_of(compose(fleet, 1), times, [1.0, 1.0, 1.0]), times


def test_steps_one_by_one_by_hand():
    """Two jobs of one token in, three out. The first alone: 3-4, then 7-9 and 12-14. The second comes a second later:
    its prompt is there at 4 and takes until 5; its next pass is there at 8, and waits for the first job until 9; done
    at 11, the last one is there at 14 and takes until 16."""
    chains, times = one_server()
    path = simulate_steps(cases.token_jobs([0.0, 1.0], 1, 3), chains, times)
    assert path.finish_s.tolist() == [14.0, 16.0]
    assert simulate_steps(cases.token_jobs([0.0], 1, 3), chains, times).finish_s.tolist() == [14.0]


def test_steps_in_batches_by_hand():
    """Both at 0: prompts add up (3 to 5), then every further token of both takes 2 s: 8 to 10, 13 to 15."""
    chains, times = one_server()
    jobs = cases.token_jobs([0.0, 0.0], 1, 3)
    assert simulate_steps(jobs, chains, times, batched=True).finish_s.tolist() == [15.0, 15.0]
    # one by one: prompts 3-4, 4-5; steps 7-9, 9-11; 12-14, 14-16
    assert simulate_steps(jobs, chains, times).finish_s.tolist() == [14.0, 16.0]


@given(seed=st.integers(0, 2**32 - 1), batched=st.booleans())
def test_alone_a_job_takes_its_nominal_seconds(seed, batched):
    """τc + τp m summed over the chain, as the compiled loop has it, where nobody else is there."""
    rng = np.random.default_rng(seed)
    made = None
    while made is None or not made.chains:
        made = compose(cases.random_fleet(rng, 5, 4), 1)
    times = TokenTimes(rng.uniform(0, 1, (5, 3)), rng.uniform(0.01, 1, (5, 3)))
    work = np.array([[1.0, float(rng.integers(1, 9)), float(rng.integers(0, 5))]])
    chains, jobs = chains_of(made, times, work[0]), JobList(np.zeros(1), work, np.zeros((1, 2)))
    path = simulate_steps(jobs, chains, times, batched=batched)
    assert path.finish_s == pytest.approx(dispatch_path(jobs, chains).finish_s, rel=1e-9)


@given(seed=st.integers(0, 2**32 - 1))
def test_no_server_does_more_than_its_time(seed):
    """Twelve jobs at once: every one takes its nominal seconds at least, and the last is not done before the work of
    the busiest server, which is added up here from where each job went."""
    rng = np.random.default_rng(seed)
    made, times = cases.real_servers()
    times = TokenTimes(times.communication_s * rng.uniform(0.01, 2), times.compute_s)
    jobs = cases.token_jobs(np.zeros(12))
    chains = chains_of(made, times, jobs.work[0])
    path = simulate_steps(jobs, chains, times)
    work, nominal = np.zeros(4), []
    for k in path.place:
        chain = made.chains[k]
        hops = list(zip(chain.servers, chain.blocks, strict=True))
        for server, blocks in hops:
            work[server] += blocks * float(jobs.work[0] @ times.compute_s[server])
        nominal.append(sum(jobs.work[0] @ (times.communication_s[j] + times.compute_s[j] * m) for j, m in hops))
    assert (path.finish_s - path.start_s >= np.array(nominal) - 1e-9).all()
    assert path.finish_s.max() >= work.max()


def test_steps_need_token_times():
    made, times = cases.real_servers()
    with pytest.raises(InputError, match="token times"):
        simulate_steps(cases.token_jobs([0.0]), chains_of(made, times, [1, 8, 7]), TokenTimes(*(np.ones((1, 3)),) * 2))


def test_jobs_of_closed_chains_go_to_the_head_of_the_line():
    """Chains of rate 2, 1.5 and 1 with a slot each, and jobs 0 to 4: 3 and 4 wait. The first chain closes: job 0 stands
    before those, and starts on the next chain that is left, by the numbers that chains have then."""
    started = []
    chains = chains_with([2.0, 1.5, 1.0], [1, 1, 1])
    desk = Desk(chains, "jffc", np.zeros((5, 2)), lambda job, k: started.append((job, k)))
    for job in range(5):
        desk.meet(job)
    desk.close([1, 2], [0])
    assert list(desk.line) == [0, 3, 4]
    assert (desk.inside.tolist(), desk.chains.rates_per_s.tolist()) == ([1, 1], [1.5, 1.0])
    desk.hand_out()
    desk.leave(1)
    assert started == [(0, 0), (1, 1), (2, 2), (0, 1)]


def test_a_chains_own_line_goes_back_too():
    """Jobs 0 and 2 went to the first chain by turns, 1 and 3 to the second; those of the first come back in order."""
    desk = Desk(chains_with([2.0, 1.0], [1, 1]), "round-robin", np.zeros((4, 2)), lambda job, k: None)
    for job in range(4):
        desk.meet(job)
    desk.close([1], [0])
    assert list(desk.line) == [0, 2]
    assert [list(line) for line in desk.lines] == [[3]]
