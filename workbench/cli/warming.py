"""Compile every kernel once: load them all, call each through the model that uses it, and run the catalogue's formulas.

Examples go through the public models, so that kernels are compiled for the very types that real calls bring.
"""

import pkgutil
from collections.abc import Callable
from importlib import import_module

import numpy as np
import polars as pl

import workbench
from workbench import jit


def load_kernels() -> list[str]:
    """Import every module of a `kernels` or `policy` room; the names of all kernels of the package."""
    for module in pkgutil.walk_packages(workbench.__path__, "workbench."):
        if {"kernels", "policy"} & set(module.name.split(".")):
            import_module(module.name)
    return [name for name in jit.kernels() if name.startswith("workbench.")]


def warm(tell: Callable[[str], object]) -> list[str]:
    """Compile all kernels, or find them compiled on disk; the names of those that no example reaches."""
    names = load_kernels()
    calls = {
        "latency": _latency,
        "queueing": _queueing,
        "transfer": _transfer,
        "caching": _caching,
        "serving": _serving,
        "chains": _chains,
        "pooling": _pooling,
        "blending": _blending,
    }
    for mechanism, call in calls.items():
        tell(f"kernels of {mechanism}")
        call()
    _catalogue(tell)
    return [name for name in names if not jit.is_compiled(name)]


def _transfer() -> None:
    from workbench.transfer.model import Hockney, arrival_steps, completion, k_way_steps, run_times, uniform_network
    from workbench.transfer.policy import SCHEDULES, make_schedule
    from workbench.transfer.simulated import simulate

    for name in SCHEDULES:
        for run in ("dataflow", "barrier"):
            arrival_steps(name, 8, 8, run)
    completion("chain", 8, 8, 8e6, Hockney(bytes_per_s=1e9))
    k_way_steps(8, 4, 2)
    chain = make_schedule("chain", 4, 4)
    run_times(chain, 1.0)
    run_times(chain, 1.0, "barrier")
    simulate(chain, uniform_network(4, 1e9), 1e6)


def _serving() -> None:
    from workbench.profiles import slo
    from workbench.serving import chooser
    from workbench.serving.model import Autoscaler, Group, Network, Pool, Scenario, StepForm, serve

    group = Group(model="any", step=StepForm(compute=(1.0, 0.0, 0.0, 0.0, 0.0)), kv_tokens=64)
    asked = {"model": ["any"], "arrival_s": [0.0], "prompt_tokens": [4], "output_tokens": [3]}
    run = serve(Scenario(groups=(group,)), pl.DataFrame(asked))
    serve(
        Scenario(groups=(group,)),
        pl.DataFrame(asked),
        chooser=chooser(lambda places, outstanding, tokens, draw, turn: 0),
    )
    run.tbt_quantiles([0.95])
    run.attainment(slo(ttft_s=1.0, tbt_s=1.0))
    grows = group.model_copy(update={"count": 0, "autoscaler": Autoscaler(policy="queue", parameters={"waiting": 1})})
    serve(Scenario(groups=(grows,), pool=Pool(hosts=1)), pl.DataFrame(asked))
    apart = [group.model_copy(update={"role": role, "kv_bytes_per_token": 1.0}) for role in ("prefill", "decode")]
    serve(Scenario(groups=tuple(apart), network=Network()), pl.DataFrame(asked))
    serve(Scenario(groups=tuple(apart), network=Network(), pool=Pool(hosts=2)), pl.DataFrame(asked))


def _pooling() -> None:
    from workbench.pooling import market_models, market_trace, pooled, pooling_on
    from workbench.pooling.model.rounds import round_length_s, round_of
    from workbench.pooling.simulated import simulate

    trace, models = market_trace(4, 0.1, 20.0), market_models(4)
    for system in ("aegaeon", "serverlessllm@aegaeon"):
        pooled(pooling_on(system=system), models, trace)
        pooled(pooling_on(system=system), models, trace, backend=simulate)
    round_of([0.01], 1.0)
    round_length_s(2, 0.01, 1.0)


