"""Everything of one simulated pool: its GPUs and hosts, who is inside, and what was written down."""

import math
from collections.abc import Sequence

from workbench.errors import InputError
from workbench.pooling.model.lowered import DONE, FAILED, REJECTED, Lowered
from workbench.pooling.policy import AHEAD_TO_RUN
from workbench.pooling.policy.names import BY_ESTIMATES, EVERYBODY
from workbench.pooling.simulated.gpu import Gpu
from workbench.pooling.simulated.looking import keeps_all
from workbench.pooling.simulated.people import Group, Request
from workbench.pooling.simulated.prompts import PromptGpu
from workbench.pooling.simulated.steps import Steps
from workbench.pooling.simulated.transfers import FIRST, Host
from workbench.pooling.simulated.turns import TurnGpu
from workbench.queueing.simulated import Clock


class World:
    """A pool whose models take turns.

    Parameters:
        lowered: the run.
        let_in: who is let in, where that is decided already; as the rules have it when None.

    Attributes:
        clock: SimPy's clock.
        let_in: of each request that has come so far, whether it was let in.
        arrives, ends, acts: priorities within one instant; a GPU's number is added to the last two.
        switches, turns, rounds, host: rows of the logs.
    """

    def __init__(self, lowered: Lowered, let_in: Sequence[bool] | None = None):
        self.lowered, self._decided = lowered, let_in
        self.requests_in, self.models, self.pool, self.rules = lowered
        self.let_in: list[bool] = []
        if self.rules.admission == BY_ESTIMATES:
            raise InputError(
                "judges by formulas, which only the compiled loop does",
                "run that one and refuse here whom it rejected",
                field="rules.admission",
            )
        size = self.pool.node.size
        self.arrives = FIRST + 4 * size
        self.ends, self.acts = self.arrives + 1, self.arrives + 1 + size
        self.switches: list[tuple] = []
        self.turns: list[tuple] = []
        self.rounds: list[tuple] = []
        self.host: list[tuple] = []
        self.steps = Steps(self.models, self.rules)
        self.clock = Clock()
        self.hosts = [Host(self.clock, node, self.models, self.pool) for node in range(1 + int(self.pool.node[-1]))]
        self.gpus: list[Gpu] = []
        for index, decodes in enumerate(self.pool.decodes.tolist()):
            self.gpus.append((TurnGpu if decodes else PromptGpu)(self, index))
        self.requests = Request.all_of(self.requests_in)
        self.inside = 0
        self.by_owner = [0] * self.models.owner_most.size
        self._oldest = 0

    def run(self) -> None:
        """Let everything happen."""
        self.clock.process(self.clock.arrivals(self.requests_in.arrival_s, self.arrives, self._arrive))
        self.clock.run()

    def _arrive(self, number: int) -> None:
        self._give_up()
        request = self.requests[number]
        home, owner = int(self.models.home[request.model]), int(self.models.owner[request.model])
        host, rules = self.hosts[home], self.rules
        believed = math.ceil(rules.margin * int(self.requests_in.believed[number]))
        request.reserved = self.steps.blocks(request.prompt + max(1, believed))
        size = request.reserved * int(self.models.block_bytes[request.model])
        whole = self.steps.blocks(request.prompt + request.output + AHEAD_TO_RUN)
        crowded = self.inside >= rules.owner_from and self.by_owner[owner] >= self.models.owner_most[owner]
        if self._decided is not None:
            welcome = self._decided[number]
        else:
            welcome = not (
                self.requests_in.refused[number]
                or whole > self.models.capacity[request.model]
                or host.reserved_bytes + size > self.pool.kv_bytes
                or crowded
            ) and (rules.admission == EVERYBODY or keeps_all(self, number))
        self.let_in.append(bool(welcome))
        if not welcome:
            request.status = REJECTED
            return
        self.inside += 1
        self.by_owner[owner] += 1
        host.reserved_bytes += size
        self._line_up(request, home)

    def _line_up(self, request: Request, home: int) -> None:
        gpus = [gpu for gpu in self.gpus if gpu.node == home and isinstance(gpu, PromptGpu)]
        for gpu in gpus:
            if (group := gpu.group_for(request)) is not None:
                gpu.join(group, request)
                return
        gpu = min(gpus, key=PromptGpu.load)
        gpu.groups.append(Group(request.model))
        gpu.join(gpu.groups[-1], request)

    def hand_over(self, request: Request) -> None:
        """Give a request to the first batch of its model with room, else as a new one to the shortest work list."""
        home = int(self.models.home[request.model])
        gpus = [gpu for gpu in self.gpus if gpu.node == home and isinstance(gpu, TurnGpu)]
        for gpu in gpus:
            for batch in gpu.work_list:
                if batch.requests and batch.model == request.model and gpu.fits(batch, request):
                    gpu.enter(batch, request)
                    return
        min(gpus, key=lambda gpu: sum(bool(batch.requests) for batch in gpu.work_list)).enter(None, request)

    def finish(self, request: Request) -> None:
        """A request leaves the pool."""
        request.status, request.finish_s = DONE, self.clock.now
        self._leaves(request)

    def _leaves(self, request: Request) -> None:
        self.inside -= 1
        self.by_owner[int(self.models.owner[request.model])] -= 1
        size = request.reserved * int(self.models.block_bytes[request.model])
        self.hosts[int(self.models.home[request.model])].reserved_bytes -= size

    def _give_up(self) -> None:
        """Requests that have waited too long for their prompt to begin fail."""
        while self._oldest < len(self.requests):
            request = self.requests[self._oldest]
            if request.arrival_s + self.rules.give_up_s > self.clock.now:
                return
            if request.status == 0 and not request.begun:
                for group in self.gpus[request.prefill_gpu].groups:
                    if request in group.waiting:
                        group.waiting.remove(request)
                request.status = FAILED
                self._leaves(request)
            self._oldest += 1

    def note_host(self, node: int, request: Request, blocks: int) -> None:
        """Write down that blocks of a host were taken, or are free."""
        self.host.append((self.clock.now, node, request.number, request.model, blocks))
