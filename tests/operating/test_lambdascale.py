"""λScale as a system: pipelines by hand, its burst beside others', what hosts keep, what is refused."""

import re

import numpy as np
import polars as pl
import pytest
from operating_cases import SECOND, gpus, quarters, table

import workbench as wb
from workbench.errors import InputError, UserError
from workbench.serving import StepForm

BOTH = pytest.mark.parametrize("backend", ["compiled", "simpy"])
QUICK = StepForm(compute=(0.25, 0.0, 0.0, 0.0, 0.0))


def served(*rows, system="lambdascale", cluster=None, **options):
    given = {"models": "llama-3-8b", "step": QUICK, "kv_tokens": 4096, "trace": table(*rows)} | options
    return wb.simulate(system, cluster=cluster or quarters(), **given)


def joint_s():
    """Two load together in a second each, one the even and one the odd blocks of eight first."""
    size = np.array(wb.model("llama-3-8b").block_bytes(8), dtype=float)
    return max(size[::2].sum(), size[1::2].sum()) / size.sum()


@BOTH
def test_two_that_load_from_memory_serve_together_before_each_has_everything(backend):
    """Decided at the tick of 1 s. A step takes a quarter of a second, and in a pipeline 8 x 2 ms more."""
    ours, three = wb.system("lambdascale", limit=1), quarters(hosts=3, accelerators=1)
    run = served((0.0, 8, 1), (0.0, 8, 1), system=ours, cluster=three, backend=backend)
    first, second = run.scaleouts.to_dicts()
    for load in (first, second):
        assert (load["detected_s"], load["tier"]) == (1.0, "dram")
        assert load["piped_s"] == pytest.approx(1 + joint_s(), rel=1e-12)
        assert load["first_useful_s"] == pytest.approx(1 + joint_s() + 0.25 + 8 * 0.002, rel=1e-12)
        assert load["alone_s"] == pytest.approx(2.0, rel=1e-12)
        assert load["first_useful_s"] < load["alone_s"]


@BOTH
@pytest.mark.parametrize(("variant", "tiers"), [("paper", ["dram", "multicast"]), ("artifact", ["dram", "ssd"])])
def test_hosts_send_what_they_have_in_memory_by_the_paper_and_not_in_the_artifact(variant, tiers, backend):
    ours = wb.system("lambdascale", variant=variant, limit=1, pinned=1)
    run = served((0.0, 8, 1), (0.0, 8, 1), system=ours, cluster=quarters(accelerators=1), backend=backend)
    assert run.scaleouts["tier"].to_list() == tiers
    assert run.scaleouts["alone_s"].to_list() == pytest.approx([2.0, 3.0 if variant == "paper" else 5.0], rel=1e-12)


def burst(system, **changes):
    """Sixty at once on λScale's testbed of 12 hosts."""
    rows = [(0.0, 256, 40)] * 60
    return wb.simulate(
        wb.system(system, **changes), cluster="lambdascale-testbed1", models="llama-2-7b", trace=table(*rows)
    )


def test_in_a_burst_the_first_work_is_done_before_loads_are_complete():
    ours = burst("lambdascale").scaleouts
    assert (ours["first_useful_s"] < ours["alone_s"]).all()


@pytest.mark.parametrize(
    "start",
    [{}, {"least": 1, "pinned": 0, "cache_bytes": 0.0}],
    ids=["from what hosts keep", "from one instance, hosts keep nothing"],
)
def test_in_a_burst_it_works_no_later_than_others(start):
    first_s = {
        system: burst(system, **start).scaleouts["first_useful_s"].min()
        for system in ("lambdascale", "nccl", "faasnet")
    }
    assert first_s["lambdascale"] == min(first_s.values())


