"""What happens to a cluster during a run, as people say it: instances and links that fail, new weights."""

import math
from collections.abc import Sequence
from typing import Literal

from pydantic import model_validator

from workbench.errors import InputError
from workbench.records import Asked, NotNegative, Positive, ZeroOrMore
from workbench.serving.model.kv_network import Network


class Failure(Asked):
    """An instance stops, with everything in it lost.

    Attributes:
        time_s: when, from the first arrival on.
        instance: which, counted through the groups in order; with a pool, which place, counted through the hosts.
        back_s: when it is up again and empty; infinity for never.
    """

    time_s: NotNegative
    instance: ZeroOrMore
    back_s: float = math.inf

    @model_validator(mode="after")
    def _comes_back_later(self):
        _require_later(self.time_s, self.back_s)
        return self

    @property
    def what(self) -> str:
        """It in words."""
        return f"instance {self.instance}"


class LinkFailure(Asked):
    """A link carries nothing for a time; what is on its way over it stands still.

    Attributes:
        time_s, back_s: when it fails, and when it is back.
        instance: whose, counted as for `Failure`; None where a host's is meant.
        host: out of whose memory, with a pool.
        way: out of the instance, or into it.
    """

    time_s: NotNegative
    back_s: Positive
    instance: ZeroOrMore | None = None
    host: ZeroOrMore | None = None
    way: Literal["out", "in"] = "out"

    @model_validator(mode="after")
    def _one_of_them(self):
        if (self.instance is None) == (self.host is None):
            raise ValueError("names an instance and a host, or neither; name one of them")
        if self.host is not None and self.way == "in":
            raise ValueError("names the way into the memory of a host, over which nothing comes here; give way 'out'")
        _require_later(self.time_s, self.back_s)
        return self

    @property
    def what(self) -> str:
        """It in words."""
        owner = f"memory of host {self.host}" if self.host is not None else f"instance {self.instance}"
        return f"the way {'out of' if self.way == 'out' else 'into'} {owner}"

    def port(self, places: int) -> int:
        """Its number among the ports of so many places or instances, see `workbench.serving.model.lowered.Outages`."""
        if self.host is not None:
            return 2 * places + self.host
        return self.instance + places * (self.way == "in")


class Update(Asked):
    """A model gets a new version of its weights.

    Instances with the old one finish what they serve and leave; new ones start as the autoscaler wants them.

    Attributes:
        time_s: when, from the first arrival on.
        model: which.
    """

    time_s: NotNegative
    model: str


def require_possible(
    failures: Sequence[Failure], link_failures: Sequence[LinkFailure], updates: Sequence[Update], places: int,
    hosts: int, network: Network | None,
) -> None:  # fmt: skip
    """Refuse what cannot happen to so many instances (with a pool, places) and hosts.

    Raises:
        InputError: an instance or a host that is not there, links where nothing is sent, what fails while it is down, a
            model that gets new weights twice at a time; the row counts as given.
    """
    if link_failures and network is None:
        problem = "has failures of links, but no network: no instance sends KV, or weights by chains"
        raise InputError(problem, "leave them out, or let instances send some", field="link_failures")
    for name, given in (("failures", failures), ("link_failures", link_failures)):
        for row, one in enumerate(given, 1):
            _require_there("instance", one.instance, places, name, row)
            _require_there("host", getattr(one, "host", None), hosts, name, row)
        _require_up(given, name)
    seen = set()
    for row, update in enumerate(updates, 1):
        if (update.time_s, update.model) in seen:
            problem = f"gives model {update.model!r} new weights twice at {update.time_s:g} s"
            raise InputError(problem, "give them once", row=row, field="updates")
        seen.add((update.time_s, update.model))


def _require_later(time_s: float, back_s: float) -> None:
    if not back_s > time_s:
        raise ValueError(f"fails at {time_s:g} s and is back at {back_s:g} s; let it come back later")


def _require_there(kind: str, number: int | None, count: int, name: str, row: int) -> None:
    if number is None or number < count:
        return
    known = {0: f"there are no {kind}s to name", 1: f"there is only {kind} 0"}
    problem = f"names {kind} {number}, but {known.get(count, f'there are 0 to {count - 1}')}"
    remedy = f"name {'it' if count == 1 else 'one of them'}" if count else "leave it out"
    raise InputError(problem, remedy, row=row, field=f"{name}.{kind}")


def _require_up(given: Sequence[Failure | LinkFailure], name: str) -> None:
    """One failure at a time of each."""
    before: dict[str, Failure | LinkFailure] = {}
    for row, one in sorted(enumerate(given, 1), key=lambda entry: entry[1].time_s):
        last = before.get(one.what)
        if last is not None and one.time_s < last.back_s:
            down = f"down from {last.time_s:g} s " + (f"to {last.back_s:g} s" if last.back_s < math.inf else "on")
            problem = f"lets {one.what} fail at {one.time_s:g} s, while it is {down}"
            raise InputError(problem, "let it come back first, or leave one of them out", row=row, field=name)
        before[one.what] = one
