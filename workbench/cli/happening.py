"""What happens during a run, as people write it: `--fail instance:3@30-90`, `--update llama-3-8b@60`."""

import argparse
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from workbench.errors import InputError, UserError

if TYPE_CHECKING:
    from workbench.profiles import Cluster
    from workbench.serving import Failure, LinkFailure

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
FAILS = re.compile(rf"(instance|host|link|link-in|link-out|memory):([0-9]{{1,9}})@({NUMBER})(?:-({NUMBER}))?")
UPDATES = re.compile(rf"(?:(.+)@)?({NUMBER})")
FIELDS = ("Scenario", "failures", "link_failures", "updates")
"""Under these names the engine refuses what happens during a run."""
WAYS = {"link": ("out", "in"), "link-in": ("in",), "link-out": ("out",)}


def add(parser: argparse.ArgumentParser) -> None:
    """Enter both options."""
    parser.add_argument(
        "--fail", action="append", default=[], metavar="WHAT:N@FROM[-TO]",
        help="what stops, in seconds from the first arrival, for good or until it is back, such as instance:3@30, "
        "host:1@30-90 (all its instances; its memory keeps weights), link:2@30-40 (of an instance, both ways; link-in "
        "and link-out for one) or memory:0@30-40 (what a host sends from its memory); again for each. How late the "
        "loss of weights from a host's memory is known is the choice stale_s of the system",
    )  # fmt: skip
    parser.add_argument(
        "--update", action="append", default=[], metavar="[NAME@]SECONDS",
        help="when a model, by its name in the trace, gets new weights, such as chat@60; again for each",
    )  # fmt: skip


def happening(
    options: argparse.Namespace, cluster: "Cluster", tp: int, instances: Callable[[], int]
) -> dict[str, list]:
    """The options as `wb.simulate` takes them: failures, link_failures, updates.

    Parameters:
        options: with the trace that names models.
        cluster, tp: accelerators of an instance tell how many of them a host holds.
        instances: tells how many there are, which fill the hosts in order.

    Raises:
        UserError: what cannot be read, and a host that is not there, in one sentence that names the option.
    """
    from workbench.serving import Update

    failures, link_failures, updates = [], [], []
    for text in options.fail:
        found = _failure(text, cluster, tp, instances)
        (link_failures if text.startswith(("link", "memory")) else failures).extend(found)
    for text in options.update:
        match = UPDATES.fullmatch(text.strip())
        if not match:
            raise UserError(f"--update takes NAME@SECONDS, as in chat@60, got {text!r}.")
        updates.append(Update(time_s=float(match[2]), model=match[1] or _only_model(options.trace, text)))
    return {"failures": failures, "link_failures": link_failures, "updates": updates}


def of_any_size(options: argparse.Namespace, cluster: "Cluster") -> dict[str, list]:
    """What happens whatever the size of a deployment, up to the whole cluster: what is not there does not fail.

    Raises:
        UserError: as of `happening`, and instances by number where their size is not said.
    """
    counted = next((text for text in options.fail if not text.strip().startswith("memory")), None)
    if counted is not None and options.tp is None:
        raise UserError(f"--fail {counted} counts instances of one size, and plan tries all; give --tp too.")
    tp = options.tp or 1
    return happening(options, cluster, tp, lambda: sum(of.hosts * (of.accelerators // tp) for of in cluster.groups))


def _failure(
    text: str, cluster: "Cluster", tp: int, instances: Callable[[], int]
) -> "list[Failure] | list[LinkFailure]":
    from workbench.serving import Failure, LinkFailure

    match = FAILS.fullmatch(text.strip())
    if not match:
        raise UserError(
            "--fail takes WHAT:N@FROM or WHAT:N@FROM-TO with seconds, where WHAT is instance, host, link, link-in, "
            f"link-out or memory, as in host:1@30-90, got {text!r}."
        )
    what, number, from_s = match[1], int(match[2]), float(match[3])
    back_s = math.inf if match[4] is None else float(match[4])
    if back_s <= from_s:
        raise UserError(f"--fail {text} ends before it begins; write the later time behind the dash.")
    if what == "instance":
        return [Failure(time_s=from_s, instance=number, back_s=back_s)]
    if what == "host":
        on_host = _instances_of(number, cluster, tp, text, instances)
        return [Failure(time_s=from_s, instance=k, back_s=back_s) for k in on_host]
    if math.isinf(back_s):
        raise UserError(f"--fail {text} does not say when the link is back; write {text}-SECONDS.")
    if what == "memory":
        return [LinkFailure(time_s=from_s, host=number, back_s=back_s)]
    return [LinkFailure(time_s=from_s, instance=number, back_s=back_s, way=way) for way in WAYS[what]]


def _instances_of(host: int, cluster: "Cluster", tp: int, text: str, instances: Callable[[], int]) -> range:
    """The numbers of the instances on a host, of hosts that are alike."""
    if len(cluster.groups) > 1:
        raise UserError(f"--fail {text} names a host, but hosts of {cluster.name} differ; name its instances.")
    if host >= cluster.hosts:
        there = f"0 to {cluster.hosts - 1}" if cluster.hosts > 1 else "0 only"
        raise UserError(f"--fail {text} names host {host}, but {cluster.name} has {there}; name one that it has.")
    each, count = cluster.groups[0].accelerators // tp, instances()
    found = range(host * each, min((host + 1) * each, count))
    if not found:
        raise UserError(
            f"--fail {text} names a host on which nothing runs, since {count} instances, {each} a host, fill those "
            "before it; name another."
        )
    return found


def _only_model(trace: str, text: str) -> str:
    from workbench.operating.requests import request_table

    names = request_table(trace)["model"].unique()
    if len(names) != 1:
        raise UserError(f"--update {text} names no model, and the trace has {len(names)}; write NAME@{text.strip()}.")
    return names[0]


@contextmanager
def named(options: argparse.Namespace) -> Iterator[None]:
    """Let a refusal of what happens name the options that it was given by."""
    try:
        yield
    except InputError as error:
        given = [name for name, texts in (("--fail", options.fail), ("--update", options.update)) if texts]
        if not given or (error.field or "").partition(".")[0] not in FIELDS:
            raise
        raise UserError(f"{' or '.join(given)}: {error.problem}; {error.remedy}.") from None
