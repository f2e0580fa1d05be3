"""Groups with roles become arrays, and transfers of KV become tables."""

import math
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_cases import scenario, with_roles

from workbench.errors import InputError
from workbench.serving import (
    Autoscaler,
    Failure,
    Group,
    Network,
    Pool,
    Scenario,
    StartUp,
    StepForm,
    Weights,
    lower,
    serve,
)
from workbench.serving.model.kv_tables import kv_links
from workbench.serving.simulated import simulate

SECOND = StepForm(compute=(1.0, 0.0, 0.0, 0.0, 0.0))
LINKS = Network(egress_bytes_per_s=4.0, ingress_bytes_per_s=4.0)


def group(role, model="a", **changes):
    return Group(
        **{"model": model, "step": SECOND, "kv_tokens": 4096, "role": role, "kv_bytes_per_token": 1.0} | changes
    )


def table(*rows):
    """Rows (model, arrival, prompt, output)."""
    return pl.DataFrame(
        list(rows), schema=["model", "arrival_s", "prompt_tokens", "output_tokens"], orient="row"
    ).with_row_index("request_id")


ONE = table(("a", 0.0, 8, 3))


def test_roles_and_links_become_arrays():
    """A rate for each group stands for each of its instances; what is sent by no model has no size."""
    links = Network(egress_bytes_per_s=(1.0, 2.0, 3.0), ingress_bytes_per_s=math.inf, latency_s=0.5)
    groups = (group("prefill", count=2), group("colocated", "b", kv_bytes_per_token=None), group("decode", count=2))
    found = lower(Scenario(groups=groups, network=links), table(("a", 0.0, 8, 3), ("c", 0.0, 8, 3)))
    assert found.instances.role.tolist() == [1, 1, 0, 2, 2]
    assert found.instances.model.tolist() == [0, 0, 1, 0, 0]
    assert found.network.egress.tolist() == [1, 1, 2, 3, 3]
    assert np.isinf(found.network.ingress).all()
    assert found.network.latency_s == 0.5
    assert found.network.kv_bytes.tolist() == [1, 0, 0]


def test_without_roles_nothing_is_sent():
    assert lower(Scenario(groups=(group("colocated"),)), ONE).network is None
    assert lower(Scenario(groups=(group("colocated"),), network=LINKS), ONE).network is None


@pytest.mark.parametrize(("groups", "links", "sentence"), [
    (("prefill", "decode"), None, "'network': is missing, but KV is sent between instances; add one"),
    (("prefill",), LINKS, "'role': of model 'a' are all prefill; add a group with role decode"),
    (("decode",), LINKS, "'role': of model 'a' are all decode; add a group with role prefill"),
    (("colocated", "prefill", "decode"), LINKS, "of model 'a' are colocated and decode and prefill; let all do both"),
    (("prefill", "decode"), Network(egress_bytes_per_s=(1.0,)), "'egress_bytes_per_s': has 1 numbers for 2 groups"),
])  # fmt: skip
def test_roles_that_make_no_sense_are_refused(groups, links, sentence):
    with pytest.raises(InputError, match=sentence):
        lower(Scenario(groups=tuple(map(group, groups)), network=links), ONE)


@pytest.mark.parametrize(("sizes", "sentence"), [
    ((None, None), "'kv_bytes_per_token': of model 'a' is missing; give one number"),
    ((1.0, 2.0), "of model 'a' is 1 and 2; give one number"),
])  # fmt: skip
def test_the_size_of_kv_is_one_number_a_model(sizes, sentence):
    groups = [group(role, kv_bytes_per_token=size) for role, size in zip(("prefill", "decode"), sizes, strict=True)]
    with pytest.raises(InputError, match=sentence):
        lower(Scenario(groups=tuple(groups), network=LINKS), ONE)


def test_groups_with_roles_are_numbered_by_role_in_a_pool():
    """Prefill of a and b, then what decodes for each; b does both phases, so that nothing decodes for it."""
    scaler = Autoscaler(policy="queue", parameters={"waiting": 4})
    groups = (group("decode", count=1), group("prefill", autoscaler=scaler), group("colocated", model="b", count=0))
    lowered = lower(Scenario(groups=groups, network=LINKS, pool=Pool(hosts=2)), ONE)
    assert lowered.instances.model.tolist() == [0, 0, 1] * 2
    assert lowered.instances.role.tolist() == [2, 1, 0] * 2
    assert lowered.scaling.kind.tolist() == [1, 0, 0, 0]
    assert lowered.scaling.start_state.tolist() == [2, 0, 0, 0, 2, 0]
    assert [lowered.scaling.bytes.size, lowered.network.egress.size] == [2, 6]


