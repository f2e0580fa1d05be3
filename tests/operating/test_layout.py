"""How many instances there are, who gets them, and the arithmetic of what does not fit."""

import itertools
import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operating_cases import SECOND, SERVER, TICKS, gpus, table

import workbench as wb
from workbench.errors import UserError
from workbench.operating.choices import find_system
from workbench.operating.layout import Hosted, divided, instance_places, needed_instances
from workbench.operating.simulating import resolved
from workbench.serving import Engine, StepForm

INT4 = wb.deployment(dtype="int4")
MANY = find_system("fixed").replaced(provisioning=17)
ONE = table((0.0, 100, 10), (1.0, 100, 10))


def counts(system, cluster, requests=ONE, **options):
    asked = resolved(system, cluster=cluster, models="llama-3-8b", trace=requests, step=SECOND, **options)
    return {group.model: group.count for group in asked.scenario.groups}


@pytest.mark.parametrize(
    ("system", "tp", "instances"),
    [
        ("fixed", 1, 16),
        ("fixed", 2, 8),
        ("fixed", 8, 2),
        ("fixed@half", 1, 8),
        ("fixed@half", 8, 1),
        ("dedicated", 1, 1),
    ],
)
def test_instances_of_two_hosts_of_eight(system, tp, instances):
    assert counts(system, gpus(8, hosts=2), deployment=wb.deployment(tp=tp)) == {"default": instances}


def test_an_instance_stays_inside_its_host():
    assert len(instance_places(gpus(3, hosts=4), 2)) == 4  # 3 // 2 = 1 a host, though 12 // 2 = 6


def test_on_average_as_many_as_the_work_takes():
    """Prompts of 2.5 s at one a second: work for 2.5 instances, so three; the last arrival ends the span."""
    seconds = table(*((float(k), 2_500_000, 1) for k in range(101)))
    average = SERVER.replaced(provisioning="average")
    asked = resolved(average, cluster=gpus(8), models="llama-3-8b", trace=seconds, step=TICKS, kv_tokens=2**40)
    assert asked.layout.needed["default"] == pytest.approx(101 * 2.5 / 100)
    assert [group.count for group in asked.scenario.groups] == [3]


def test_a_decoded_token_costs_its_share_of_a_full_batch():
    """Steps of 10 ms + 1 ms a request, four at once: 14/4 ms a token; the prompt 11 ms; 9 further tokens."""
    hosted = Hosted(step=StepForm(compute=(0.010, 0, 0, 0, 0.001)), kv_tokens=10**6)
    found = needed_instances(table((0.0, 50, 10), (1.0, 50, 10)), 1.0, hosted, Engine(slots=4))
    assert found == pytest.approx(2 * (0.011 + 9 * 0.014 / 4))


def test_several_models_share_by_work_with_at_least_one_each():
    rows = [(float(k), 100, 10) for k in range(30)]
    requests = table(*rows, model=pl.Series(["a"] * 20 + ["b"] * 8 + ["c"] * 2))
    found = counts("fixed", gpus(8), requests)
    assert sum(found.values()) == 8
    assert found["a"] > found["b"] >= found["c"] == 1


@given(
    st.integers(1, 60),
    st.dictionaries(st.text(min_size=1, max_size=3), st.floats(0, 1e6, allow_subnormal=False), min_size=1, max_size=9),
)
def test_dividing_gives_all_and_each_at_least_one(extra, needed):
    total = len(needed) + extra
    found = divided(total, needed)
    assert sum(found.values()) == total
    assert min(found.values()) >= 1
    by_need = sorted(needed, key=needed.get)
    assert all(found[low] <= found[high] + 1 for low, high in itertools.pairwise(by_need))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"models": "llama-3-70b"},
            r"does not fit a100-80gb-sxm: 141\.\d+ GB of weights / TP 1 = 141\.\d+ GB each, but 0\.9 x",
        ),
        ({"deployment": wb.deployment(tp=16)}, r"takes 16 accelerators of one host.*at most 8 \(8 // 16 = 0\)"),
        ({"deployment": wb.deployment(tp=3)}, r"which TP 3 does not divide \(32 = 10 x 3 \+ 2\)"),
        ({"models": "deepseek-v2"}, r"(?i)deepseek-v2.*experts"),
        (
            {"system": find_system("fixed").replaced(provisioning=17)},
            r"1 models x 17 instances x TP 1 = 17 accelerators.*has 16",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence_with_the_arithmetic(options, sentence):
    given = {"system": "fixed", "models": "llama-3-8b", "cluster": gpus(8, hosts=2), "trace": ONE} | options
    with pytest.raises(UserError, match=sentence) as caught:
        wb.simulate(given.pop("system"), **given)
    assert str(caught.value).count(". ") == 0
    assert str(caught.value).endswith(".")


def test_more_models_than_instances_are_refused():
    many = table(*((float(k), 10, 2) for k in range(5)), model=pl.Series(list("abcde")))
    for system in ("fixed", "fixed@half", "fixed@average", "dedicated"):
        with pytest.raises(UserError, match=re.escape("5 models x 1 instances x TP 1 = 5 accelerators")):
            counts(system, gpus(4), many)
    assert counts("dedicated", gpus(5), many) == dict.fromkeys("abcde", 1)


def test_a_memory_that_leaves_less_than_a_block_is_refused():
    with pytest.raises(UserError, match="leaves 8 tokens, less than a block of 16"):
        counts("fixed", gpus(1), kv_tokens=8)


def test_unlike_hosts_have_their_own_speed_and_room_and_only_those_that_hold_the_model_count():
    """Nine A100s and slices of them; Llama-2-7B in 16 bits (13.5 GB) fits whole ones and 20 GB slices, not 10 GB."""
    cluster = wb.cluster("bprr-testbed-9")
    fitting = [kind for kind in instance_places(cluster, 1) if 0.9 * float(kind.memory_bytes) > 13.48e9]
    run = wb.simulate("fixed", cluster=cluster, models="llama-2-7b", trace=ONE)
    assert sum(group.count for group in run.scenario.groups) == len(fitting) < cluster.accelerators
    mixed = wb.simulate("fixed", cluster="server-chains-testbed", models="llama-2-7b", trace=ONE, deployment=INT4)
    fast, slow = mixed.scenario.groups
    assert fast.kv_tokens > slow.kv_tokens
    assert fast.step.memory[0] < slow.step.memory[0]  # reading the weights takes longer on the smaller slice


def test_heads_and_steps_that_cannot_be_are_refused():
    with pytest.raises(UserError, match=r"has 8 KV heads, which TP 16 does not divide"):
        wb.simulate("fixed", cluster=gpus(16), models="llama-3-8b", trace=ONE, deployment=wb.deployment(tp=16))
    with pytest.raises(UserError, match="field 'step': is 3"):
        wb.simulate("fixed", cluster=gpus(1), models="llama-3-8b", trace=ONE, step=3)


def test_an_odd_number_of_accelerators_serves_with_those_that_make_whole_instances():
    assert counts("fixed", gpus(3), deployment=wb.deployment(tp=2)) == {"default": 1}
