"""A system whose instances compute prompts or decode only: how many there are of each, and what they send KV over."""

from collections.abc import Mapping
from typing import NamedTuple

from workbench.errors import InputError, UserError
from workbench.operating.growing import Bounds, autoscaler_of
from workbench.operating.system_record import System
from workbench.profiles import Cluster, Deployment, Model
from workbench.records import LARGEST
from workbench.serving import Group, Network, StartUp, StepForm


class Served(NamedTuple):
    """One model on a cluster.

    Attributes:
        step, kv_tokens: of an instance.
        start_up: by which it starts.
        requests_per_s: that an instance bears on average.
    """

    step: StepForm
    kv_tokens: int
    start_up: StartUp
    requests_per_s: float


def bounds_apart(system: System, deployment: Deployment) -> tuple[Bounds, Bounds]:
    """Least and most instances that compute prompts, and that decode: those of the deployment, else at least the
    system's `least`.

    Raises:
        InputError: a colocated deployment.
    """
    if deployment.colocated:
        raise InputError(
            f"is set, but instances of {system.name} compute prompts or decode only", "leave it out", field="colocated"
        )
    given = (deployment.prefill, deployment.decode)
    prefill, decode = (Bounds(*(one or (system.least, LARGEST)), "") for one in given)
    return prefill, decode


def groups_apart(
    system: System, deployment: Deployment, cluster: Cluster, network: Network, models: Mapping[str, Model],
    served: Mapping[str, Served], places: int,
) -> tuple[Group, ...]:  # fmt: skip
    """Two groups a model, with the counts that they have at first.

    Parameters:
        models: in the deployment's number formats.
        served: the same models on the cluster.
        places: instances that the cluster holds.

    Raises:
        UserError: a provisioning that does not say how many of each, or more than the cluster holds.
    """
    bounds, groups = bounds_apart(system, deployment), []
    for name, one in served.items():
        kv_bytes = models[name].kv_bytes_per_token
        for role, bound in zip(("prefill", "decode"), bounds, strict=True):
            changing = {"busy": system.mutate, "requeue": system.requeue, "stays": system.kv_stays}
            scaler = changing if role == "decode" else {}
            moved = min(network.egress_bytes_per_s, network.ingress_bytes_per_s) / kv_bytes
            groups.append(
                Group(
                    model=name,
                    role=role,
                    kv_bytes_per_token=kv_bytes,
                    count=_at_first(system, bound, role),
                    engine=system.batching,
                    step=one.step,
                    kv_tokens=one.kv_tokens,
                    limit=system.limit if role == "prefill" else None,
                    batch_tokens=system.batch_tokens if role == "prefill" else None,
                    autoscaler=autoscaler_of(
                        system, bound, one.step, one.kv_tokens, deployment.tp, one.requests_per_s, moved
                    ).model_copy(update=scaler),
                    start_up=one.start_up,
                )
            )
    wanted = sum(group.count for group in groups)
    if wanted > places:
        raise UserError(
            f"{wanted} instances x TP {deployment.tp} = {wanted * deployment.tp} accelerators are wanted at first, but "
            f"{cluster.name} has {cluster.accelerators}, enough for {places} instances; lower the bounds of the "
            "deployment, or take a larger cluster."
        )
    return tuple(groups)


def _at_first(system: System, bound: Bounds, role: str) -> int:
    """How many instances of a role a model has at first."""
    share = system.provisioning
    if isinstance(share, int) or share in ("one each", "least"):
        wanted = share if isinstance(share, int) else 1 if share == "one each" else bound.least
        return max(bound.least, min(wanted, bound.most))
    if share in ("full", "half") and bound.most < LARGEST:
        return max(bound.least, bound.most if share == "full" else -(-bound.most // 2))
    raise InputError(
        f"is {share!r}, which does not say how many instances {role}",
        f"choose 'least', 'one each' or a number, or 'full' or 'half' and a deployment with {role}=(least, most)",
        field="provisioning",
    )