def test_roles_of_a_model_have_the_same_weights():
    groups = [
        group(role, start_up=StartUp(weights=Weights(bytes=size))) for role, size in (("prefill", 1), ("decode", 2))
    ]
    with pytest.raises(InputError, match=r"'bytes': of model 'a' is 1.0 and 2.0; give both roles the same"):
        lower(Scenario(groups=tuple(groups), network=LINKS, pool=Pool(hosts=2)), ONE)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, (1.0, 0.0)])
def test_links_have_rates(rate):
    with pytest.raises(InputError, match="give a rate above 0, or infinity"):
        Network(egress_bytes_per_s=rate)


def test_the_tables_of_two_transfers():
    """The clock of the table starts at 10 s. Eight bytes and four leave one instance at 11 s, two a second each; from
    13 s on the first has four a second, until 14 s."""
    groups = (group("prefill"), group("decode", count=2))
    asked = table(("a", 10.0, 8, 2), ("a", 10.0, 4, 2))
    run = serve(Scenario(groups=groups, network=LINKS, dispatch="round-robin"), asked)
    assert run.transfers.rows() == [
        (11, 14, "instance 0", "instance 1", 0, 8, "kv", "a", 0, "egress of instance 0 > ingress of instance 1"),
        (11, 13, "instance 0", "instance 2", 1, 4, "kv", "a", 0, "egress of instance 0 > ingress of instance 2"),
    ]
    assert run.links.rows() == [
        (11, 14, "egress of instance 0", "kv", 4), (11, 13, "ingress of instance 1", "kv", 2),
        (11, 13, "ingress of instance 2", "kv", 2), (13, 14, "ingress of instance 1", "kv", 4),
    ]  # fmt: skip
    assert run.requests["prefill_instance"].to_list() == [0, 0]
    assert run.requests["decode_instance"].to_list() == [1, 2]


def test_the_tables_of_a_cancelled_transfer():
    """Of eight bytes four are sent at 2 s, when the source fails for good."""
    run = serve(
        Scenario(
            groups=(group("prefill"), group("decode")), network=LINKS, failures=(Failure(time_s=2.0, instance=0),)
        ),
        ONE,
    )  # fmt: skip
    assert np.isnan(run.transfers["end_s"][0])
    assert run.transfers["bytes"].to_list() == [0]
    assert run.links.select("start_s", "end_s", "bytes_per_s").rows() == [(1, 2, 4)] * 2


def test_without_transfers_the_tables_are_empty():
    run = serve(Scenario(groups=(group("colocated"),)), ONE)
    assert run.transfers.is_empty()
    assert run.links.is_empty()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_links_carry_what_transfers_bring(seed):
    """Worked out from starts and ends alone, every link carries the bytes of its transfers, and never more at a time
    than it can."""
    rng = np.random.default_rng(seed)
    lowered = with_roles(rng, scenario(rng, most_requests=40))
    run = simulate(lowered._replace(failures=type(lowered.failures)(*(column[:0] for column in lowered.failures))))
    network, flows = lowered.network, run.flows
    flows = flows[~np.isnan(flows[:, 1])] if lowered.until_s == np.inf else flows[:0]
    bounded = np.isfinite(network.egress[flows[:, 3].astype(int)]) | np.isfinite(
        network.ingress[flows[:, 4].astype(int)]
    )
    links = kv_links(lowered, run._replace(flows=flows))
    for name, rates, column in (("egress", network.egress, 3), ("ingress", network.ingress, 4)):
        for j, most in enumerate(rates):
            mine = links.filter(pl.col("link") == f"{name} of instance {j}")
            carried = float((mine["bytes_per_s"] * (mine["end_s"] - mine["start_s"])).sum())
            assert carried == pytest.approx(flows[bounded & (flows[:, column] == j), 5].sum(), rel=1e-6, abs=1e-6)
            assert (mine["bytes_per_s"] <= most * (1 + 1e-9)).all()
            spans = mine.select("start_s", "end_s").rows()
            assert all(before[1] <= after[0] for before, after in pairwise(spans))
