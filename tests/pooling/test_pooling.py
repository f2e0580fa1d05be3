"""Pools from profiles: variants, capacities, places, switch times, workloads; and the tables of a run."""

import math

import numpy as np
import polars as pl
import pytest

from workbench.errors import InputError, UnknownName, UserError
from workbench.pooling import (
    ByPlan,
    ByRate,
    InSeconds,
    PoolModel,
    lower,
    market_models,
    market_trace,
    muxserve_places,
    pool_model,
    pooled,
    pooling_on,
)
from workbench.pooling.simulated import simulate
from workbench.profiles import cluster, slo
from workbench.transfer.model import Hockney

ONE = PoolModel(
    name="one", weight_bytes=1e9, kv_bytes_per_token=1e5, prefill=(0.0, 1e-3, 0.0, 1e-6), decode=(0.01, 0.0, 0.0)
)
TABLE = pl.DataFrame(
    {
        "request_id": [7, 8, 9],
        "model": ["a", "b", "a"],
        "arrival_s": [100.0, 100.0, 100.5],
        "prompt_tokens": [100, 100, 100],
        "output_tokens": [50, 1, 2],
    }
)


@pytest.mark.parametrize(
    ("variant", "load_s", "assumed_s"),
    [
        # Notes §2.5: 26 GB at 40 GB/s; the artifact assumes 0.15 of 64 GiB/s for its 12.2 x 2^31 bytes; 16 GB/s.
        ("paper", 26.03172864e9 / 40e9, 26.03172864e9 / 40e9),
        ("artifact", 26.199300504e9 / 40e9, 2.54),
        ("simulator", 1.625, 1.625),
    ],
)
def test_switch_times_of_13b(variant, load_s, assumed_s):
    lowered = lower(pooling_on(variant=variant), market_models(10, variant=variant), market_trace(10, 0.1, 60.0))
    load = lowered.models.weight_bytes / lowered.models.load_bytes_per_s
    assert load[9] == pytest.approx(load_s, rel=1e-6)
    assert lowered.models.assumed_s[9] == pytest.approx(assumed_s, rel=2e-3)


@pytest.mark.parametrize("given", [{"count": 0}, {"count": "3"}, {"variant": "papers"}, {"variant": None}])
def test_models_of_no_such_market(given):
    with pytest.raises(UserError, match=f"{next(iter(given))}"):
        market_models(**{"count": 3} | given)


def test_the_simulators_memory():
    """0.8 x (80 - 14) GB for Qwen2.5-7B, whose hidden size of 3,584 in 28 layers takes 401,408 bytes a token; 500,000
    bytes a token on the way."""
    made = pool_model("qwen2.5-7b", "h800-80gb-sxm", variant=_facts().variants["simulator"])
    assert made.kv_bytes / made.kv_bytes_per_token == pytest.approx(0.8 * 66e9 / 401_408)
    assert made.kv_bytes_per_token == 500_000
    assert made.decode[0] == pytest.approx(9.15e-3)  # H100


def _facts():
    from workbench.pooling.model.facts import facts

    return facts()


