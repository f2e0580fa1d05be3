"""The task of the executor's process: prompts, then rounds of turns, by chance or by the quotas of Algorithm 2."""

import time
from statistics import fmean

import numpy as np

from workbench.executor.desk import Desk
from workbench.executor.transformer import Output, Stage, keeps_bits, teacher_forced
from workbench.pooling.policy import fill_quotas
from workbench.pooling.real.asked import Asked, ByChance, ByQuota, Turn, Turned
from workbench.pooling.real.executing import Executor, made_weights

NONE = float("nan")
WARM_ROUNDS, WARM_STEPS = 3, 4
"""Rounds before those by quotas, of so many steps a turn; in the last two memory is no longer new."""


def take_turns(desk: Desk, asked: Asked) -> Turned:
    """Serve all prompts, every model's requests as one batch that decodes a turn at a time."""
    import torch

    run = _Run(asked)
    with torch.inference_mode():
        return run.whole()


def alone(desk: Desk, asked: Asked, tokens: list[list[int]]) -> list[Output]:
    """What each model alone says of its own requests on the same texts: weights where they lie, no turns, no slabs."""
    import torch

    outputs, right = [], asked._replace(fault="")
    with torch.inference_mode():
        for model, kind in enumerate(asked.kinds):
            stage = Stage(kind.shape, "invariant", asked.device)
            stage.load(made_weights(right, model), "alone")
            outputs += [
                (request, teacher_forced([stage], prompt.tokens, tokens[request]))
                for request, prompt in enumerate(asked.prompts)
                if prompt.model == model
            ]
    return [output for _, output in sorted(outputs, key=lambda pair: pair[0])]


