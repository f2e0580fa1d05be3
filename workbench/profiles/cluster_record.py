"""A cluster: groups of like hosts under leaf switches, with every path a byte can take."""

from pydantic import Field, model_validator

from workbench.errors import InputError
from workbench.profiles.accelerator_record import Accelerator
from workbench.profiles.cluster_places import Place, places_of
from workbench.profiles.link_record import Link
from workbench.profiles.quantities import Alternates, Bytes, Count, Seconds, ZeroOrMore, alternate_value, sources_of
from workbench.records import Quantity, Record, Source


class LeafSwitch(Record):
    """A leaf switch; `uplink` joins it to the spine, None means that it never limits (non-blocking)."""

    name: str
    uplink: Link | None = None


class HostGroup(Record):
    """Hosts that are alike and hang under the same leaf switch.

    Attributes:
        hosts, accelerators: number of hosts, and of accelerators in each.
        accelerator: their kind.
        nics, nic: network cards per host and the link of each; 0 and None where no source states any.
        scale_up: accelerator to accelerator inside the host (NVLink), per accelerator; None: over PCIe.
        pcie: accelerator to its PCIe switch, per accelerator; None where there is none.
        accelerators_per_pcie_switch, pcie_switch: how many share the path from their switch to host memory, and that
            path; None: the path never limits.
        host_memory_bytes, host_memory: size, and the rate at which host memory gives or takes bytes in all.
        ssds, ssd: independent storage paths per host and the link of each.
        remote_stores, remote_store: paths to remote storage per host and the link of each.
        round_trip_s: to the orchestrator and back, where servers are far apart.
        leaf: name of the leaf switch.
        counts: where the counts above come from.
    """

    hosts: Count
    accelerators: Count
    accelerator: Accelerator
    nics: ZeroOrMore = 0
    nic: Link | None = None
    scale_up: Link | None = None
    pcie: Link | None = None
    accelerators_per_pcie_switch: Count = 1
    pcie_switch: Link | None = None
    host_memory_bytes: Bytes | None = None
    host_memory: Link | None = None
    ssds: Count = 1
    ssd: Link | None = None
    remote_stores: Count = 1
    remote_store: Link | None = None
    round_trip_s: Seconds | None = None
    leaf: str = "leaf"
    counts: tuple[Source, ...] = ()

    @model_validator(mode="after")
    def _nics_have_a_link(self):
        if (self.nics > 0) != (self.nic is not None):
            raise ValueError(f"nics is {self.nics} but nic is {'absent' if self.nic is None else 'given'}; give both")
        if self.accelerators_per_pcie_switch > self.accelerators:
            raise ValueError(
                f"accelerators_per_pcie_switch is {self.accelerators_per_pcie_switch} "
                f"but a host has {self.accelerators}; lower it"
            )
        return self


class Cluster(Record):
    """What a system runs on.

    Attributes:
        name, label, aliases, note: what it is called, and what a reader should know.
        groups: the hosts; indices of hosts and accelerators count through the groups in this order.
        leaves: the leaf switches.
        alternates: numbers of single papers and artifacts about this cluster that differ from, or add to, its own.
    """

    name: str = Field(min_length=1)
    label: str = ""
    aliases: tuple[str, ...] = ()
    groups: tuple[HostGroup, ...] = Field(min_length=1)
    leaves: tuple[LeafSwitch, ...] = (LeafSwitch(name="leaf"),)
    alternates: Alternates = ()
    note: str = ""

    @model_validator(mode="after")
    def _leaves_exist(self):
        names = [leaf.name for leaf in self.leaves]
        if len(set(names)) < len(names):
            raise ValueError("two leaf switches have the same name; rename one")
        for group in self.groups:
            if group.leaf not in names:
                raise ValueError(f"a group hangs under leaf {group.leaf!r}, which is not listed; add it to leaves")
        return self

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return sum(group.hosts for group in self.groups)

    @property
    def accelerators(self) -> int:
        """Number of accelerators in all hosts."""
        return sum(group.hosts * group.accelerators for group in self.groups)

    @property
    def uniform(self) -> bool:
        """Whether all hosts are alike (leaf switch and count sources aside)."""
        first = self.groups[0]
        alike = {"hosts": first.hosts, "leaf": first.leaf, "counts": first.counts}
        return all(group.model_copy(update=alike) == first for group in self.groups[1:])

    @property
    def host(self) -> HostGroup:
        """The host all hosts are like.

        Raises:
            InputError: the hosts differ.
        """
        if not self.uniform:
            raise InputError(f"cluster {self.name} has unlike hosts", "ask its groups, or choose a uniform cluster")
        return self.groups[0]

    @property
    def accelerator(self) -> Accelerator:
        """The one kind of accelerator, also where the hosts differ otherwise.

        Raises:
            InputError: there are several kinds.
        """
        kinds = {group.accelerator for group in self.groups}
        if len(kinds) > 1:
            raise InputError(f"cluster {self.name} has {len(kinds)} kinds of accelerators", "ask its groups")
        return self.groups[0].accelerator

    @property
    def nic(self) -> Link:
        """The network card of every host.

        Raises:
            InputError: the hosts differ, or no source states their network.
        """
        nic = self.host.nic
        if nic is None:
            raise InputError(
                f"cluster {self.name} has no network card: no source states one",
                "choose another cluster, or give nic_bytes_per_s",
            )
        return nic

    @property
    def places(self) -> tuple[Place, ...]:
        """Where each accelerator sits: host, PCIe switch, network cards, storage paths, leaf switch."""
        # Worked out anew each time: a value kept in the record would outlive model_copy(update=...).
        return places_of(self.groups, [leaf.name for leaf in self.leaves])

    def with_hosts(self, hosts: int) -> "Cluster":
        """A uniform cluster of the same kind with another number of hosts, all under its first host's leaf switch.

        Raises:
            InputError: the hosts differ, or the number is not 1 or more.
        """
        if isinstance(hosts, bool) or not isinstance(hosts, int) or hosts < 1:
            raise InputError(f"a cluster cannot have {hosts!r} hosts", "give a whole number of 1 or more")
        if hosts == self.hosts:
            return self
        counts = tuple(
            count.model_copy(update={"value": str(hosts), "status": "user", "source": "given in code"})
            if count.quantity.endswith("hosts")
            else count
            for count in self.host.counts
        )
        group = self.host.model_copy(update={"hosts": hosts, "counts": counts})
        return self.model_copy(update={"groups": (group,)})

    def alternate(self, preset: str, quantity: str) -> Quantity:
        """A number of one paper or artifact about this cluster."""
        return alternate_value(f"cluster {self.name}", self.alternates, preset, quantity)

    def sources(self, alternates: bool = False) -> list[Source]:
        """Every number with where it comes from; on request also what single papers say instead."""
        return sources_of(self, alternates)
