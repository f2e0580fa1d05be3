"""Starts from host memory beside a multicast, hosts that send, copies that stay: cases worked out by hand.

Every step takes 1 s, in a pipeline 2 s; ticks are at 1 s, 2 s and so on; engines start in 0.5 s. Copies from other rows
take 4 s, loads from memory together 3 s.
"""

import numpy as np
import polars as pl
import pytest
from scaling_cases import growing, row
from serving_cases import asked

from workbench.errors import InputError
from workbench.serving.model import Group, Multicast, Pool, Scenario, StartUp, StepForm, Weights, lower
from workbench.serving.model.checking import checked
from workbench.serving.model.engine import run_compiled
from workbench.serving.model.multicast_plan import MulticastPlan
from workbench.serving.model.scaled import PIPED, STARTING, UP
from workbench.serving.policy.scalers import DRAM_TIER, MULTICAST, MULTICAST_TIER, NONE, QUEUE, SSD_TIER
from workbench.serving.simulated import simulate

NAN, INF = float("nan"), float("inf")
RUNS = pytest.mark.parametrize("run", [simulate, run_compiled], ids=["simpy", "compiled"])
TWO_SECONDS = ((2.0, 0.0, 0.0, 0.0, 0.0), (0.0,) * 5)


def same(values, wanted):
    np.testing.assert_array_equal(values, wanted)


def local(requests, rows, **changes):
    """Rows that are all wanted at the first tick; the first is up; hosts 1 and 2 have the weights in memory."""
    hosts = 1 + max(entry[1] for entry in rows)
    settings = {
        "kind": NONE, "min_rows": len(rows), "source": MULTICAST, "multicast_s": [[[4.0] * 3] * 3],
        "local_s": 3.0, "memory_first": 1, "cached": [[int(h in (1, 2))] for h in range(hosts)],
        "piped_form": TWO_SECONDS,
    }  # fmt: skip
    return growing(requests, rows, **settings | changes)


def rows_of(count, **engine):
    first = row(0, 0, start_state=UP, limit=1)
    return [first, *(row(k, k, **{"limit": 1} | engine) for k in range(1, count))]


@RUNS
def test_rows_with_a_host_copy_load_it_and_the_others_are_sent_theirs(run):
    """Rows 1 and 2 load from memory until 4.5 s, in operation 0; row 3 has its copy from row 0 at 5.5 s."""
    out = run(local([asked(0, 4, 1)], rows_of(4), until_s=9))
    same(out.loads[:, :6], [
        [1, 4.5, 1, DRAM_TIER, 0, 0], [1, 4.5, 2, DRAM_TIER, 0, 0], [1, 5.5, 3, MULTICAST_TIER, 1, 1],
    ])  # fmt: skip


@RUNS
def test_without_memory_first_all_are_sent_theirs(run):
    out = run(local([asked(0, 4, 1)], rows_of(4), memory_first=0, until_s=9))
    same(out.loads[:, 3], [MULTICAST_TIER] * 3)
    same(out.loads[:, 5], [0, 0, 0])


@RUNS
def test_rows_that_load_from_memory_form_a_pipeline(run):
    """Rows 1 and 2 hold a copy together after 1 s: both serve from 2.5 s on, by steps of 2 s, and alone from 4.5 s.

    The prompts of both are computed by 4.5 s: with the switch at that instant the step is lost, and done by 5.5 s.
    """
    pipeline = {"local_piped_s": 1.0, "local_with": 0}
    out = run(local([asked(0, 4, 10), asked(0, 4, 2), asked(0, 4, 2)], rows_of(3), **pipeline))
    same(out.states, [[1, 1, STARTING], [1, 2, STARTING], [2.5, 1, PIPED], [2.5, 2, PIPED], [4.5, 1, UP], [4.5, 2, UP]])
    same(out.loads[:, 8], [2.5, 2.5])
    same(out.wait_s, [0, 2.5, 2.5])
    same(out.first_token_s, [1, 5.5, 5.5])
    same(out.failed_steps, [0, 1, 1])


@RUNS
def test_each_number_of_rows_has_its_own_times(run):
    """One row that loads alone takes 3 s, two take 5 s and 6 s, and with `switch_whole` both 6 s."""
    times = [[[3.0, 0, 0], [5.0, 6.0, 0], [0, 0, 0]]]
    one = run(local([asked(0, 4, 1)], rows_of(2), local_s=times, until_s=9))
    same(one.loads[:, 1], [4.5])
    two = run(local([asked(0, 4, 1)], rows_of(3), local_s=times, until_s=9))
    same(two.loads[:, 1], [6.5, 7.5])
    whole = run(local([asked(0, 4, 1)], rows_of(3), local_s=times, switch_whole=1, until_s=9))
    same(whole.loads[:, 1], [7.5, 7.5])


@RUNS
def test_a_member_that_fails_breaks_the_pipeline_of_loads_from_memory(run):
    """Place 1 fails at 3 s: row 2 waits for its weights again, and has them at 4.5 s as before.

    Its request comes back to the line after that of the failed row, and so before it.
    """
    pipeline = {"local_piped_s": 1.0, "local_with": 0}
    requests = [asked(0, 4, 10), asked(0, 4, 1), asked(0, 4, 1)]
    out = run(local(requests, rows_of(3), failures=[(3, 1, INF)], until_s=20, **pipeline))
    same(out.states[3:6, :2], [[2.5, 2], [3, 1], [3, 2]])
    same(out.states[6], [4.5, 2, UP])
    same(out.first_token_s[1:], [6.5, 5.5])
    same(out.moves[1:], [1, 1])


