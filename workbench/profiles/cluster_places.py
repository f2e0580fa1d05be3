"""Where each accelerator of a cluster sits, as plain indices a simulator maps its resources to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from workbench.profiles.cluster_record import HostGroup


class Place(NamedTuple):
    """The place of one accelerator.

    All indices count through the whole cluster from 0, so that two accelerators share a resource exactly when they have
    the same index. Accelerators of a host are dealt to its network cards and storage paths in equal runs: with fewer
    cards than accelerators several share one, with more an accelerator has several.

    Attributes:
        accelerator, host, group, leaf: its own index, its host's, its host group's, its leaf switch's.
        local: its index inside the host.
        pcie_switch: the PCIe switch it hangs under.
        nics, ssds, remote_stores: the cards and paths it uses; empty where the host has none.
    """

    accelerator: int
    host: int
    group: int
    leaf: int
    local: int
    pcie_switch: int
    nics: tuple[int, ...]
    ssds: tuple[int, ...]
    remote_stores: tuple[int, ...]


def places_of(groups: Sequence["HostGroup"], leaves: Sequence[str]) -> tuple[Place, ...]:
    """The places of all accelerators, in order."""
    places: list[Place] = []
    host = switch = nic = ssd = store = 0
    for index, group in enumerate(groups):
        leaf = leaves.index(group.leaf)
        ssds = group.ssds if group.ssd is not None else 0
        stores = group.remote_stores if group.remote_store is not None else 0
        per_switch = group.accelerators_per_pcie_switch
        for _ in range(group.hosts):
            for local in range(group.accelerators):
                places.append(
                    Place(
                        accelerator=len(places),
                        host=host,
                        group=index,
                        leaf=leaf,
                        local=local,
                        pcie_switch=switch + local // per_switch,
                        nics=_share(local, group.accelerators, group.nics, nic),
                        ssds=_share(local, group.accelerators, ssds, ssd),
                        remote_stores=_share(local, group.accelerators, stores, store),
                    )
                )
            host += 1
            switch += -(-group.accelerators // per_switch)
            nic += group.nics
            ssd += ssds
            store += stores
    return tuple(places)


def _share(local: int, accelerators: int, paths: int, first: int) -> tuple[int, ...]:
    """Which of a host's paths one of its accelerators uses.

    >>> _share(5, 8, 4, 0), _share(1, 2, 8, 0), _share(0, 3, 2, 10), _share(0, 8, 0, 0)
    ((2,), (4, 5, 6, 7), (10,), ())
    """
    if paths == 0:
        return ()
    if paths <= accelerators:
        return (first + local * paths // accelerators,)
    return tuple(range(first + local * paths // accelerators, first + (local + 1) * paths // accelerators))
