"""Serving while weights come: the pipelines of a scale-out by λScale, and what hosts keep in memory for it."""

import functools
import math
from collections.abc import Mapping

from workbench.operating.system_record import System
from workbench.profiles import Model
from workbench.scaling.model import ScaleOut, multicast_plans, warm_plans
from workbench.serving import MulticastPlan, Pool, StepForm, Weights
from workbench.serving.model.pooling import MOST_SOURCES, MOST_TARGETS


def serving_early(system: System, weights: Weights, model: Model, step: StepForm, places: int) -> Weights:
    """The weights of an instance, with the pipelines that a system forms and what it does with hosts' memory.

    Members of a pipeline run every step for `stages` times `stage_s` longer, in which it is handed from one stage to
    the next (λScale §4.3; the seconds are not published).

    Parameters:
        system: whose choices; on another path than *multicast* they play no part.
        weights: as the cluster's links tell them, without pipelines.
        model: in the number format of the deployment.
        step: of an instance that has all its weights.
        places: instances of any model that the cluster holds; a multicast has one fewer targets at most.

    Raises:
        InputError: a model of fewer layers than there are stages.
    """
    if weights.multicast is None:
        return weights
    settings = {"memory_first": system.memory_first, "hosts_send": system.hosts_send, "pinned": system.pinned}
    if system.pipelines == "none":
        return weights.model_copy(update=settings)
    sent = weights.multicast
    shape = ScaleOut(
        sources=1, targets=1, blocks=system.stages, parts=system.blocks // system.stages, variant=system.pipelines,
        weight_bytes=weights.bytes, bytes_per_s=sent.bytes_per_s, alpha_s=sent.alpha_s,
    )  # fmt: skip
    plans = _plans(shape, model.block_bytes(system.stages), weights.dram_bytes_per_s, min(places - 1, MOST_TARGETS))
    early = {"plans": plans, "piped_step": piped(step, system.stages * system.stage_s), "switch": system.switch}
    return weights.model_copy(update=settings | {"multicast": sent.model_copy(update=early)})


def piped(step: StepForm, overhead_s: float) -> StepForm:
    """The same steps, each longer by some seconds.

    >>> piped(StepForm(compute=(0.5, 0, 0, 0, 1), memory=(1, 0, 0, 0, 0)), 0.25).seconds(0, 0, 0, 2)
    np.float64(2.75)
    """
    rows = {name: (row[0] + overhead_s, *row[1:]) for name, row in (("compute", step.compute), ("memory", step.memory))}
    return step.model_copy(update=rows | {"source": f"{step.source}, and {overhead_s:g} s between stages"})


def pinned_models(
    system: System, models: Mapping[str, Model], pool: Pool, memory_bytes: float = math.inf
) -> tuple[str, ...]:
    """Which models stay in the memory of their pinned hosts: in their order, each that finds room beside those before.

    Parameters:
        system: path *multicast* keeps all on the first hosts, in what the pool gives to weights; path *chains* spreads
            them over the hosts (see `workbench.serving.Weights`), in all of a host's memory.
        models: in the number format of the deployment.
        pool: how many hosts there are, and what each gives to weights.
        memory_bytes: of a host.
    """
    found, spread = [], system.path == "chains"
    room = [memory_bytes if spread else pool.cache_bytes] * pool.hosts
    for number, (name, model) in enumerate(models.items()):
        first = number if spread else 0
        hosts = {(first + k) % pool.hosts for k in range(min(system.pinned, pool.hosts))}
        if system.path in ("multicast", "chains") and hosts and all(model.weight_bytes <= room[host] for host in hosts):
            found.append(name)
            for host in hosts:
                room[host] -= model.weight_bytes
    return tuple(found)


@functools.lru_cache(maxsize=64)
def _plans(shape: ScaleOut, block_bytes: tuple[int, ...], bytes_per_s: float, most: int) -> tuple[MulticastPlan, ...]:
    """For all sizes of a multicast and of loads from memory at the same time; kept, since a search asks again."""
    if most < 1:
        return ()
    return multicast_plans(shape, min(most, MOST_SOURCES), most) + warm_plans(block_bytes, bytes_per_s, most)
