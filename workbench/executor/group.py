"""A gloo group among workers, on the loopback interface, that can be broken up at once."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

NOBODY_TAG = 2**31 - 1
"""The tag of no transfer: those count from 0."""


def open_group(rendezvous: str, rank: int, size: int, timeout_s: float) -> Any:
    """Join the group of a run.

    The members meet at a file, so the parent needs neither torch nor an open port; the connections themselves listen on
    127.0.0.1 only. The group is an object of its own, not the process's default group, so that a recovery can open
    another one beside a broken one.

    Parameters:
        rendezvous: path of a file that does not exist yet, the same for all members.
        rank, size: the member's number, and how many there are.
        timeout_s: longest time that any transfer may take; the library's default of 30 minutes hides a hang.
    """
    from torch.distributed import FileStore, ProcessGroupGloo

    options = ProcessGroupGloo._Options()
    options._timeout = timedelta(seconds=timeout_s)
    options._devices = [ProcessGroupGloo.create_device(hostname="127.0.0.1")]
    return ProcessGroupGloo(FileStore(rendezvous, size), rank, size, options)


def break_up(group: Any) -> None:
    """Close all connections of a group, so that every transfer that waits in it, here and at the peers, ends at once.

    gloo has no such call: its `abort` does nothing. But a receive that times out closes the group by design, so we post
    one that nobody answers.
    """
    import torch

    nobody = torch.empty(1, dtype=torch.uint8)
    for peer in range(group.size()):
        if peer != group.rank():
            with suppress(RuntimeError):  # of the timeout, or of a connection that is closed already
                group.recv([nobody], peer, NOBODY_TAG).wait(timedelta(milliseconds=1))