def test_without_pipelines_nobody_works_before_its_load_is_complete():
    waiting = burst("lambdascale", pipelines="none").scaleouts
    assert waiting["piped_s"].is_nan().all()
    useful = waiting.filter(pl.col("first_useful_s").is_not_nan())
    assert useful.height > 0
    assert (useful["first_useful_s"] > useful["alone_s"]).all()
    assert burst("lambdascale").scaleouts["first_useful_s"].min() < useful["first_useful_s"].min()


def test_pinned_hosts_keep_the_models_that_find_room_and_a_note_names_the_others():
    """1.5 copies fit a host: those of a, whose next start an hour later is from memory."""
    rows = [(0.0, 8, 1), (0.0, 8, 1), (3600.0, 8, 1), (3600.0, 8, 1)]
    run = served(
        *rows, trace=table(*rows, model=pl.Series(["a", "b", "a", "b"])), system=wb.system("lambdascale", limit=1)
    )
    assert [group.start_up.weights.pinned for group in run.scenario.groups] == [2, 0]
    assert [note for note in run.notes if "no room for b" in note]
    assert set(run.scaleouts.filter(model="a")["tier"]) == {"dram"}
    assert set(run.scaleouts.filter(model="b")["tier"]) == {"ssd"}


def test_it_is_compared_searched_and_planned_like_any_other():
    trace = table(*((0.5 * k, 64, 4) for k in range(120)))
    given = {"cluster": quarters(), "models": "llama-3-8b", "step": QUICK, "kv_tokens": 4096}
    promise = wb.slo(ttft_s=8.0, tbt_s=2.0)
    ours, theirs = (wb.simulate(name, trace=trace, slo=promise, **given) for name in ("lambdascale", "faasnet"))
    assert "lambdascale" in wb.compare(ours, theirs).sentence
    assert wb.capacity("lambdascale", trace=trace, slo=promise, attainment=0.9, **given).rate_per_s > 0
    (row,) = wb.plan(
        trace, slo=promise, systems=["lambdascale"], deployments=[wb.deployment()], attainment=0.9, **given
    ).table.to_dicts()  # fmt: skip
    assert 1 <= row["instances"] <= 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schedule": "chain"}, "schedule is 'chain', by which no pipelines form; choose 'binomial_pipeline'"),
        ({"blocks": 12}, "blocks is 12, no multiple of the 8 stages"),
        ({"pipelines": "some"}, "pipelines"),
        ({"pinned": -1}, "pinned"),
    ],
)
def test_choices_that_do_not_go_together_are_refused(changes, words):
    with pytest.raises(InputError, match=words):
        wb.system("lambdascale", **changes)


@pytest.mark.parametrize(
    ("system", "options", "words"),
    [
        (wb.system("lambdascale", stages=64, blocks=64), {}, "32"),
        ("lambdascale", {"cluster": gpus(2)}, "states no SSD"),
        ("lambdascale", {"cluster": quarters(nic_bytes_per_s=None)}, "has no network card"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(system, options, words):
    with pytest.raises(UserError, match=words) as caught:
        served((0.0, 8, 1), system=system, step=SECOND, **options)
    assert not re.search(r"\. [A-Z]", str(caught.value))


@pytest.mark.parametrize(
    "changes", [{"variant": "artifact"}, {"pipelines": "paper", "switch": "each"}, {"least": 1, "pinned": 0}]
)
def test_both_backends_give_the_same_tables_by_the_paper_and_by_the_artifact(changes):
    requests = wb.trace("azure-code-2023-like").requests.head(300)
    requests = requests.with_columns(pl.col("arrival_s") / 30, model=pl.Series(["a", "b"] * 150))
    given = {"cluster": "lambdascale-testbed1", "models": "llama-3-8b", "trace": requests, "seed": 3}
    one, other = (
        wb.simulate(wb.system("lambdascale", **changes), backend=backend, **given) for backend in ("compiled", "simpy")
    )
    for name in ("requests", "iterations", "segments", "timeline", "allocation", "scaleouts", "transfers", "links"):
        assert getattr(one, name).equals(getattr(other, name)), name
    assert one.scaleouts["piped_s"].is_not_nan().any()
