"""Faults that a drill plants in a real run, and the errors that a lost process ends in."""

from workbench.errors import WorkbenchError
from workbench.records import Asked, NotNegative, ZeroOrMore


class Kill(Asked):
    """End the process of a node at a time after the start (SIGKILL): it dies as a machine would, without a word."""

    node: ZeroOrMore
    at_s: NotNegative


class Stop(Asked):
    """Stop the process of a node at a time after the start (SIGSTOP): it hangs with its connections open."""

    node: ZeroOrMore
    at_s: NotNegative


class Flip(Asked):
    """Change one byte of a block when it reaches a node, before the node passes it on."""

    node: ZeroOrMore
    block: ZeroOrMore


class Swap(Asked):
    """Let the bytes of two blocks change places at a node once it has received both."""

    node: ZeroOrMore
    block: ZeroOrMore
    other: ZeroOrMore


Fault = Kill | Stop | Flip | Swap


class ProcessLost(WorkbenchError):
    """A process of the run died or hung, and the run ended with it.

    Attributes:
        node: the node that is gone.
        kind: "died" or "hung".
        at_s: when that was noticed, seconds after the start of the run.
        detected_s: from a planted fault to its detection, None where nobody knows when the process went.
    """

    def __init__(self, node: int, kind: str, at_s: float, detected_s: float | None, rest: str):
        self.node, self.kind, self.at_s, self.detected_s = node, kind, at_s, detected_s
        after = "" if detected_s is None else f", {detected_s:.3f} s after the fault"
        super().__init__(f"The process of node {node} {kind} (noticed {at_s:.2f} s after the start{after}); {rest}.")


class BlocksLost(ProcessLost):
    """The lost process held the only copy of some blocks.

    Attributes:
        blocks: the numbers of the blocks that no survivor holds.
    """

    def __init__(self, node: int, kind: str, at_s: float, detected_s: float | None, blocks: list[int]):
        self.blocks = blocks
        named = ", ".join(map(str, blocks[:8])) + (f", … ({len(blocks)} in all)" if len(blocks) > 8 else "")
        rest = f"it held the only copy of {'block' if len(blocks) == 1 else 'blocks'} {named}: load them again"
        super().__init__(node, kind, at_s, detected_s, rest)


class RunFailed(WorkbenchError):
    """A worker raised an error or the run took longer than it may."""


class RunStopped(WorkbenchError):
    """Whoever started the run asked for its end."""

    def __init__(self):
        super().__init__("The real run was stopped before it was finished; nothing of it is kept.")
