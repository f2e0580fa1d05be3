"""Names of systems and policies, what they stand for, and what is refused."""

import math

import polars as pl
import pytest
from operating_cases import APART, SCALING

import workbench as wb
from workbench.chains import POLICIES as CHAIN_POLICIES
from workbench.errors import InputError, UnknownName, UserError
from workbench.operating import Rule, System
from workbench.operating.choices import DISPATCH, MEANT, NOT_BUILT, SYSTEMS, find_system
from workbench.operating.pool_systems import POOL_SYSTEMS
from workbench.operating.scaling_rule import RULES, rule_of
from workbench.operating.system_record import PROVISIONING
from workbench.serving import ENGINES, ROUTES
from workbench.serving.policy import SCALERS, SOURCES


def test_tables_hold_what_can_be_named():
    table = wb.systems().filter(pl.col("provisioning") != "pool")  # those are tested beside the pool's runs
    assert table["system"].to_list() == [
        "fixed",
        "fixed@half",
        "fixed@average",
        "dedicated",
        *SCALING,
        *APART,
        "distserve-full",
        "distserve-half",
    ]
    assert set(table["engine"]) <= set(ENGINES)
    assert set(table["provisioning"]) == set(PROVISIONING)
    policies = wb.policies()
    assert policies.filter(decision="dispatch")["policy"].to_list() == list(ROUTES)
    assert policies.filter(decision="autoscaler")["policy"].to_list() == list(SCALERS) == list(RULES)
    assert set(DISPATCH) == set(ROUTES)
    assert policies.filter(decision="chains")["policy"].to_list() == list(CHAIN_POLICIES)


def test_the_table_shows_path_plan_cache_and_autoscaler_of_those_that_scale():
    rows = {row["system"]: row for row in wb.systems().to_dicts() if row["provisioning"] != "pool"}
    for name, row in rows.items():
        assert (
            (row["autoscaler"] != "")
            == (row["weights"] != "")
            == (row["tick_s"] is not None)
            == (name in SCALING + APART)
        )
    assert {row["weights"] for row in rows.values()} - {""} <= set(SOURCES)
    assert (rows["nccl"]["plan"], rows["faasnet"]["plan"], rows["ideal"]["plan"]) == (
        "ring_broadcast", "faasnet_tree", "",
    )  # fmt: skip
    assert rows["serverlessllm@blitzscale"]["cache"] == "a host's memory, 300 s unused"
    assert rows["allcache"]["cache"] == "every model on every host"
    assert rows["nccl"]["cache"] == "none"


def test_numbers_of_the_papers_stand_where_they_should():
    """OSDI'25 §3: 5 minutes (its artifact 30 s); artifact: 333 ms kept warm. MLSys'26 §2.3: 15 s; artifact: a tick of
    1 s, batches of 4, 16 blocks, nothing kept."""
    blitz, faas = find_system("serverlessllm@blitzscale"), find_system("serverlessllm@lambdascale")
    assert (blitz.cache_ttl_s, wb.system(blitz, variant="artifact").cache_ttl_s, blitz.keep_s) == (300, 30, 1 / 3)
    assert (faas.cache_ttl_s, faas.tick_s, faas.limit, faas.blocks, faas.keep_s) == (15, 1, 4, 16, 0)
    for name in SCALING:
        one = find_system(name)
        assert one.autoscaler in (blitz.autoscaler, faas.autoscaler)
        assert one.engine_start.seconds == (0.1 if name == "nccl" else 0)


@pytest.mark.parametrize("name", SCALING)
def test_every_choice_that_is_not_usual_says_where_it_comes_from(name):
    table = find_system(name).choices
    assert set(table.columns) == {"choice", "value", "source"}
    usual = {row["choice"]: row["value"] for row in System(name="x").choices.to_dicts()}
    for row in table.to_dicts():
        told = row["source"] not in ("as usual here", "")
        assert told or row["value"] == usual[row["choice"]], row


@pytest.mark.parametrize("name", [*NOT_BUILT, "chains@artifact"])
def test_what_is_described_and_not_built_says_so(name):
    with pytest.raises(UserError, match=rf"System '{name}' is not built yet.*; choose one of fixed, .*\.$") as caught:
        find_system(name)
    assert str(caught.value).count(". ") == 0


def test_nothing_is_both_built_and_not():
    assert not set(SYSTEMS) & {*NOT_BUILT, *POOL_SYSTEMS}
    assert not set(POOL_SYSTEMS) & {*NOT_BUILT, *MEANT}
    assert set(MEANT.values()) <= set(SYSTEMS)
    assert not set(MEANT) & {*SYSTEMS, *NOT_BUILT}


