"""Systems whose instances compute prompts or decode only, and whose weights come by chains: from names to tables."""

import itertools
import json

import numpy as np
import polars as pl
import pytest
from operating_cases import APART as BLITZ
from operating_cases import SECOND, WEIGHTS, quarters, table

import workbench as wb
from workbench.errors import InputError, UserError
from workbench.operating import System
from workbench.operating.growing import MOVED_SHARES
from workbench.serving import Engine, Failure, LinkFailure, StepForm, Update

APART = System(
    name="apart", roles="apart", provisioning="least", path="chains", autoscaler="concurrency:requests=1", near=False,
    keep_s=0.0,
)  # fmt: skip
BURST = StepForm(compute=(0.5, 1e-4, 0.0, 0.0, 0.0))


def served(system, *rows, cluster=None, **options):
    """Steps of a second, and four instances on two hosts."""
    given = {"models": "llama-3-8b", "step": SECOND, "kv_tokens": 4096, "trace": table(*rows), "backend": "simpy"}
    return wb.simulate(system, cluster=cluster or quarters(), **given | options)


def test_roles_scale_apart_and_weights_come_over_the_network():
    """Two prompts at 0 s; at 1 s a second instance is wanted to compute prompts, and gets its weights from the one that
    decodes by 3 s: 2 s over one card."""
    run = served(APART, (0.0, 8, 4), (0.0, 8, 4), deployment=wb.deployment(prefill=(1, 2), decode=(1, 1)))
    assert run.scaleouts.select("detected_s", "tier", "alone_s", "sources").rows()[0] == (1.0, "chain", 3.0, 1)
    assert run.requests["status"].to_list() == ["done", "done"]
    assert {*run.scenario.row_groups} == {0, 1}
    assert run.requests["prefill_instance"].to_list() == [0, 0]
    sent = run.transfers.group_by("kind").agg(pl.col("bytes").sum())
    kv = wb.model("llama-3-8b").kv_bytes_per_token * 8 * 2
    assert dict(sent.rows()) == {"weights": WEIGHTS, "kv": kv}
    own = run.links.filter(pl.col("kind") == "weights").with_columns(
        bytes=pl.col("bytes_per_s") * (pl.col("end_s") - pl.col("start_s"))
    )
    assert own.group_by("link").agg(pl.col("bytes").sum())["bytes"].to_numpy() == pytest.approx(WEIGHTS)


def test_a_saved_run_with_roles_and_chains_comes_back(tmp_path):
    """Every table as it was, and the scenario with its network."""
    system = APART.replaced(live="always", autoscaler="roles", keep_s=2.0)
    rows = [(k / 8, 300, 6) for k in range(40)]
    run = served(system, *rows, step=BURST, deployment=wb.deployment(prefill=(1, 2), decode=(1, 2)))
    assert run.assists.height
    again = wb.load(run.save(tmp_path / "run"))
    assert again.scenario == run.scenario
    for name in ("requests", "transfers", "links", "scaleouts", "assists", "allocation", "timeline"):
        assert getattr(again, name).equals(getattr(run, name)), name


def test_a_run_that_was_saved_before_there_were_chains_can_be_read(tmp_path):
    """Arrays that it lacks are those of a run without any."""
    run = wb.simulate("fixed", cluster=quarters(), models="llama-3-8b", trace=table((0.0, 8, 2)), step=SECOND)
    path = run.save(tmp_path / "run")
    arrays = pl.read_parquet(path / "arrays.parquet")
    arrays.drop("outcome.chains", "outcome.hops", "outcome.assists").write_parquet(path / "arrays.parquet")
    facts = json.loads((path / "run.json").read_text())
    for name in ("chains", "hops", "assists"):
        del facts["shapes"][f"outcome.{name}"]
    (path / "run.json").write_text(json.dumps(facts))
    again = wb.load(path)
    assert again.requests.equals(run.requests)
    assert again.served.outcome.chains.shape == (0, 6)


def test_bounds_are_those_of_the_deployment_and_parameters_are_worked_out():
    """KV of a card's bytes/s, between two shares of that rate; least and most of each role."""
    run = served(
        APART.replaced(autoscaler="roles"), (0.0, 8, 4), deployment=wb.deployment(prefill=(1, 3), decode=(2, 2))
    )
    prefill, decode = run.scenario.groups
    assert [(one.role, one.count, one.autoscaler.least, one.autoscaler.most) for one in (prefill, decode)] == [
        ("prefill", 1, 1, 3), ("decode", 2, 2, 2),
    ]  # fmt: skip
    moved = WEIGHTS / 2 / wb.model("llama-3-8b").kv_bytes_per_token
    found = decode.autoscaler.parameters
    assert [found["lower_moved_per_s"], found["upper_moved_per_s"]] == pytest.approx(np.multiply(MOVED_SHARES, moved))
    assert run.scenario.network.egress_bytes_per_s == WEIGHTS / 2