def nobody_up(requests, hosts, **changes):
    rows = [row(k, k, limit=1) for k in range(hosts)]
    return local(requests, rows, kind=QUEUE, min_rows=0, **changes)


@RUNS
def test_hosts_send_what_they_have_where_no_row_has_it(run):
    """Hosts 1 and 2 load their own copies and send to hosts 0 and 3, of which two are sources."""
    requests = [asked(0, 4, 1)] * 4
    out = run(nobody_up(requests, 4, hosts_send=1))
    same(out.loads[:, 2:6], [
        [1, DRAM_TIER, 0, 0], [2, DRAM_TIER, 0, 0], [0, MULTICAST_TIER, 2, 1], [3, MULTICAST_TIER, 2, 1],
    ])  # fmt: skip
    same(out.loads[:, 1], [4.5, 4.5, 5.5, 5.5])
    alone = run(nobody_up(requests, 4, hosts_send=0))
    same(alone.loads[:, 3], [DRAM_TIER, DRAM_TIER, SSD_TIER, SSD_TIER])


@RUNS
def test_a_copy_that_is_pinned_outlives_its_time(run):
    """Copies last 2 s unused; at 5 s only the pinned one of host 0 is there."""
    late = [asked(4.5, 4, 1), asked(4.5, 4, 1)]
    settings = {"ttl_s": 2.0, "cached": [[1], [1]], "pinned": [[1], [0]]}
    rows = [row(k, k, limit=1) for k in range(2)]
    out = run(local(late, rows, kind=QUEUE, min_rows=0, **settings))
    same(out.loads[:, 2:4], [[0, DRAM_TIER], [1, SSD_TIER]])
    same(out.loads[0, :2], [5, 8.5])


@RUNS
def test_a_pinned_copy_is_never_pushed_out(run):
    """A host has room for one model of 8 bytes; model 0 is pinned there, so model 1 is read from SSD each time."""
    rows = [row(0, 0, limit=1, model=0), row(0, 0, limit=1, model=1)]
    requests = [asked(0, 4, 1, model=1), asked(8, 4, 1, model=1)]
    out = run(local(
        requests, rows, kind=QUEUE, min_rows=0, keep_s=0.0, bytes=8.0, cache_bytes=8.0, cached=[[0, 0]],
        pinned=[[1, 0]], multicast_s=[[[4.0]]], ssd_bytes_per_s=8.0,
    ))  # fmt: skip
    same(out.loads[:, 3], [SSD_TIER, SSD_TIER])


def scenario_of(**weights):
    """Four hosts, one instance on the first; 8 bytes from memory in 2 s, over the network in 8 s."""
    sent = Multicast(
        schedule="chain", bytes_per_s=1.0, blocks=1, piped_step=StepForm(compute=(2.0, 0, 0, 0, 0)),
        plans=(
            MulticastPlan(sources=0, targets=2, complete_s=(2.0, 3.0), forms_s=(1.0, 1.0), pipelines=(0, 0)),
            MulticastPlan(sources=1, targets=1, complete_s=(5.0,)),
        ),
    )  # fmt: skip
    group = Group(
        model="m", step=StepForm(compute=(1.0, 0, 0, 0, 0)), kv_tokens=1000,
        start_up=StartUp(weights=Weights(path="multicast", bytes=8, dram_bytes_per_s=4, multicast=sent, **weights)),
    )  # fmt: skip
    return Scenario(groups=(group,), pool=Pool(hosts=4, ssd_bytes_per_s=1.0))


def lowered_of(**weights):
    table = {"model": ["m"], "arrival_s": [0.0], "prompt_tokens": [1], "output_tokens": [1]}
    return lower(scenario_of(**weights), pl.DataFrame(table)).scaling


def test_plans_without_a_source_are_loads_from_memory():
    found = lowered_of(memory_first=True, hosts_send=True, pinned=2)
    same(found.local_s[0, 1, :2], [2, 3])
    same(found.local_piped_s[0, 1, :2], [1, 1])
    same(found.local_with[0, 1, :2], [0, 0])
    same(found.local_s[0, 0, :1], [2])  # without a plan: 8 bytes at 4 a second
    same(found.local_piped_s[0, 0], [INF] * 3)
    same(found.multicast_s[0, 0, 0, 0], 5)
    same(found.multicast_s[0, 0, 1, :2], [8, 16])
    same(found.piped_s, np.full(found.piped_s.shape, INF))
    same([found.memory_first, found.hosts_send], [[1], [1]])
    same(found.pinned, [[1], [1], [0], [0]])


def test_weights_that_are_not_multicast_have_no_memory_first():
    for name in ("memory_first", "hosts_send"):
        with pytest.raises(InputError, match=f"{name} is set, which path 'ideal' does not know"):
            Weights(**{name: True})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"memory_first": 2}, "memory_first.*give 0 or 1"),
        ({"pinned": [[3]] * 3}, "pinned.*give 0 or 1"),
        ({"local_s": -1.0}, "local_s.*0 or more"),
        ({"local_piped_s": 1.0}, "local_with.*number the pipeline"),
    ],
)
def test_what_makes_no_sense_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        checked(local([asked(0, 4, 1)], rows_of(3), **change))


def test_empty_arrays_change_nothing():
    full = checked(local([asked(0, 4, 1)], rows_of(3), memory_first=0, local_s=0.0)).scaling
    names = ("memory_first", "local_s", "local_piped_s", "local_with", "hosts_send", "pinned")
    bare = local([asked(0, 4, 1)], rows_of(3))
    bare = bare._replace(scaling=bare.scaling._replace(**dict.fromkeys(names, np.empty(0))))
    for name in names:
        same(getattr(checked(bare).scaling, name), getattr(full, name))