class _Run:
    def __init__(self, asked: Asked):
        self.asked = asked
        self.executor = Executor(asked, [made_weights(asked, model) for model in range(len(asked.kinds))])
        count = len(asked.prompts)
        self.tokens: list[list[int]] = [[] for _ in range(count)]
        self.logits: list[list[np.ndarray]] = [[] for _ in range(count)]
        self.token_s: list[list[float]] = [[] for _ in range(count)]
        self.turns: list[Turn] = []
        self.random = np.random.default_rng(asked.turns.seed if isinstance(asked.turns, ByChance) else 0)
        self.tbt_s = self.quota_s = NONE
        self.over_s = [0.0] * len(asked.kinds)
        self.last_s = self.executor.now()

    def whole(self) -> Turned:
        begun_s, busy_s = time.monotonic(), time.process_time()
        self._prompts()
        if isinstance(self.asked.turns, ByQuota):
            self._by_quota(self.asked.turns)
        else:
            number = 0
            while batches := self._batches():
                steps = self.random.integers(1, self.asked.turns.most + 1, len(batches)).tolist()
                self._round(number, batches, steps=steps)
                number += 1
        for request in [r for batch in self._batches() for r in self._going(batch)]:
            self.executor.host.forget(request)
        host = self.executor.host
        host.settle()
        return Turned(
            turns=self.turns,
            tokens=self.tokens,
            logits=[np.array(rows) for rows in self.logits],
            token_s=self.token_s,
            tbt_s=self.tbt_s,
            quota_s=self.quota_s,
            slabs=host.peak,
            left_bytes=sum(used for used, _ in host.pool.held_bytes().values()),
            same_bits=[self.asked.keep and keeps_bits(kind.shape, self.asked.device) for kind in self.asked.kinds],
            busy_s=time.process_time() - busy_s,
            wall_s=time.monotonic() - begun_s,
        )

    def _prompts(self) -> None:
        """Every prompt by itself, model after model; its cache leaves with the others of its model."""
        for model in range(len(self.asked.kinds)):
            requests = self._going(model)
            if not requests:
                continue
            self.executor.switch(model)
            for request in requests:
                logits = self.executor.start(request, self.asked.prompts[request].tokens)
                self._said([request], logits)
            self.executor.send_away([r for r in requests if r in self._going(model)])

    def _by_quota(self, turns: ByQuota) -> None:
        """Warm rounds of equal turns tell step and switch times; from them the promise and the cap; then quotas.

        A turn ends with a step and lasts longer than its quota. Where turns have hundreds of steps that is nothing,
        here they have a few: what one is too long is taken off the model's next one, and on average they are as long.
        """
        fill_quotas(np.ones(1), 1.0, 1.0, 1.0, 1.0, np.empty(1))  # compiled before anything is measured
        for _ in range(WARM_ROUNDS):
            self._round(-1, self._batches(), steps=[WARM_STEPS] * len(self._batches()))
        step_s, switch_s = self._measured()
        self.tbt_s = sum(step_s.values()) / turns.steps_share
        least_n = self.tbt_s / max(step_s.values())
        self.quota_s = sum(switch_s.values()) / (least_n * turns.switches_share)
        for number in range(turns.rounds):
            batches = self._batches()
            if len(batches) < len(self.asked.kinds):
                return
            step_s, switch_s = self._measured()
            quotas = np.empty(len(batches))
            pace = fill_quotas(
                np.array([step_s[b] for b in batches]), self.tbt_s, sum(switch_s.values()), self.quota_s, turns.floor,
                quotas,
            )  # fmt: skip
            self._round(number, batches, quotas=quotas.tolist(), pace=pace)

    def _measured(self) -> tuple[dict[int, float], dict[int, float]]:
        """Of each model: seconds of a step, and of a switch to it with everything between two steps, both as they were
        on average in its last turns."""
        step_s, switch_s = {}, {}
        for model in self._batches():
            own = [turn for turn in self.turns if turn.model == model][-LAST:]
            step_s[model] = fmean((turn.end_s - turn.ready_s) / turn.steps for turn in own)
            switch_s[model] = fmean(turn.ready_s - turn.left_s for turn in own)
        return step_s, switch_s

    def _batches(self) -> list[int]:
        """Models with requests to decode, in order."""
        return [model for model in range(len(self.asked.kinds)) if self._going(model)]

    def _going(self, model: int) -> list[int]:
        return [
            request
            for request, prompt in enumerate(self.asked.prompts)
            if prompt.model == model and len(self.tokens[request]) < prompt.output
        ]

    def _round(
        self, number: int, batches: list[int], steps: list[int] | None = None, quotas: list[float] | None = None,
        pace: float = NONE,
    ) -> None:  # fmt: skip
        """Turns of all batches; the next model of the round is fetched beside, so that the first turn never finds its
        model there (the artifact's rule)."""
        for place, model in enumerate(batches):
            ahead = batches[place + 1] if self.asked.prefetch and place + 1 < len(batches) else -1
            most = steps[place] if steps else None
            self._turn(number, model, most, quotas[place] if quotas else NONE, pace, ahead)

    def _turn(self, number: int, model: int, most: int | None, quota_s: float, pace: float, ahead: int) -> None:
        left_s, executor = self.last_s, self.executor
        fetched, load_s = executor.switch(model) if executor.resident != model else (False, 0.0)
        requests = self._going(model)
        held = [len(self.asked.prompts[r].tokens) + len(self.tokens[r]) - 1 for r in requests]
        moved_s = executor.call(requests, held)
        if ahead >= 0:
            executor.fetch(ahead)
        ready_s, steps, at_first = executor.now(), 0, len(requests)
        while requests:
            self._said(requests, executor.step(requests, [self.tokens[r][-1] for r in requests]))
            steps += 1
            requests = [r for r in requests if len(self.tokens[r]) < self.asked.prompts[r].output]
            if steps >= most if most is not None else self.last_s - ready_s >= quota_s - self.over_s[model]:
                break
        end_s = self.last_s
        if most is None:
            self.over_s[model] += end_s - ready_s - quota_s
        moved_s += executor.send_away(requests)
        self.turns.append(
            Turn(number, model, left_s, ready_s, end_s, steps, at_first, fetched, load_s, moved_s, quota_s, pace)
        )

    def _said(self, requests: list[int], logits) -> None:
        """Tokens are chosen and written down; on a GPU that waits for the step."""
        rows = logits.cpu().numpy()
        self.last_s = self.executor.now()
        for request, row in zip(requests, rows, strict=True):
            self.tokens[request].append(int(row.argmax()))
            self.token_s[request].append(self.last_s)
            if self.asked.keep:
                self.logits[request].append(row.copy())


LAST = 2
"""Turns of a model over which its times are averaged: the last ones, as steps grow longer with the context."""
