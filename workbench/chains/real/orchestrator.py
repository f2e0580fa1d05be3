"""The orchestrator of a real run, entry, exit and relay of all jobs: it dispatches, relays, and sees who is lost."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from workbench.chains.kernels.layout import STUCK
from workbench.chains.model.composing import Chain, Composition, allocate
from workbench.chains.model.desk import Desk
from workbench.chains.model.hardware import TokenTimes
from workbench.chains.model.paths import check_end
from workbench.chains.model.serving import Served, chains_of
from workbench.chains.policy import Dispatch
from workbench.chains.real.outcome import ChainLoss
from workbench.executor.chain_serving.orders import Close, End, Pass, Passed, ServerPlan, ServerReport, Session
from workbench.executor.chain_serving.server import READY, serve_blocks
from workbench.executor.driving import LEAD_S
from workbench.executor.faults import Kill, ProcessLost, RunFailed, Stop
from workbench.executor.processes import Worker
from workbench.executor.watching import Died, Done, Due, Failed, Hung, Said, StopWanted, watch


class Asked(NamedTuple):
    """One run as it was asked for, in seconds of the run.

    Attributes:
        composition, times, usual: chains, seconds for each unit of work on each server, and the mean job.
        prompts, outputs, arrival_s, draw: of each job its tokens, how many it is to say, when it arrives, and its
            uniform numbers.
        policy: of dispatch.
    """

    composition: Composition
    times: TokenTimes
    usual: np.ndarray
    prompts: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]
    arrival_s: np.ndarray
    draw: np.ndarray
    policy: Dispatch | Callable


class Job:
    """What is known of one job: how far it has come on which chain, and all that it has said."""

    def __init__(self, prompt: tuple[int, ...], output: int):
        self.prompt, self.output = prompt, output
        self.chain: Chain | None = None
        self.attempt = self.number = self.hop = 0
        self.first_pass = True
        self.start_s = self.finish_s = float("nan")
        self.said: list[tuple[float, int, np.ndarray]] = []

    def session(self, job: int) -> Session:
        """The job's present way through a chain."""
        return Session(job, self.attempt)


