"""GPUs that process prompts, and the groups that wait for them (Algorithm 1)."""

from collections import deque

from workbench.pooling.policy import has_room
from workbench.pooling.policy.names import BY_COUNT, BY_TIME
from workbench.pooling.simulated.gpu import Gpu, Process
from workbench.pooling.simulated.people import Group, Request


class PromptGpu(Gpu):
    """One prompt at a time, from the front group."""

    def __init__(self, world, index: int):
        self.groups: deque[Group] = deque()
        self.job: Request | None = None
        self.job_group: Group | None = None
        super().__init__(world, index)

    def live(self) -> Process:
        """Take the next request, switch to its model if need be, process its prompt, hand it on."""
        yield from self.rest()
        while True:
            while self.groups and not self.groups[0].waiting:
                self.groups.popleft()
            if not self.groups or (not self.rules.overlap and self.outs):
                yield from self.rest()
                continue
            self.job_group = self.groups[0]
            request = self.job = self.job_group.waiting.popleft()
            request.begun = True
            if self.resident != request.model:
                yield from self.switch(request.model)
            request.wait_s = self.clock.now - request.arrival_s
            seconds = self.world.steps.prompt_s(request.model, request.prompt)
            yield self.spend(seconds)
            self.job = self.job_group = None
            self.busy_s += seconds
            self.since_switch_s += seconds
            request.prefill_s += seconds
            if request.output > 0:
                request.token_s.append(self.clock.now)
            if request.output <= 1:
                self.world.finish(request)
            else:
                self.send_away(request)
                self.world.hand_over(request)
            yield self.decides()

    def next_model(self) -> int:
        """The model of the first group with another one than the resident."""
        return next((g.model for g in self.groups if g.waiting and g.model != self.resident), -1)

    def join(self, group: Group, request: Request) -> None:
        """Put a request at the end of a group."""
        group.waiting.append(request)
        group.taken += 1
        request.prefill_gpu = self.index
        self.rouse()

    def group_for(self, request: Request) -> Group | None:
        """The first group with room for a request."""
        blocks, capacity = self.world.steps.blocks(request.prompt), int(self.models.capacity[request.model])
        for group in self.groups:
            if group.model == request.model:
                waiting = sum(self.world.steps.blocks(other.prompt) for other in group.waiting)
                rule, limit = self.rules.group_rule, self.rules.group_limit
                if has_room(rule, limit, group.taken, len(group.waiting), waiting, blocks, capacity):
                    return group
        return None

    def load(self) -> float:
        """Seconds of work with switches, requests, or groups, the request in hand included."""
        waiting = [group for group in self.groups if group.waiting]
        if self.rules.load_rule != BY_TIME:
            busy = self.job is not None
            if self.rules.load_rule == BY_COUNT:
                return float(busy + sum(len(group.waiting) for group in waiting))
            return float(busy + sum(group is not self.job_group for group in waiting))
        total, model = 0.0, self.resident if self.target < 0 else self.target
        if self.job is not None:
            model = self.job.model
            total = self.world.steps.prompt_s(model, self.job.prompt)
        for group in waiting:
            if group.model != model:
                model = group.model
                total += float(self.models.assumed_s[model])
            for request in group.waiting:
                total += self.world.steps.prompt_s(model, request.prompt)
        return total