def _queueing() -> None:
    from workbench.queueing import model
    from workbench.queueing.path import Customers
    from workbench.queueing.statistics import mser

    model.mmc(2.0, 1.0, 3)
    model.mdc(3.6, 1.0, 4)
    model.gimc(14.4, 4.0, 1.0, 16)
    model.md1(0.5, 1.0).wait_quantile_s(0.9)
    model.mmck(5.0, 1.0, 4, 20)
    model.batched_service(12, 0.02, 0.0005, 100, 64, 128)
    model.fastest_free(1.5, [2.0, 1.0])
    model.ggc(3.2, 4.0, 1.0, 1.5, 4)
    model.active_models([0.1, 0.2], [1.0, 2.0])
    some = Customers([0.0, 1.0, 1.5], [2.0, 2.0, 2.0])
    model.first_come_path(some, 2)
    model.lindley_waits(*some)
    model.fastest_free_path(some, [0.5, 1.0])
    model.processor_sharing_path(some)
    for discipline in ("exhaustive", "gated", "one-limited"):
        model.rotation_path(some, [1, 0, 1], [0.5], discipline)
    mser(np.arange(20.0))


def _caching() -> None:
    from workbench.caching.model import KeepAlive, LruCache, keep_alive, lru_evictions, scale_ups
    from workbench.caching.simulated import simulate_keep_alive

    keep_alive([0.0, 1.0], KeepAlive(nodes=2))
    LruCache(models=3, capacity=1, rate_per_s=1.0).gone([1.0])
    lru_evictions([0.0, 1.0], [0, 1], 1)
    scale_ups([0, 1], 1)
    simulate_keep_alive([0.0, 1.0], KeepAlive(nodes=2))


def _chains() -> None:
    from workbench.chains import (
        Fleet,
        PetalsRules,
        best_dispatch,
        bprr,
        chains_of,
        compose,
        dispatch_path,
        petals,
        random_orders,
        routed_path,
        sized_jobs,
    )

    fleet = Fleet(
        memory_bytes=[30, 30], communication_s=[1, 1], compute_s=[1, 1], layers=2, block_bytes=10, cache_bytes=1
    )
    jobs, chains = sized_jobs([0.0, 0.0], [1.0, 1.0]), chains_of(compose(fleet, 1))
    best_dispatch([1.0, 0.5], [1, 1], 0.3)
    random_orders(fleet, 1, 0.1, 1, np.random.default_rng(0))
    for contention in (False, True):
        dispatch_path(jobs, chains, contention=contention)
        routed_path(jobs, bprr(fleet, 0.1), contention=contention)
    dispatch_path(jobs, chains, lambda inside, slots, rate_per_s, waiting, draw, memory: 0)
    petals(fleet, [0.1, 0.1], PetalsRules(0, 2, None, np.ones(2)), [0, 1])


def _blending() -> None:
    from workbench.blending.policy import predicted_peak

    predicted_peak(np.zeros((1, 2), np.int64), 0, 0, 1, 0)


def _latency() -> None:
    from workbench.latency import step_time
    from workbench.latency.kernel_coefficients import kernel_coefficients
    from workbench.latency.rates import peak_rates
    from workbench.latency.validation import kernel_models
    from workbench.profiles import accelerator

    step_time("llama-3-8b", "h100-80gb-sxm").mixed(512, 4, 4096)
    shapes = {"tokens": 8, "rows": 64, "columns": 64, "requests": 2, "heads": 8, "kv_heads": 8, "head_dim": 128}
    rows = pl.DataFrame({**shapes, "context": 16, "prompt": 16, "cached": 0})
    fits = kernel_coefficients()
    gemm, decode, prefill = fits.gemm[0], fits.decode_attention[0], fits.prefill_attention[0]
    kernel_models.gemm_seconds(rows, peak_rates(accelerator(gemm.accelerator)), gemm, "bf16")
    rates, cache_bytes = peak_rates(accelerator(decode.accelerator)), 5e7
    kernel_models.decode_attention_seconds(rows, rates, decode, cache_bytes, "bf16")
    kernel_models.prefill_attention_seconds(rows, rates, prefill, cache_bytes)


def _catalogue(tell: Callable[[str], object]) -> None:
    from workbench.catalogue import running, spec

    for entry in spec.all_specs().values():
        if names := [name for name in entry.backends if name in ("analytic", "compiled")]:
            unjudged = entry._replace(matches=(), orderings=(), judges=())  # no run that shows what moves a verdict
            running.run(unjudged, {}, backends=names, quick=True, progress=tell)