class Orchestrator:
    """One run of jobs over workers, each of which is one server.

    Parameters:
        asked: what is to be done.
        workers: the servers that host something; a worker's number is its place among `plans`.
        servers: the number of each worker's server in the fleet.
        plans: of each worker.
        timeout_s, heartbeat_s, stop: how it is watched over.
    """

    def __init__(
        self,
        asked: Asked,
        workers: Sequence[Worker],
        servers: Sequence[int],
        plans: Sequence[ServerPlan],
        *,
        timeout_s: float,
        heartbeat_s: float,
        stop: StopWanted,
    ):
        self._asked, self._plans = asked, plans
        self._worker = dict(zip(servers, workers, strict=True))
        self._servers = list(servers)
        self._timeout_s, self._heartbeat_s, self._stop = timeout_s, heartbeat_s, stop
        self.jobs = [Job(*one) for one in zip(asked.prompts, asked.outputs, strict=True)]
        self.losses: list[ChainLoss] = []
        self.late_s: list[float] = []
        self.hold_s: list[float] = []
        self.start_s = 0.0
        self._chains = asked.composition.chains
        self._desk = Desk(self._served(asked.composition), asked.policy, asked.draw, self._start)
        self._caused: dict[int, float] = {}
        self._alarms: list[float] = []
        self._meanings: list[int | Kill | Stop | None] = []

    def run(self, beats, drills: Sequence[Kill | Stop] = ()) -> dict[int, ServerReport]:
        """Serve all jobs; reports of the servers that are left, by their numbers in the fleet.

        Errors: `ProcessLost` where no chain is left without a lost server; `UserError` where the policy leaves jobs
            waiting for good; `RunFailed` when it takes too long or a server fails; `RunStopped` when `stop` says so.
        """
        workers = list(self._worker.values())
        for worker, plan in zip(workers, self._plans, strict=True):
            worker.give(serve_blocks, plan)
        ready, reports, ending = 0, {}, False
        self._wake_at(time.monotonic() + self._timeout_s, None)
        events = watch(workers, beats, alarms=self._alarms, heartbeat_s=self._heartbeat_s, stop=self._stop)
        for event in events:
            match event:
                case Said(_, value) if value == READY:
                    ready += 1
                    if ready == len(workers):
                        self._begin(drills)
                case Said(worker, Passed() as passed):
                    self._heard(self._servers[worker], passed)
                case Done(worker, report):
                    reports[self._servers[worker]] = report
                case Died(worker, at_s):
                    self._lost(self._servers[worker], "died", at_s)
                case Hung(worker, at_s):
                    self._worker[self._servers[worker]].kill()  # nothing of it may come back to life later
                    self._lost(self._servers[worker], "hung", at_s)
                case Due(alarm):
                    self._due(self._meanings[alarm])
                case Failed(worker, text):
                    raise RunFailed(f"Server {self._servers[worker]} failed with {text}.")
            left = [server for server in self._servers if server in self._worker]
            if not ending and self.start_s and all(len(job.said) == job.output for job in self.jobs):
                ending = True
                for server in left:
                    self._worker[server].tell(End())
            if ending and set(reports) >= set(left):
                break
        return reports

    def _begin(self, drills: Sequence[Kill | Stop]) -> None:
        self.start_s = time.monotonic() + LEAD_S
        for job, arrival_s in enumerate(self._asked.arrival_s.tolist()):
            self._wake_at(self.start_s + arrival_s, job)
        for drill in drills:
            self._wake_at(self.start_s + drill.at_s, drill)

    def _due(self, meaning: int | Kill | Stop | None) -> None:
        match meaning:
            case int(job):
                self._desk.meet(job)
                if job + 1 == len(self.jobs):
                    self._refuse_stuck()
            case Kill(node=server):
                self._caused[server] = time.monotonic()
                self._worker[server].kill()
            case Stop(node=server):
                self._caused[server] = time.monotonic()
                self._worker[server].stop()
            case _:
                raise RunFailed(f"The run took longer than the {self._timeout_s:.0f} s it may; allow more time.")

    def _served(self, composition: Composition) -> Served:
        return chains_of(composition, self._asked.times, self._asked.usual)

    def _start(self, number: int, k: int) -> None:
        """A job begins on a chain, with its prompt and all it has said."""
        job = self.jobs[number]
        job.number = int(self._desk.chains.order[k])
        job.chain, job.hop, job.first_pass = self._chains[job.number], 0, True
        job.attempt += 1
        if np.isnan(job.start_s):
            job.start_s = time.monotonic()
        self._send(number, (*job.prompt, *(token for _, token, _ in job.said)), None)

    def _send(self, number: int, tokens: tuple[int, ...], hidden: np.ndarray | None) -> None:
        job = self.jobs[number]
        blocks, place = job.chain.blocks, job.hop
        rows = len(tokens) if hidden is None else len(hidden)
        work = (1.0, float(rows), 0.0) if job.first_pass else (0.0, 0.0, 1.0)
        word = Pass(
            job.session(number), job.first_pass, sum(blocks[:place]), blocks[place], time.monotonic(), work, tokens,
            hidden,
        )  # fmt: skip
        self._worker[job.chain.servers[place]].tell(word)

    def _heard(self, server: int, passed: Passed) -> None:
        number = passed.session.job
        job = self.jobs[number]
        if passed.session != job.session(number) or job.chain is None:
            return  # of a way that was given up
        now_s = time.monotonic()
        self.late_s.append(passed.late_s + now_s - passed.at_s)
        self.hold_s.append(passed.hold_s)
        if passed.logits is None:
            job.hop += 1
            self._send(number, (), passed.hidden)
            return
        token = int(passed.logits.argmax())
        job.said.append((now_s, token, passed.logits))
        job.hop, job.first_pass = 0, False
        if len(job.said) < job.output:
            self._send(number, (token,), None)
            return
        job.finish_s = now_s
        self._close(number)
        self._desk.leave(self._place(job.number))
        self._refuse_stuck()

    def _refuse_stuck(self) -> None:
        """Nobody is served and nobody will come: what waits now would wait for good."""
        come = time.monotonic() >= self.start_s + self._asked.arrival_s[-1]
        if come and self._desk.line and not any(self._desk.running):
            check_end(STUCK)

    def _close(self, number: int) -> None:
        """Let the servers of a job's chain drop what they have of it."""
        job = self.jobs[number]
        for server in job.chain.servers:
            if server in self._worker:
                self._worker[server].tell(Close(job.session(number)))

    def _place(self, number: int) -> int:
        return int(np.flatnonzero(self._desk.chains.order == number)[0])

    def _lost(self, server: int, kind: str, noticed_s: float) -> None:
        """Go on with the chains that do without a server, or with new ones where there is none."""
        if not self.start_s:
            raise RunFailed(f"The process of server {server} was lost before the start; run it again.")
        del self._worker[server]
        served = self._desk.chains
        kept = [k for k in range(served.slots.size) if server not in self._chains[served.order[k]].servers]
        inside = [n for n, job in enumerate(self.jobs) if job.chain and np.isnan(job.finish_s)]
        hit = [number for number in inside if server in self.jobs[number].chain.servers]
        for number in hit:
            self._close(number)
            self.jobs[number].chain = None
        caused_s = self._caused.get(server)
        detected_s = None if caused_s is None else noticed_s - caused_s
        at_s = noticed_s - self.start_s
        self._desk.close(kept, hit)
        if not kept and (rest := self._without_lost()).chains:
            self._chains = rest.chains
            self._desk.open(self._served(rest))
        elif not kept and any(np.isnan(job.finish_s) for job in self.jobs):
            waiting = [str(number) for number, job in enumerate(self.jobs) if np.isnan(job.finish_s)]
            text = f"no chain of the other servers hosts all blocks, so jobs {', '.join(waiting)} cannot be finished"
            raise ProcessLost(server, kind, at_s, detected_s, text)
        self.losses.append(
            ChainLoss(server=server, kind=kind, noticed_s=at_s, detected_s=detected_s, jobs=tuple(hit))
        )  # fmt: skip
        self._desk.hand_out()

    def _without_lost(self) -> Composition:
        """Chains through the blocks of the servers that are left; nothing runs on them now."""
        made = self._asked.composition
        here = np.isin(np.arange(made.fleet.servers), list(self._worker))
        placement = made.placement._replace(
            first=np.where(here, made.placement.first, -1), blocks=np.where(here, made.placement.blocks, 0)
        )
        return allocate(made.fleet, placement, made.reserved)

    def _wake_at(self, instant_s: float, meaning: int | Kill | Stop | None) -> None:
        self._alarms.append(instant_s)
        self._meanings.append(meaning)
