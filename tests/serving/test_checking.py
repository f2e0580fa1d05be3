"""Arrays of ranks, prefixes, roles, networks and pipelines that make no sense are refused in one sentence."""

import numpy as np
import pytest
from scaling_cases import growing, row
from serving_cases import asked, cluster, migrating, place

from workbench.errors import InputError
from workbench.serving.model.checking import checked
from workbench.serving.model.lowered import Requests

PLAIN = cluster([asked(0, 4, 1), asked(1, 4, 1)], [place()])
SENT = migrating([asked(0, 4, 2)], [place(role=1), place(role=2)])
SCALED = growing([asked(0, 4, 1)], [row(0), row(1)], multicast_s=[[[1.0, 2.0]] * 2])


@pytest.mark.parametrize(("change", "sentence"), [
    ({"rank": np.array([0, -1])}, "row 2, field 'rank': .* give whole numbers of 0 or more"),
    ({"rank": np.array([0])}, "field 'rank': .* give 2 whole numbers"),
    ({"prefix": np.array([0, 5])}, "row 2, field 'prefix': .* number the hash blocks from 0, without gaps"),
    ({"prefix": np.array([0, -1])}, "row 2, field 'prefix'"),
    ({"prefix_at": np.array([0, 2, 1])}, "'prefix_at': does not rise from 0 to the number of ids"),
    ({"prefix_at": np.array([0, 1, 1])}, "'prefix_at': does not rise"),
    ({"prefix_at": np.array([0, 2])}, "field 'prefix_at': .* give 3 whole numbers"),
    ({"prefix_tokens": 0}, "'prefix_tokens': is 0; give a whole number from 1"),
])  # fmt: skip
def test_requests(change, sentence):
    sound = {"prefix": np.array([0, 1]), "prefix_at": np.array([0, 1, 2]), "prefix_tokens": 4}
    checked(PLAIN._replace(requests=PLAIN.requests._replace(**sound)))
    with pytest.raises(InputError, match=sentence):
        checked(PLAIN._replace(requests=PLAIN.requests._replace(**sound | change)))


def test_what_is_not_given_is_neutral():
    found = checked(PLAIN._replace(requests=Requests(*PLAIN.requests[:5]))).requests
    assert (found.rank.tolist(), found.prefix_at.tolist(), found.prefix_tokens) == ([0, 0], [0, 0, 0], 0)


@pytest.mark.parametrize(("role", "sentence"), [
    ([1, 3], "row 2, field 'role': .* give 0 .colocated., 1 .prefill. or 2 .decode."),
    ([1, 1], "'role': has a model 0 that is not served by colocated instances only, or by both others"),
    ([0, 2], "'role': has a model 0"),
    ([0, 1], "'role': has a model 0"),
])  # fmt: skip
def test_roles(role, sentence):
    with pytest.raises(InputError, match=sentence):
        checked(SENT._replace(instances=SENT.instances._replace(role=np.array(role))))


def test_roles_without_a_network():
    with pytest.raises(InputError, match=r"row 1, field 'role': .* give a network for KV caches"):
        checked(SENT._replace(network=None))


@pytest.mark.parametrize(("change", "sentence"), [
    ({"egress": np.array([1.0, 0.0])}, "row 2, field 'egress': .* give rates above 0, or infinity"),
    ({"ingress": np.array([np.nan, 1.0])}, "row 1, field 'ingress'"),
    ({"egress": np.array([1.0])}, "'egress': has shape"),
    ({"latency_s": -1.0}, "'latency_s': is -1.0; give a finite number of 0 or more"),
    ({"kv_bytes": np.array([-1.0])}, "row 1, field 'kv_bytes': .* give bytes of 0 or more"),
    ({"kv_bytes": np.empty(0)}, "'kv_bytes': has 0 numbers; give one for every model"),
])  # fmt: skip
def test_networks(change, sentence):
    with pytest.raises(InputError, match=sentence):
        checked(SENT._replace(network=SENT.network._replace(**change)))


def test_groups_that_scale():
    """With roles there is one number a model and role; *roles* is a policy of models that have them."""
    with pytest.raises(InputError, match="'kind': has 1 numbers; give 2, one for every model and role"):
        checked(SCALED._replace(network=SENT.network, instances=SCALED.instances._replace(role=np.array([1, 2]))))
    with pytest.raises(InputError, match=r"row 1, field 'kind': .* give the policy roles to models whose instances"):
        checked(SCALED._replace(scaling=SCALED.scaling._replace(kind=np.array([5]))))


@pytest.mark.parametrize(("change", "sentence"), [
    ({"piped_s": np.full((1, 1, 2, 2), -1.0)}, "'piped_s': holds a value"),
    ({"piped_s": np.full((1, 1, 2, 2), np.nan)}, "'piped_s': .* give numbers, or infinity"),
    ({"piped_s": np.zeros((1, 1, 2, 2))}, "'piped_with': .* number the pipeline of every target that piped_s has"),
    ({"piped_s": np.zeros((1, 2, 1, 2))}, "'piped_s': has shape"),
    ({"piped_with": np.full((1, 1, 2, 2), -2)}, "'piped_with': .* give whole numbers of -1 or more"),
    ({"piped_with": np.zeros(3, int)}, "'piped_with': .* give 4 whole numbers"),
    ({"piped_form": np.zeros((2, 2, 5))}, "row 1, field 'piped_form': .* give every step a time above 0"),
    ({"switch_whole": np.array([2])}, "row 1, field 'switch_whole': .* give 0 or 1"),
])  # fmt: skip
def test_pipelines(change, sentence):
    with pytest.raises(InputError, match=sentence):
        checked(SCALED._replace(scaling=SCALED.scaling._replace(**change)))