def test_capacity_leaves_room_for_the_largest_prefetch_that_is_allowed():
    """60 GB less 26.0 GB of Llama-2-13B less 17.7 GB of Yi-1.5-9B in blocks of 13.1 MB: 1,246 (notes §2.6: another 13B
    would leave fewer than 1,024)."""
    lowered = lower(pooling_on(), market_models(10), market_trace(10, 0.1, 60.0))
    assert lowered.models.capacity[9] == int((60e9 - 26.03172864e9 - 17.658814464e9) // 13_107_200)
    assert lowered.models.after[9].tolist() == [1] * 8 + [0] * 2
    off = lower(pooling_on(prefetch="off"), market_models(10), market_trace(10, 0.1, 60.0))
    assert off.models.capacity[9] == int((60e9 - 26.03172864e9) // 13_107_200)


def test_six_and_ten_instances_on_two_nodes():
    pool = lower(pooling_on(), market_models(4), market_trace(4, 0.1, 60.0)).pool
    assert pool.node.tolist() == [0] * 8 + [1] * 8
    assert pool.decodes.tolist() == ([0] * 3 + [1] * 5) * 2


def test_muxserves_memory_rule():
    """Notes §6: two 7B of 14 GB a GPU, one 13B of 26 GB; 16 GPUs hold 32 of 7B, and of the artifact's own mix on 8
    GPUs, every fifth a 13B, not all 16: they fit only once all are 7B, and 18 of those do not."""
    seven = np.full(40, 14e9)
    assert (muxserve_places(seven, 16) >= 0).sum() == 32
    assert (muxserve_places(seven[:18], 8) >= 0).sum() == 16
    assert (muxserve_places(np.full(4, 26e9), 3) >= 0).sum() == 3
    mixed = np.where(np.arange(16) % 5 == 4, 26e9, 14e9)
    assert (muxserve_places(mixed, 8) >= 0).sum() < 16


@pytest.mark.parametrize(
    ("switch", "seconds"),
    [
        (InSeconds(seconds=0.7), 0.7),
        (ByRate(bytes_per_s=40e9), 0.65),
        # 13 hops of 2 GB at 1 GB/s along a chain of one: 26 s, and the last block on to the GPU at 2 GB/s.
        (ByPlan(schedule="chain", hosts=1, blocks=13, cost=Hockney(bytes_per_s=1e9), bytes_per_s=2e9), 27.0),
        # A GPU slower than the network: the first block, then all at its own rate.
        (ByPlan(schedule="chain", hosts=1, blocks=13, cost=Hockney(bytes_per_s=2e9), bytes_per_s=1e9), 27.0),
        # Binomial pipeline to 7 hosts: 16 + log2 8 - 1 = 18 steps of 2/16 s, and a block of 1/16 s.
        (ByPlan(hosts=7, blocks=16, cost=Hockney(bytes_per_s=13e9), bytes_per_s=26e9), 18 * 2 / 16 + 1 / 16),
    ],
)
def test_switch_times(switch, seconds):
    assert switch.of(26e9) == pytest.approx(seconds)


def test_a_run_in_tables():
    pooling = pooling_on(prefill=2, decode=2, nodes=1, switch=InSeconds(seconds=1.0), least_blocks=0)
    run = pooled(pooling, {"a": ONE, "b": ONE}, TABLE)
    assert run.requests["status"].to_list() == ["done"] * 3
    assert run.requests["first_token_s"].to_list() == pytest.approx([1.1, 1.1, 1.2])
    assert run.requests["tbt_max_s"].to_list()[0] >= 0.01
    assert math.isnan(run.requests["tbt_max_s"][1])
    assert run.requests["tbt_max_s"][2] == pytest.approx(run.requests["finish_s"][2] - run.requests["first_token_s"][2])
    assert set(run.switches["kind"]) <= {"cold", "partly prefetched", "hidden"}
    assert set(run.switches["model"]) == {"a", "b"}
    assert run.turns["tokens"].sum() == 49 + 1
    assert run.metrics()["requests"] == 3
    # The third request's KV cache waits for the load, a gap above 0.1 s; its deadlines are met all the same.
    by = {"request": 2 / 3, "token": 1.0, "qos-artifact": 1.0, "qos-reset": 1.0}
    assert run.attainment(slo("aegaeon")) == pytest.approx(by)
    assert run.whole(slo("aegaeon")).all()


@pytest.mark.parametrize("system", ["aegaeon", "serverlessllm@aegaeon", "serverlessllm-plus", "muxserve", "dedicated"])
def test_every_system_serves_the_market_alike_in_both_backends(system):
    trace, models = market_trace(12, 0.2, 20.0, seed=1), market_models(12)
    one = pooled(pooling_on(system=system), models, trace)
    other = pooled(pooling_on(system=system), models, trace, backend=simulate)
    assert one.requests.equals(other.requests, null_equal=True)
    assert (one.requests["status"] == "done").all()


def test_dedicated_gpus_never_switch():
    run = pooled(pooling_on(system="dedicated"), market_models(12), market_trace(12, 0.2, 20.0))
    assert run.lowered.pool.node.size == 12
    assert len(run.switches) == 0


def test_the_artifacts_generator_stops_early_and_the_other_does_not():
    """Notes §5: at rate 0.1 over 60 s at most 6 arrivals a model; allowed are four standard deviations of the sum."""
    cut = market_trace(400, 0.1, 60.0, generator="artifact", seed=3)
    whole = market_trace(400, 0.1, 60.0, generator="poisson", seed=3)
    assert len(cut) / (400 * 6) == pytest.approx(0.839, abs=0.05)  # E min(N, 6) / 6 for N Poisson with mean 6
    assert len(whole) / (400 * 6) == pytest.approx(1.0, abs=0.08)


def test_lengths_of_the_market():
    table = market_trace(400, 0.5, 60.0, generator="poisson", seed=5).requests
    assert table["prompt_tokens"].mean() == pytest.approx(695, rel=0.05)
    assert table["prompt_tokens"].median() == pytest.approx(560, rel=0.05)
    assert table["output_tokens"].mean() == pytest.approx(293, rel=0.03)
    assert table["output_tokens"].min() >= 16
    doubled = market_trace(400, 0.5, 60.0, generator="poisson", seed=5, output_factor=2.0).requests
    assert doubled["output_tokens"].mean() == pytest.approx(2 * 293, rel=0.03)
    assert doubled["prompt_tokens"].equals(table["prompt_tokens"])


def test_step_times_of_other_sources_are_lines():
    made = pool_model("llama-3-8b", "a800-80gb-sxm", steps="roofline")
    assert made.decode[0] == pytest.approx(16.06e9 / 2e12, rel=0.5)  # reading the weights


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"prefill": 5}, "which 2 nodes do not share evenly"),
        ({"memory_bytes": 20e9}, "leaves no KV cache"),
    ],
)
def test_pools_that_cannot_be(change, words):
    with pytest.raises(InputError, match=words):
        lower(pooling_on(**change), market_models(10), market_trace(10, 0.1, 60.0))


def test_names_that_do_not_exist():
    with pytest.raises(UnknownName, match="paper"):
        pooling_on(variant="papr")
    with pytest.raises(UnknownName, match="poisson"):
        market_trace(2, 0.1, 60.0, generator="posson")
    with pytest.raises(UnknownName, match="aegaeon"):
        lower(pooling_on(system="aegeon"), market_models(2), market_trace(2, 0.1, 60.0))
    with pytest.raises(InputError, match="does not know 'a'"):
        lower(pooling_on(), {"b": ONE}, TABLE)
    assert cluster("aegaeon-h800").accelerators == 16
