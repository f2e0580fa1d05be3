"""Set up as a textbook queue, the engine waits as the textbook says: closed forms lie in intervals from replications.

Intervals are Student's over independent replications at 99.9 %, so that the three of them fail by chance less than once
in 300 seeds; the seeds here are fixed. Where steps make time coarse, the coarseness is bounded and added.
"""

import numpy as np
import pytest
from serving_cases import cluster, place

from workbench.queueing import (
    Customers,
    Exponential,
    Hyperexponential,
    batched_service,
    draw_customers,
    first_come_path,
    mmc,
    processor_sharing,
    processor_sharing_path,
)
from workbench.queueing.statistics import student_interval
from workbench.serving.model import Requests, run_compiled
from workbench.serving.policy import FIRST_FREE

MUCH = 2**31 - 1
ROOM = {"budget": MUCH, "chunk": MUCH, "block": 2**20, "blocks": 2**30, "reserve": 1}
REPLICATIONS = 20
WARM_UP = 2000


def serving(arrival_s, prompt, output, places, route=0):
    n = arrival_s.size
    requests = Requests(
        arrival_s - arrival_s[0], np.asarray(prompt), np.asarray(output), np.zeros(n, int), np.zeros((n, 2))
    )
    return run_compiled(cluster([], places, route=route)._replace(requests=requests))


def test_one_slot_and_a_central_queue_are_servers_in_parallel():
    """Prompts of a microsecond a token and one output: services as drawn, rounded to microseconds, on three servers.

    The same customers wait as long as in the recursion of Kiefer and Wolfowitz, and on average as Erlang says.
    """
    tick_s = 1e-6
    form = ((1e-12, tick_s, 0.0, 0.0, 0.0), (0.0,) * 5)
    places = [place(slots=1, limit=1, form=form, **ROOM)] * 3
    means = []
    for seed in range(REPLICATIONS):
        drawn = draw_customers(Exponential(mean_s=1 / 2.4), Exponential(mean_s=1.0), 20_000, seed=seed)
        ticks = np.maximum(1, np.rint(drawn.service_s / tick_s)).astype(np.int64)
        out = serving(drawn.arrival_s, ticks, np.ones_like(ticks), places, FIRST_FREE)
        waits = first_come_path(Customers(drawn.arrival_s, ticks * tick_s), 3).wait_s
        np.testing.assert_allclose(out.wait_s, waits, rtol=0, atol=1e-6)
        means.append(out.wait_s[WARM_UP:].mean())
    assert student_interval(means, 0.999).holds(mmc(2.4, 1.0, 3).mean_wait_s)


def test_steps_in_proportion_to_the_batch_share_the_processor():
    """A step of e x batch gives each request one token: processor sharing by quanta of e, here of very uneven jobs.

    A request takes e times its output alone. Against fluid sharing, a request waits for the end of the step in which
    it comes and at most shares its last step: fewer than two steps, of e x the mean batch seen.
    """
    quantum_s, rate = 0.004, 0.7
    places = [place(slots=MUCH, form=((0.0, 0.0, 0.0, 0.0, quantum_s), (0.0,) * 5), **ROOM)]
    exact = processor_sharing(rate, 1.0)
    means, fluid = [], []
    for seed in range(REPLICATIONS):
        drawn = draw_customers(Exponential(mean_s=1 / rate), Hyperexponential(mean_s=1.0, scv=4.0), 20_000, seed=seed)
        output = np.maximum(1, np.rint(drawn.service_s / quantum_s)).astype(np.int64)
        out = serving(drawn.arrival_s, np.ones_like(output), output, places)
        responses = out.finish_s - (drawn.arrival_s - drawn.arrival_s[0])
        means.append(responses[WARM_UP:].mean())
        same = processor_sharing_path(Customers(drawn.arrival_s, output * quantum_s)).response_s
        fluid.append((responses - same)[WARM_UP:].mean())
    coarse = 2 * quantum_s * (exact.mean_in_system + 1)
    assert np.abs(fluid).max() < coarse
    interval = student_interval(means, 0.999)
    assert interval.low - coarse <= exact.mean_response_s <= interval.high + coarse


@pytest.mark.parametrize("rate", [6.0, 10.0])
def test_decoding_in_batches_is_the_birth_death_chain(rate):
    """Steps of 20 ms + 0.5 ms a request, 100 tokens on average, 64 at once: the chain of `batched_service`.

    The chain lets requests come and go at any time; here they wait for the end of the step that they come in, at most
    one step of a full batch, and the geometric number of tokens has the memoryless ends of the chain's exponential.
    """
    fixed_s, each_s, steps, batch = 0.02, 0.0005, 100, 64
    form = ((fixed_s, 0.0, 0.0, 0.0, each_s), (0.0,) * 5)
    exact = batched_service(rate, fixed_s, each_s, steps, batch)
    means = []
    for seed in range(REPLICATIONS):
        rng = np.random.default_rng(seed)
        arrival_s = np.cumsum(rng.exponential(1 / rate, 30_000))
        output = rng.geometric(1 / steps, arrival_s.size)
        out = serving(arrival_s, np.ones_like(output), output, [place(slots=batch, form=form, **ROOM)])
        means.append((out.finish_s - (arrival_s - arrival_s[0]))[WARM_UP:].mean())
    interval, step_s = student_interval(means, 0.999), fixed_s + each_s * batch
    assert interval.low - step_s <= exact.mean_response_s <= interval.high + step_s
    assert interval.relative < 0.1