def test_fixed_numbers_of_both_roles():
    """All that the deployment allows, from beginning to end."""
    fixed = System(name="both", roles="apart")
    run = served(fixed, (0.0, 8, 3), deployment=wb.deployment(prefill=(1, 3), decode=(1, 1)))
    assert [group.count for group in run.scenario.groups] == [3, 1]
    assert run.scaleouts.is_empty()
    sent_s = 8 * wb.model("llama-3-8b").kv_bytes_per_token / (WEIGHTS / 2)
    assert run.requests["finish_s"].to_list() == pytest.approx([3.0 + sent_s], rel=1e-12)


def test_one_policy_decides_for_blitzscale_and_all_it_is_compared_with():
    """How many instances, when, for how long they keep their place: the same record for each, as the issue asks."""
    same = (
        "engine",
        "batch_tokens",
        "dispatch",
        "roles",
        "autoscaler",
        "provisioning",
        "least",
        "tick_s",
        "scrape_s",
        "keep_s",
    )
    full = wb.system("blitzscale")
    for name in (*BLITZ, "serverlessllm@blitzscale", "allcache"):
        batched = {"engine": "token-batches", "batch_tokens": 4096}
        other = wb.system(name, roles="apart", autoscaler="roles:down_step=1", **batched)
        assert {field: getattr(other, field) for field in same} == {field: getattr(full, field) for field in same}
    steps = [wb.system(name) for name in BLITZ[::-1]]
    changed = [
        {field for field in System.model_fields if getattr(one, field) != getattr(two, field)}
        - {"name", "summary", "source", "sources"}
        for one, two in itertools.pairwise(steps)
    ]
    assert changed == [{"chains", "decode_first"}, {"live"}]


@pytest.mark.parametrize("name", BLITZ)
def test_a_copy_that_is_sent_comes_from_who_decodes_and_one_host_keeps_another(name):
    """Twelve prompts at once want more instances that compute prompts: their weights come from the one that decodes
    where directions count, and never from an SSD; the only host that keeps any is the first."""
    run = served(
        wb.system(name), *[(0.0, 600, 4)] * 12, step=BURST, cluster=quarters(),
        deployment=wb.deployment(prefill=(1, 3), decode=(1, 1)),
    )  # fmt: skip
    assert run.requests["status"].to_list() == ["done"] * 12
    starts = run.scaleouts.filter(pl.col("tier") == "chain")
    assert starts.height
    assert "ssd" not in run.scaleouts["tier"].to_list()
    if name != "blitzscale@network":
        weights = run.transfers.filter(pl.col("kind") == "weights")
        assert weights["bytes"].sum() == WEIGHTS * weights.height
    assert bool(run.assists.height) <= (name == "blitzscale")


def test_half_of_what_a_deployment_allows_is_rounded_up():
    run = served(wb.system("distserve-half"), (0.0, 8, 3), deployment=wb.deployment(prefill=(1, 3), decode=(1, 1)))
    assert [group.count for group in run.scenario.groups] == [2, 1]


def test_new_versions_and_links_that_fail():
    """The first two requests come before the update of 1.5 s; the third one is computed and decoded by the new one."""
    updates, failures = (Update(time_s=1.5, model="llama-3-8b"),), (LinkFailure(time_s=20, back_s=21, instance=0),)
    table_ = table((0.0, 8, 2), (0.0, 8, 2), (30.0, 8, 2)).with_columns(model=pl.lit("llama-3-8b"))
    run = served(
        APART,
        trace=table_,
        updates=updates,
        link_failures=failures,
        deployment=wb.deployment(prefill=(1, 2), decode=(1, 2)),
    )
    assert run.requests["weight_version"].to_list()[-1] == 1
    assert run.requests["status"].to_list() == ["done"] * 3
    assert run.scaleouts.select("version", "cancelled").unique().sort("version").rows() == [(0, True), (1, False)]
    with pytest.raises(InputError, match="updates need a pool"):
        served("fixed", trace=table_, updates=updates)
    with pytest.raises(InputError, match="has failures of links, but no network"):
        served("fixed", trace=table_, link_failures=failures)


