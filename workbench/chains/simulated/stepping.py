"""Jobs token by token in SimPy: every pass goes to each server of its chain and back, and waits for its turn there."""

from collections.abc import Callable

import numpy as np
import simpy

from workbench.chains.kernels.layout import STUCK
from workbench.chains.model.desk import Desk
from workbench.chains.model.hardware import TokenTimes
from workbench.chains.model.jobs import JobList
from workbench.chains.model.paths import check_end, laid_out
from workbench.chains.model.serving import Served
from workbench.chains.policy import Dispatch
from workbench.errors import InputError
from workbench.queueing import Path
from workbench.queueing.simulated.clock import Clock
from workbench.records import takes_records


class _Server:
    """One server: passes in order of arrival, one at a time, or all of one range that are there in one go."""

    def __init__(self, clock: Clock, batched: bool):
        self.clock, self.batched = clock, batched
        self.line: list[tuple[bytes, float, float, simpy.Event]] = []
        self.busy = False

    def take(self, blocks: bytes, prompt_s: float, token_s: float) -> simpy.Event:
        """A pass arrives; the event happens when it has been computed."""
        done = self.clock.event()
        self.line.append((blocks, prompt_s, token_s, done))
        if not self.busy:
            self.clock.process(self.work())
            self.busy = True
        return done

    def work(self):
        """Compute until nobody waits; passes that come at the same instant are seen first."""
        yield self.clock.timeout(0)
        while self.line:
            blocks = self.line[0][0]
            together = [one for one in self.line if self.batched and one[0] == blocks] or self.line[:1]
            self.line = [one for one in self.line if one not in together]
            yield self.clock.timeout(sum(one[1] for one in together) + max(one[2] for one in together))
            for one in together:
                one[3].succeed()
        self.busy = False


@takes_records
def simulate_steps(
    jobs: JobList, chains: Served, times: TokenTimes, policy: Dispatch | Callable = "jffc", *, batched: bool = False
) -> Path:
    """What happens to each job if its passes queue at servers, one for the prompt and one for every further token?

    The finest of the models of contention: nothing is shared out, a server computes one pass after the other, in order
    of arrival, and each goes its round trip first. A job alone takes exactly its nominal seconds.

    Parameters:
        jobs: of work (1, tokens in, tokens out but the first).
        chains, times: with seconds for each unit of work; see `chains_of`.
        policy: as in `dispatch_path`, or any Python function.
        batched: whether steps of jobs that wait at a server for the same blocks are computed together: the seconds of
            their prompts add up, the seconds of their tokens (weights are read once) count once.
    """
    if jobs.work.shape[1] != 3 or times.compute_s.shape != (chains.servers, 3):
        raise InputError("are not token times of these chains", "give jobs and times of tokens", field="times")
    clock = Clock()
    made, _ = laid_out(jobs, chains, False)
    servers = [_Server(clock, batched) for _ in range(chains.servers)]

    def serve(job: int, k: int):
        one, prompt, more = made.work[job].tolist()
        for work in (np.array([one, prompt, 0.0]), *(np.array([0.0, 0.0, 1.0]) for _ in range(round(more)))):
            for hop in range(chains.hops[k]):
                j, block_s = chains.server[k, hop], chains.compute_s[k, hop]
                yield clock.timeout(float(work @ times.communication_s[j]))
                yield servers[j].take(block_s.tobytes(), float(work[:2] @ block_s[:2]), float(work[2] * block_s[2]))
        made.finish_s[job] = clock.now
        desk.leave(k)

    def start(job: int, k: int) -> None:
        made.start_s[job], made.chain[job] = clock.now, k
        clock.process(serve(job, k))

    desk = Desk(chains, policy, made.draw, start)
    clock.process(clock.arrivals(made.arrival_s, 2, desk.meet))
    clock.run()
    if desk.line:
        check_end(STUCK)
    return Path(made.arrival_s, made.start_s, made.finish_s, chains.order[made.chain])
