"""Where every complete copy of a model's weights is, and at which version: BlitzScale's global parameter pool.

The pool keeps at most one copy of each model in the memory of all hosts together, and never lets the last copy go.

Source: BlitzScale (OSDI'25) §5.3 and appendix A.1; notes on BlitzScale, §2.8. Versions, and how a lost copy is made
again (from the store, on the host with most room), are choices of this project.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from workbench.errors import InputError, UnknownName
from workbench.records import not_negative, positive, whole


class Copy(NamedTuple):
    """One complete copy.

    Attributes:
        model: name.
        version: of the weights.
        host: on which it is.
        instance: whose accelerators hold it; "" for a copy in the host's memory.
    """

    model: str
    version: int
    host: str
    instance: str = ""


class Step(NamedTuple):
    """What the pool did: kind (load, drop, lost, restore), and which copy."""

    kind: str
    copy: Copy


class ParameterPool:
    """All copies of all models, kept up as instances come, go and fail.

    Parameters:
        hosts: name -> bytes of memory for weights.
        bytes_of: model -> bytes of a copy.
        copies: of each model in the hosts' memory when no instance holds it; 1 in the paper, 0 to rely on instances.

    Every change returns the steps that it took, in order; bytes follow from them.

    >>> pool = ParameterPool({"a": 100.0, "b": 100.0}, {"m": 60.0, "n": 60.0})
    >>> [step.copy.host for step in pool.spread()]
    ['a', 'b']
    >>> [step.kind for step in pool.deploy("m", "b", "instance 0")]
    ['load', 'drop']
    """

    def __init__(self, hosts: Mapping[str, float], bytes_of: Mapping[str, float], copies: int = 1):
        if not hosts:
            raise InputError("is empty", "name a host and the bytes of its memory", field="hosts")
        self.wanted = whole(copies, "copies", 0, 3)
        self.room = {host: not_negative(room, f"hosts[{host!r}]") for host, room in hosts.items()}
        self.bytes_of = {model: positive(size, f"bytes_of[{model!r}]") for model, size in bytes_of.items()}
        self.copies: list[Copy] = []
        self.version = dict.fromkeys(bytes_of, 0)

    def spread(self) -> list[Step]:
        """At the start: the wanted copies of each model in the memory of the hosts with most room."""
        return [step for model in self.bytes_of for step in self._settle(model)]

    def sources(self, model: str, version: int | None = None) -> list[Copy]:
        """Copies from which a version can be read, the latest when None: instances first, then memory."""
        wanted = self.version[self._known(model)] if version is None else version
        found = [copy for copy in self.copies if copy.model == model and copy.version == wanted]
        return sorted(found, key=lambda copy: copy.instance == "")

    def in_memory(self, model: str) -> list[Copy]:
        """The copies of a model in hosts' memory."""
        return [copy for copy in self.copies if copy.model == model and not copy.instance]

    def deploy(self, model: str, host: str, instance: str) -> list[Step]:
        """An instance of a model holds its latest weights now; a copy in memory is no longer needed."""
        self._host(host)
        if not instance:
            raise InputError("is empty, which stands for a host's memory", "give it a name", field="instance")
        if any(copy.instance == instance for copy in self.copies):
            raise InputError(f"{instance!r} holds weights already", "reclaim it first", field="instance")
        copy = Copy(self._known(model), self.version[model], host, instance)
        self.copies.append(copy)
        return [Step("load", copy), *self._settle(model)]

    def reclaim(self, instance: str) -> list[Step]:
        """An instance gives its weights up; where they were the last copy, memory takes one over first.

        Raises:
            InputError: they are the last copy, and no host's memory has room for it. UnknownName: no such instance.
        """
        held = [copy for copy in self.copies if copy.instance == instance]
        if not held:
            known = [copy.instance for copy in self.copies if copy.instance]
            raise UnknownName("instance with weights", instance, known)
        (copy,) = held
        self.copies.remove(copy)
        taken = self._settle(copy.model)
        if self.wanted and self.unreachable([copy.model]):
            self.copies.append(copy)
            raise InputError(
                f"holds the last copy of {copy.model} and no host has room for {self.bytes_of[copy.model]:.4g} bytes",
                "free memory first",
                field="instance",
            )
        return [*taken, Step("drop", copy)]

    def update(self, model: str) -> list[Step]:
        """A new version of a model is in the store; copies in memory are replaced, instances keep theirs."""
        self.version[self._known(model)] += 1
        return self._settle(model)

    def fail(self, *hosts: str) -> list[Step]:
        """Hosts fail at once with all copies on them; models that lost theirs get one on another host again."""
        for host in hosts:
            self._host(host)
        lost = [copy for copy in self.copies if copy.host in hosts]
        self.copies = [copy for copy in self.copies if copy.host not in hosts]
        self.room = {host: room for host, room in self.room.items() if host not in hosts}
        steps = [Step("lost", copy) for copy in lost]
        for model in dict.fromkeys(copy.model for copy in lost):
            steps += self._settle(model)
        return steps

    def _settle(self, model: str) -> list[Step]:
        """Bring the copies in memory to their number: none where instances hold the latest, else the wanted ones."""
        latest = self.version[model]
        served = any(copy.model == model and copy.instance and copy.version == latest for copy in self.copies)
        # With more than one copy wanted, instances stand in for one of them only.
        wanted = max(0, self.wanted - 1) if served else self.wanted
        steps = []
        for copy in self.in_memory(model):
            if copy.version != latest or len(self.in_memory(model)) > wanted:
                self.copies.remove(copy)
                steps.append(Step("drop", copy))
        while len(self.in_memory(model)) < wanted:
            host = self._with_most_room(model)
            if host is None:
                break
            copy = Copy(model, latest, host)
            self.copies.append(copy)
            steps.append(Step("restore", copy))
        return steps

    def _with_most_room(self, model: str) -> str | None:
        """The host with most free memory that fits a copy and has none yet; ties: the first named."""
        taken = {copy.host for copy in self.in_memory(model)}
        free = {host: room - self.used(host) for host, room in self.room.items() if host not in taken}
        fits = [host for host, left in free.items() if left >= self.bytes_of[model]]
        return max(fits, key=lambda host: free[host], default=None)

    def used(self, host: str) -> float:
        """Bytes of a host's memory that hold weights."""
        return sum(self.bytes_of[copy.model] for copy in self.copies if copy.host == host and not copy.instance)

    def unreachable(self, models: Sequence[str] | None = None) -> list[str]:
        """Models of which no copy of the latest version is anywhere: they must come from the store."""
        return [model for model in models or self.bytes_of if not self.sources(model)]

    def _known(self, model: str) -> str:
        if model not in self.bytes_of:
            raise UnknownName("model", model, self.bytes_of)
        return model

    def _host(self, host: str) -> None:
        if host not in self.room:
            raise UnknownName("host", host, self.room)