@pytest.mark.parametrize(("system", "options", "sentence"), [
    (APART, {"deployment": wb.deployment(colocated=True)}, "'colocated': is set, but instances of apart compute"),
    (APART.replaced(provisioning="half"), {}, "is 'half', which does not say how many instances prefill"),
    (APART.replaced(provisioning="full"), {}, "or 'full' or 'half' and a deployment with"),
    (APART.replaced(provisioning=3), {}, "6 instances x TP 1 = 6 accelerators are wanted at first"),
])  # fmt: skip
def test_what_cannot_be_is_said(system, options, sentence):
    with pytest.raises(UserError, match=sentence):
        served(system, (0.0, 8, 3), **options)


@pytest.mark.parametrize(("choices", "sentence"), [
    ({"live": "always"}, "live is 'always' on path 'ideal'; choose path 'chains'"),
    ({"autoscaler": "roles"}, "autoscaler is 'roles', but instances do both phases"),
])  # fmt: skip
def test_choices_that_do_not_go_together(choices, sentence):
    with pytest.raises(InputError, match=sentence):
        System(name="mine", **choices)


@pytest.mark.parametrize(("slo", "live", "promise_s"), [(None, 2, np.inf), (wb.slo(ttft_s=0.5, tbt_s=0.1), 3, 0.5)])
def test_blitzscale_helps_where_the_runs_promise_would_be_broken_and_takes_busy_instances(slo, live, promise_s):
    """Without a promise it helps where that is worth it. The artifact takes only instances that drain."""
    run = served(wb.system("blitzscale"), (0.0, 8, 3), slo=slo, deployment=wb.deployment(prefill=(1, 2), decode=(1, 2)))
    scaling = run.served.lowered.scaling
    assert scaling.live.tolist() == [live, live]
    assert scaling.promise_s.tolist() == [promise_s, promise_s]
    assert (scaling.mutate.tolist(), scaling.requeue.tolist()) == ([0, 2], [0, 1])
    assert wb.system("blitzscale", variant="artifact").mutate == "draining"
    assert wb.system("serverlessllm@blitzscale").mutate == "no"


def test_kv_that_stays_is_not_sent():
    """Prompts in a burst, two instances that compute them: BlitzScale takes one of them to decode. By then it has
    computed prompts whose KV waits; sent on as ever, or decoded where it is. Every request's tokens are the same."""
    rows, bounds = [(k / 8, 300, 12) for k in range(60)], wb.deployment(prefill=(2, 3), decode=(1, 3))
    given = {"step": BURST, "deployment": bounds, "kv_tokens": 1600, "cluster": quarters(2, 3)}
    runs = [served(wb.system("blitzscale", kv_stays=stays), *rows, **given) for stays in (False, True)]
    sent, places = [], []
    for run in runs:
        assert run.requests["status"].unique().to_list() == ["done"]
        sent.append(run.transfers.filter(pl.col("kind") == "kv").height)
        groups = len(run.scenario.groups)
        pairs = run.requests.select("prefill_instance", "decode_instance").to_numpy() // groups
        places.append(int((pairs[:, 0] == pairs[:, 1]).sum()))
    assert [run.served.lowered.scaling.stays.tolist() for run in runs] == [[0, 0], [0, 1]]
    assert sent[1] < sent[0]
    assert places[1] > places[0]


def test_a_promise_of_ones_own_is_kept():
    run = served(
        wb.system("blitzscale", promise_s=2.0, judged="oldest"), (0.0, 8, 3), slo=wb.slo(ttft_s=0.5, tbt_s=0.1),
        deployment=wb.deployment(prefill=(1, 2), decode=(1, 2)),
    )  # fmt: skip
    scaling = run.served.lowered.scaling
    assert (scaling.promise_s.tolist(), scaling.waits.tolist()) == ([2, 2], [1, 1])


@pytest.mark.parametrize("backend", ["compiled", "simpy"])
def test_a_promise_of_no_time_at_all_is_always_broken(backend):
    """So help is given wherever it is worth it, and the run is the one without a promise."""
    rows, bounds = [(0.0, 600, 4)] * 12, wb.deployment(prefill=(1, 3), decode=(1, 1))
    given = {"step": BURST, "deployment": bounds, "backend": backend}
    none = served(wb.system("blitzscale"), *rows, slo=wb.slo(ttft_s=0, tbt_s=0.1), **given)
    assert none.served.lowered.scaling.live.tolist() == [3, 3]
    worth = served(wb.system("blitzscale"), *rows, **given)
    assert worth.assists.height
    assert none.assists.equals(worth.assists)
    assert none.requests.equals(worth.requests)