def test_an_unknown_name_lists_near_ones():
    with pytest.raises(UnknownName, match="near names: fixed"):
        find_system("fixd")
    with pytest.raises(UnknownName, match=r"near names: .*serverlessllm"):
        find_system("serverlessllm@blitz")
    with pytest.raises(UnknownName, match="There is no system named '3'"):
        find_system(3)


def test_a_hybrid_changes_what_it_says_and_no_longer_names_that_source():
    mixed = wb.system("nccl", provisioning=3, dispatch="random", path="tiers", keep_s=math.inf, warm_up=2)
    assert (mixed.provisioning, mixed.dispatch, mixed.engine) == (3, "random", "continuous")
    assert (mixed.schedule, mixed.path, mixed.keep_s, mixed.warm_up.seconds) == ("ring_broadcast", "tiers", math.inf, 2)
    assert mixed.sources["path"] == mixed.sources["dispatch"] == "given in code"
    assert mixed.sources["schedule"] == find_system("nccl").sources["schedule"]
    assert wb.system("nccl") is find_system("nccl")
    assert mixed.name == "nccl with own provisioning, dispatch, path, keep_s and 1 more"
    assert wb.system("nccl", keep_s=1, name="mine").name == "mine"


def test_an_artifact_differs_where_the_paper_says_otherwise():
    blitz = wb.system("serverlessllm", variant="artifact", tick_s=1.0)
    assert (blitz.variant, blitz.cache_ttl_s, blitz.tick_s) == ("artifact", 30, 1)
    assert blitz.name == "serverlessllm@blitzscale, artifact with own tick_s"
    assert blitz.sources["cache_ttl_s"] == "serverlessllm@blitzscale's artifact"
    assert blitz.sources["tick_s"] == "given in code"
    assert wb.system("serverlessllm", variant="artifact", cache_ttl_s=7).cache_ttl_s == 7
    assert wb.system("ideal", variant="artifact").keep_s == find_system("ideal").keep_s
    with pytest.raises(InputError, match="take the system by name again"):
        blitz.replaced(variant="paper")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"provisioning": 0}, "provisioning"),
        ({"provisioning": "most"}, "provisioning"),
        ({"limit": 0}, "limit"),
        ({"colour": 1}, "is not a known field"),
        ({"least": -1}, "least"),
        ({"tick_s": 0}, "tick_s"),
        ({"scrape_s": -1}, "scrape_s"),
        ({"keep_s": -1}, "keep_s.*0 or more, or infinity"),
        ({"cache_ttl_s": math.nan}, "cache_ttl_s.*0 or more, or infinity"),
        ({"cache_bytes": -1}, "cache_bytes"),
        ({"schedule": "star"}, "schedule"),
        ({"blocks": 0}, "blocks"),
        ({"engine_start": -1}, "Part.seconds"),
        ({"variant": "mine"}, "variant"),
        ({"sources": {"colour": "x"}}, "'colour' is no choice of a system"),
    ],
)
def test_choices_that_are_none_are_refused(changes, words):
    with pytest.raises(InputError, match=words) as caught:
        System(name="x", **changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "near"),
    [
        ({"engine": "continuouss"}, "continuous"),
        ({"dispatch": "rand"}, "random"),
        ({"path": "tier"}, "tiers"),
        ({"autoscaler": "cue"}, "queue"),
        ({"autoscaler": {"policy": "queue", "wait": 4}}, "waiting"),
    ],
)
def test_misspelt_choices_list_near_ones(changes, near):
    with pytest.raises(UnknownName, match=near):
        System(name="x", **changes)


@pytest.mark.parametrize(
    "given",
    [
        "backlog:lower_s=0.2,down_step=1",
        " backlog : lower_s = 0.2 , down_step = 1 ",
        {"policy": "backlog", "lower_s": 0.2, "down_step": 1},
        {"policy": "backlog", "parameters": {"lower_s": 0.2}, "down_step": 1},
        Rule(policy="backlog", parameters={"lower_s": 0.2}, down_step=1),
    ],
)
def test_a_rule_reads_from_text_and_mapping_alike(given):
    found = rule_of(given)
    assert found == Rule(policy="backlog", parameters={"lower_s": 0.2}, down_step=1)
    assert rule_of(str(found)) == found
    assert System(name="x", autoscaler=given).autoscaler == found


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("queue:waiting", "field 'autoscaler': has 'waiting'; write name=number"),
        ("queue:waiting=", "write name=number"),
        ("queue:waiting=0", "waiting.*greater than 0"),
        ("queue:waiting=inf", "waiting"),
        ("queue:down_ticks=0", "down_ticks"),
        (3, "field 'autoscaler': is 3; give a name of wb.policies"),
        ({"waiting": 3}, "give a name of wb.policies"),
        (None, "is None"),
    ],
)
def test_rules_that_are_none_are_refused(given, words):
    with pytest.raises(InputError, match=words):
        rule_of(given)
