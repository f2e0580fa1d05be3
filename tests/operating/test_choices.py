"""Names of systems and policies, and what is refused."""

import pytest

import workbench as wb
from workbench.errors import InputError, UnknownName, UserError
from workbench.operating import System
from workbench.operating.choices import DISPATCH, NOT_BUILT, PROVISIONING, SYSTEMS, find_system
from workbench.serving import ENGINES, ROUTES


def test_tables_hold_what_can_be_named():
    table = wb.systems()
    assert table["system"].to_list() == ["fixed", "fixed@half", "fixed@average", "dedicated"]
    assert set(table["engine"]) <= set(ENGINES)
    assert set(table["provisioning"]) == set(PROVISIONING)
    policies = wb.policies()
    assert policies["policy"].to_list() == list(ROUTES)
    assert set(DISPATCH) == set(ROUTES)
    assert set(policies["decision"]) == {"dispatch"}


@pytest.mark.parametrize("name", [*NOT_BUILT, "serverlessllm@aegaeon", "blitzscale@artifact"])
def test_what_is_described_and_not_built_says_so(name):
    with pytest.raises(UserError, match=rf"System '{name}' is not built yet; choose one of fixed, .*\.$"):
        find_system(name)


def test_nothing_is_both_built_and_not():
    assert not set(SYSTEMS) & set(NOT_BUILT)


def test_an_unknown_name_lists_near_ones():
    with pytest.raises(UnknownName, match="near names: fixed"):
        find_system("fixd")
    with pytest.raises(UnknownName, match="There is no system named '3'"):
        find_system(3)


def test_a_hybrid_changes_what_it_says():
    mixed = SYSTEMS["fixed"].replaced(provisioning=3, dispatch="random")
    assert (mixed.provisioning, mixed.dispatch, mixed.engine) == (3, "random", "continuous")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"provisioning": 0}, "provisioning"),
        ({"provisioning": "most"}, "provisioning"),
        ({"limit": 0}, "limit"),
        ({"colour": 1}, "is not a known field"),
    ],
)
def test_choices_that_are_none_are_refused(changes, words):
    with pytest.raises(InputError, match=words):
        System(name="x", **changes)


@pytest.mark.parametrize(
    ("changes", "near"), [({"engine": "continuouss"}, "continuous"), ({"dispatch": "rand"}, "random")]
)
def test_misspelt_choices_list_near_ones(changes, near):
    with pytest.raises(UnknownName, match=near):
        System(name="x", **changes)
