"""A simulator of the showdown that is tampered with: the agreement that it is laid beside no longer holds."""

import sys
from importlib import import_module

import polars as pl
import pytest

from workbench.catalogue import running, spec
from workbench.catalogue.showdown import common
from workbench.serving.simulated.weights import Weights
from workbench.transfer.model import uniform_network


def module(name):
    return sys.modules[f"workbench.catalogue.showdown.{name}"]


def agree(id, **given):
    """Quantity -> whether formula and simulation agree on it, in a quick run made anew."""
    entry = spec.find(id)._replace(say=lambda *_: "No sentence is asked for.")
    outcome = running.run(entry, given, backends=("analytic", "simpy"), quick=True)
    return {item.quantity: item.agrees for item in outcome.agreement}


@pytest.mark.parametrize("fault", [False, True])
def test_weights_that_come_from_memory_a_hundredth_too_late(monkeypatch, fault):
    """One system that reads from memory, in the lightest burst; the formula knows nothing of the simulator."""
    one = {common.ALLCACHE: common.SYSTEMS[common.ALLCACHE], common.IDEAL: "ideal"}
    for where in (common, module("burst")):
        monkeypatch.setattr(where, "SYSTEMS", one)
    if fault:
        true = Weights._tier

        def late(self, row, cached):
            tier, seconds = true(self, row, cached)
            return tier, 1.01 * seconds

        monkeypatch.setattr(Weights, "_tier", late)
    found = agree("showdown/burst", calm_per_s=0.1, burst_per_s=1.0, burst_s=1.0, output_tokens=2)
    assert found == {"weights there": not fault}


def test_models_that_follow_the_shared_coin_too_rarely(monkeypatch):
    """By ρ instead of √ρ two models' bursts correlate by ρ² only: GPU time stays, too few GPUs are bought."""
    savings = module("savings")
    true = savings._thrown
    assert agree("showdown/savings", short_share=0.05) == {"GPU time": True, "GPUs to buy": True}
    monkeypatch.setattr(savings, "_thrown", lambda context, models, share, rho: true(context, models, share, rho**2))
    assert agree("showdown/savings", short_share=0.05) == {"GPU time": True, "GPUs to buy": False}


def test_two_models_that_do_not_share_a_card(monkeypatch):
    bursts = module("two_bursts")
    assert agree("showdown/two-bursts", targets=2) == {"weights there": True}
    monkeypatch.setattr(
        bursts,
        "uniform_network",
        lambda nodes, rate, **more: uniform_network(nodes, rate, **more | {"accelerators_per_nic": 1}),
    )
    assert agree("showdown/two-bursts", targets=2) == {"weights there": False}


def test_a_multicast_over_links_a_hundredth_too_slow(monkeypatch):
    multicast = module("pool_multicast")
    empty = pl.DataFrame(schema=["source", "models", "seed", "attainment"])
    monkeypatch.setattr(multicast, "_pools", lambda *_: empty)  # their runs are long, and have no formula
    assert agree("showdown/pool-multicast") == {"switch": True}
    monkeypatch.setattr(multicast, "uniform_network", lambda nodes, rate: uniform_network(nodes, 0.99 * rate))
    assert agree("showdown/pool-multicast") == {"switch": False}


def test_a_simulator_in_which_all_steps_take_a_quarter_longer(monkeypatch):
    monkeypatch.setattr(module("valleys"), "SHARES", (0.5,))
    monkeypatch.setattr(module("valleys"), "ORDERS", ("prompts first",))
    assert agree("showdown/valleys", job=10) == {"both together": True}
    run_module = import_module("workbench.serving.simulated.run")
    true = run_module.simulate

    def slow(lowered, *rest):
        run = true(lowered, *rest)
        return run._replace(first_token_s=1.25 * run.first_token_s, finish_s=1.25 * run.finish_s)

    monkeypatch.setattr(run_module, "simulate", slow)
    assert agree("showdown/valleys", job=10) == {"both together": False}