def test_prompts_wait_for_whoever_is_free_first_and_decode_together():
    """Prompts of a second each: the first instance has computed three at 3 s, when the second one is there after 2 s of
    loading; from then on both take one at a time, by a limit or in batches of 100 tokens. Without either all wait where
    they came to, on the first."""
    step = StepForm(compute=(0.0, 0.01, 0.0, 0.0, 0.0), memory=(0.01, 0.0, 0.0, 0.0, 0.0))
    rows, first_s = [(0.25 * (k % 4), 100, 40) for k in range(12)], {}
    rows = sorted(rows)
    for choice, limit, batch_tokens in (("limit", 1, None), ("batches", None, 100), ("neither", None, None)):
        system = wb.system(
            "blitzscale@multicast", autoscaler="concurrency:requests=2", tick_s=1.0, limit=limit,
            batch_tokens=batch_tokens,
            engine=Engine(budget=100, chunk=100),
        )  # fmt: skip
        bounds = wb.deployment(prefill=(1, 2), decode=(1, 1))
        run = served(system, *rows, step=step, deployment=bounds, kv_tokens=4096)
        first_s[choice] = run.requests["first_token_s"].sort().to_list()
        assert set(run.requests["status"]) == {"done"}
    assert first_s["limit"] == first_s["batches"] == pytest.approx([1, 2, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8])
    assert first_s["neither"] == pytest.approx(range(1, 13))


@pytest.mark.parametrize("backend", ["simpy", "compiled"])
def test_prompts_that_wait_at_the_router_are_a_reason_to_help(backend):
    """Prompts of 0.8 s, one at a time, behind which others wait; from 1 s to 3 s a second instance loads 32 layers. At
    1.6 s it has 9 of them, which saves 0.225 s of a step; at 2.175 s and 2.575 s half of them and 0.4 s, and the load
    lasts longer than that; at 2.975 s it does not. From 3 s on both serve. Handing over takes 0.1 ms."""
    step = StepForm(compute=(0.0, 0.008, 0.0, 0.0, 0.0), memory=(0.01, 0.0, 0.0, 0.0, 0.0))
    rows = sorted((0.25 * (k % 4), 100, 2) for k in range(12))
    system = wb.system(
        "blitzscale", autoscaler="concurrency:requests=2", tick_s=1.0, limit=1, live="worth",
        engine=Engine(budget=100, chunk=100),
    )  # fmt: skip
    bounds = wb.deployment(prefill=(1, 2), decode=(1, 1))
    run = served(system, *rows, step=step, deployment=bounds, kv_tokens=4096, backend=backend)
    assert run.assists["layers"].to_list() == [9, 18, 25]
    first_s = [0.8, 1.6, 2.175, 2.575, 2.975, 3.775, 3.8, 4.575, 4.6, 5.375, 5.4, 6.175]
    assert run.requests["first_token_s"].sort().to_list() == pytest.approx(first_s, abs=1e-3)


@pytest.mark.parametrize(("failure", "sentence"), [
    ({"instance": 4}, "'link_failures.instance': names instance 4, but there are 0 to 3; name one of them"),
    ({"instance": 5, "way": "in"}, "'link_failures.instance': names instance 5, but there are 0 to 3"),
    ({"host": 2}, "'link_failures.host': names host 2, but there are 0 to 1"),
])  # fmt: skip
def test_a_link_of_nobody_cannot_fail(failure, sentence):
    """Nor is it taken for another one's."""
    with pytest.raises(InputError, match=sentence):
        served(APART, (0.0, 8, 2), link_failures=[LinkFailure(time_s=0, back_s=1, **failure)])


def test_a_refused_update_says_what_is_served():
    with pytest.raises(InputError, match="updates name 'llama-3-8b', which no group serves; name one of 'default'"):
        served(APART, (0.0, 8, 2), updates=[Update(time_s=1, model="llama-3-8b")])
    with pytest.raises(InputError, match=r"'updates': is Update.*; give a list"):
        served(APART, (0.0, 8, 2), updates=Update(time_s=1, model="default"))


@pytest.mark.parametrize(("name", "choices", "idle"), [
    ("allcache", {"mutate": "busy", "requeue": True}, "mutate, requeue play no part"),
    ("distserve-full", {"kv_stays": True}, "kv_stays plays no part"),
    ("blitzscale", {"kv_stays": True}, ""),
    ("distserve-full", {"mutate": "busy"}, "mutate plays no part"),
    ("blitzscale@multicast", {"promise_s": 1.0}, "promise_s plays no part"),
    ("blitzscale", {"live": "worth", "judged": "oldest"}, "judged plays no part"),
    ("blitzscale", {"mutate": "draining", "judged": "oldest"}, ""),
    ("allcache", {"batch_tokens": 4096}, "batch_tokens plays no part"),
    ("allcache", {}, ""),
])  # fmt: skip
def test_choices_without_effect_are_named(name, choices, idle):
    bounds = {"prefill": (1, 2), "decode": None, "colocated": True} if name == "allcache" else {"prefill": (1, 2)}
    deployment = wb.deployment(**{"decode": (1, 2)} | bounds)
    run = served(wb.system(name, **choices), (0.0, 8, 2), deployment=deployment)
    found = [note for note in run.notes if "of what was chosen" in note.lower()]
    assert len(found) == bool(idle)
    assert idle in "".join(found)


