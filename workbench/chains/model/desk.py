"""The desk at which jobs are handed out to chains: the same for simulated jobs and for real ones."""

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from workbench.chains.kernels.layout import BAD_CHOICE
from workbench.chains.model.paths import check_end
from workbench.chains.model.serving import Served
from workbench.chains.policy import Dispatch, choose, policy_number
from workbench.errors import InputError, UserError
from workbench.records import shown


class Desk:
    """The central line, the chains with their own lines, and the policy that is asked where the head of the line goes.

    Parameters:
        chains: rates and slots.
        policy: the name of a policy, or any Python function of the signature that `workbench.chains.dispatcher` states.
        draw: float64[n, 2], uniform numbers of each job.
        start: told which job begins on which chain, now.

    Attributes:
        line: jobs in the central line.
        lines: jobs in the line of each chain.
        running: jobs in service on each chain.
        inside: int64[K], jobs queued or in service on each.
    """

    def __init__(
        self, chains: Served, policy: Dispatch | Callable, draw: np.ndarray, start: Callable[[int, int], None]
    ):
        self._policy, self._draw, self._start = policy, draw, start
        self.line: deque[int] = deque()
        self.open(chains)

    def open(self, chains: Served) -> None:
        """Begin with these chains, all idle; the policy forgets what it knew."""
        self.chains = chains
        self.lines: list[deque[int]] = [deque() for _ in chains.slots]
        self.running = [0] * chains.slots.size
        self.inside = np.zeros(chains.slots.size, dtype=np.int64)
        self._ask = _asker(self._policy, chains)

    def meet(self, job: int) -> None:
        """A job arrives."""
        self.line.append(job)
        self.hand_out()

    def leave(self, k: int) -> None:
        """A job has left chain k: the next in its line starts, then the central line is asked."""
        self.running[k] -= 1
        self.inside[k] -= 1
        if self.lines[k]:
            self._begin(self.lines[k].popleft(), k)
        self.hand_out()

    def hand_out(self) -> None:
        """Send heads of the central line on until the policy keeps one there."""
        while self.line:
            k = self._ask(self.inside, len(self.line), self._draw[self.line[0]])
            if k < 0:
                return
            job = self.line.popleft()
            self.inside[k] += 1
            if self.running[k] < self.chains.slots[k]:
                self._begin(job, k)
            else:
                self.lines[k].append(job)

    def close(self, kept: Sequence[int], interrupted: Sequence[int]) -> None:
        """Go on with some of the chains; jobs of the others go to the head of the central line in order of number.

        Parameters:
            kept: the chains that stay, as numbered until now.
            interrupted: jobs in service on the others.

        Nothing is handed out yet.
        """
        running, inside, lines = self.running, self.inside, self.lines
        gone = [job for k, line in enumerate(lines) if k not in kept for job in line]
        self.open(Served(*(part[kept] if isinstance(part, np.ndarray) else part for part in self.chains)))
        self.running, self.inside = [running[k] for k in kept], inside[kept].copy()
        self.lines = [lines[k] for k in kept]
        self.line.extendleft(sorted([*gone, *interrupted], reverse=True))

    def _begin(self, job: int, k: int) -> None:
        self.running[k] += 1
        self._start(job, k)


def _asker(policy: Dispatch | Callable, chains: Served) -> Callable[[np.ndarray, int, np.ndarray], int]:
    """The policy as a function of jobs inside, the length of the central line, and the head's random numbers."""
    memory = np.zeros(chains.slots.size)
    if not isinstance(policy, str) and not callable(policy):
        raise InputError(f"is {shown(policy)}", "give the name of a policy, or a function", field="dispatch")
    if isinstance(policy, str):
        number = policy_number(policy)
        return lambda inside, waiting, draw: choose(
            number, inside, chains.slots, chains.rates_per_s, waiting, draw, memory
        )
    return lambda inside, waiting, draw: _asked(policy, inside, chains, waiting, draw, memory)


def _to_read(array: np.ndarray) -> np.ndarray:
    copy = array.copy()
    copy.setflags(write=False)
    return copy


def _asked(policy: Callable, inside: np.ndarray, chains: Served, waiting: int, draw: np.ndarray, memory) -> int:
    try:
        k = policy(*map(_to_read, (inside, chains.slots, chains.rates_per_s)), waiting, _to_read(draw), memory)
        known = -1 <= k < chains.slots.size and int(k) == k
    except Exception as error:
        text = " ".join(str(error).split()) or "no message"
        raise UserError(f"The dispatch function failed with {type(error).__name__}: {text}; correct it.") from error
    if not known:
        check_end(BAD_CHOICE)
    return int(k)