@pytest.mark.parametrize("backend", ["compiled", "simpy"])
def test_more_decisions_than_can_be_logged_are_refused(backend, monkeypatch):
    """Two requests, ten days apart; the real bound would be reached after a minute."""
    for room in ("workbench.serving.kernels.serving", "workbench.serving.simulated.fleet_log"):
        monkeypatch.setattr(f"{room}.MOST_DECISIONS", 2000)
    with pytest.raises(UserError, match=r"decided more than .* times, every 1 s, and the run is not over"):
        served(APART, (0.0, 8, 2), (864_000.0, 8, 2), backend=backend)
    assert served(APART, (0.0, 8, 2), (800.0, 8, 2), backend=backend).requests["status"].to_list() == ["done"] * 2


@pytest.mark.parametrize("backend", ["compiled", "simpy"])
def test_the_last_one_that_decodes_stays_while_another_one_is_to_follow(backend):
    """One slot: those that compute prompts keep KV that waits. The one that is to decode too has some, which it could
    send to nobody if the other one went."""
    rows = [(0.1 * k, 1000 + 37 * k, 20) for k in range(60)]
    apart = wb.system("blitzscale", engine=Engine(slots=1))
    run = served(apart, *rows, deployment=wb.deployment(prefill=(1, 7), decode=(1, 7)), backend=backend)
    assert set(run.requests["status"]) == {"done"}


def test_what_is_left_for_ever_is_told():
    """All four places fail and do not come back."""
    lost = [Failure(instance=place, time_s=4.0) for place in range(4)]
    run = served(wb.system("blitzscale"), (0.0, 8, 2), (5.0, 8, 2), failures=lost)
    assert "served 1 of 2 requests" in run.sentence
    assert "; 1 were left for which no instance had room or was up any more" in run.sentence


def test_a_rule_by_requests_needs_to_know_how_many_one_takes():
    """The queue rule looks at those at the router, where all wait by batches."""
    with pytest.raises(InputError, match="give requests in the rule"):
        served(wb.system("blitzscale", autoscaler="concurrency"), (0.0, 8, 2))
    queue = {"autoscaler": "queue", "roles": "apart"}
    assert not served(wb.system("blitzscale", **queue), (0.0, 8, 2)).notes
    assert (
        "give the system a limit" in served(wb.system("blitzscale", **queue, batch_tokens=None), (0.0, 8, 2)).notes[0]
    )


@pytest.mark.parametrize("backend", ["compiled", "simpy"])
@pytest.mark.parametrize(("judged", "promise_s", "helps"), [
    ("new", 2.99, True), ("new", 3.0, False), ("oldest", 3.09, True), ("oldest", 3.11, False),
])  # fmt: skip
def test_a_promise_is_judged_by_the_load_and_the_step_behind_it(judged, promise_s, helps, backend):
    """Steps of a second, a load from 0.1 to 2.1 s. At 1 s a prompt that came with the load would take all of its 2 s
    and a second; the oldest one has waited for a second, and would wait for 1.1 s and take another one. By then 14 of
    32 layers are there, so that help takes that share off the step."""
    engine = Engine(budget=600, chunk=600)
    run = served(
        wb.system("blitzscale", promise_s=promise_s, judged=judged, engine=engine), *[(0.0, 600, 2)] * 12, step=SECOND,
        deployment=wb.deployment(prefill=(1, 3), decode=(1, 1)), backend=backend,
    )  # fmt: skip
    loads = run.transfers.filter(pl.col("kind") == "weights").head(1)
    np.testing.assert_allclose(loads.select("start_s", "end_s").row(0), (0.1, 2.1), rtol=1e-9)
    assert bool(run.assists.height) == helps
    if helps:
        first = run.assists.row(0, named=True)
        assert (first["start_s"], first["layers"]) == (1.0, 14)
        handed_s = 600 * wb.model("llama-3-8b").hidden * 2 / (WEIGHTS / 2)
        assert first["end_s"] - first["start_s"] == pytest.approx(18 / 32 + handed_s, rel=1e-9)
