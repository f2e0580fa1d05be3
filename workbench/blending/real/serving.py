"""An offline pool served step by step by a small transformer: prompts in one thread, decoding in another."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from workbench.blending.model.steps import Chunk, Step
from workbench.blending.real.segments import NotThere, PathCache, Store
from workbench.executor.transformer import Output, Shape, Stage, forward, make_weights
from workbench.executor.transformer.arithmetic import Arithmetic

VERSION = "blended"

SWITCH_S = 1e-5
"""How long a thread may keep Python's lock while the other waits for it. Decoding is many small operations; with
Python's own 5 ms the products of the other thread wait for them, and much less overlaps."""


class Model(NamedTuple):
    """A model to make: its shape, the seed of its weights, its arithmetic, and "cpu" or a CUDA device to run it on."""

    shape: Shape
    seed: int
    arithmetic: Arithmetic = "plain"
    device: str = "cpu"


class Job(NamedTuple):
    """Requests and the steps that serve them.

    Attributes:
        prompts: token ids of each request. answers: what each is made to say, one token a step.
        node: of each request the inner node above its leaf. own: its prompt tokens below that node.
        parents, tokens: the prefix tree, see `Store`.
        steps: see `model.planning`.
    """

    prompts: tuple[tuple[int, ...], ...]
    answers: tuple[tuple[int, ...], ...]
    node: tuple[int, ...]
    own: tuple[int, ...]
    parents: tuple[int, ...]
    tokens: tuple[int, ...]
    steps: tuple[Step, ...]


class Served(NamedTuple):
    """What a run took and said.

    Attributes:
        compute_s, memory_s: of each step the seconds of its prompts and of its decoding, each as it ran.
        step_s: of each step the seconds from its begin to the end of the later part.
        computed: prompt tokens that went through the model.
        outputs: of each request the token that it would say after its prompt and after each token of its answer, with
            the logits.
    """

    compute_s: np.ndarray
    memory_s: np.ndarray
    step_s: np.ndarray
    computed: int
    outputs: tuple[Output, ...]


def loaded(model: Model) -> Stage:
    """All layers of a model made from a seed."""
    stage = Stage(model.shape, model.arithmetic, model.device)
    stage.load(make_weights(model.shape, model.seed, 0, model.shape.layers), VERSION)
    return stage


class Beside:
    """Two pieces of work, each with one thread of the library: beside each other, or one after the other in one thread.

    Where the machine has two processors, each thread keeps to one of its own. On a GPU each piece has a stream of its
    own, and ends when all that it put there has been done.

    Parameters:
        device: "cpu" or a CUDA device.
    """

    def __init__(self, device: str) -> None:
        self._streams = (None, None) if device == "cpu" else _two_streams(device)
        self._allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        self._other = ThreadPoolExecutor(1, initializer=_one_thread, initargs=(self._allowed[1:2],))

    def __enter__(self) -> "Beside":
        _keep_to(self._allowed[:1])
        self._interval_s = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        return self

    def __exit__(self, *_) -> None:
        self._other.shutdown()
        sys.setswitchinterval(self._interval_s)
        _keep_to(self._allowed)

    def run(self, first: Callable[[], Any], second: Callable[[], Any], together: bool) -> tuple[float, float, float]:
        """Seconds of the first, of the second and of both, from the common begin to the later end."""
        one, two = self._streams
        begun_s = time.perf_counter()
        if together:
            other = self._other.submit(_timed, second, two)
            first_s, second_s = _timed(first, one), other.result()
        else:
            second_s, first_s = _timed(second, two), _timed(first, one)
        return first_s, second_s, time.perf_counter() - begun_s


def _keep_to(processors: Sequence[int]) -> None:
    """Keep the calling thread to some processors, if any are named."""
    if processors:
        os.sched_setaffinity(0, processors)


def _one_thread(processors: Sequence[int]) -> None:
    import torch

    torch.set_num_threads(1)
    _keep_to(processors)


def _two_streams(device: str) -> tuple[Any, Any]:
    import torch

    torch.cuda.synchronize(device)  # what was put on other streams before is there
    return torch.cuda.Stream(device), torch.cuda.Stream(device)


def _timed(work: Callable[[], Any], stream: Any) -> float:
    """Seconds of a piece of work, on a stream of a GPU until that has done it."""
    import torch

    begun_s = time.perf_counter()
    with torch.inference_mode(), nullcontext() if stream is None else torch.cuda.stream(stream):
        work()
        if stream is not None:
            stream.synchronize()
    return time.perf_counter() - begun_s


class _Running:
    """The state of one run of a job."""

    def __init__(self, stage: Stage, job: Job):
        self.stage, self.job = stage, job
        self.store = Store(stage.shape, job.parents, job.tokens, stage.device)
        self.caches: dict[int, PathCache] = {}
        self.chosen: list[list[int]] = [[] for _ in job.prompts]
        self.logits: list[list[Any]] = [[] for _ in job.prompts]
        self.computed = 0

    def open(self, step: Step) -> None:
        """Before a step: segments leave, others come back with their request, new requests get their caches."""
        self.store.drop(step.dropped)
        for who in step.returned:
            self.store.bring_back(self.job.node[who], self.caches[who])
        for chunk in step.prompts:
            if chunk.who not in self.caches:
                room = self.job.own[chunk.who] + len(self.job.answers[chunk.who])
                self.caches[chunk.who] = self.store.path(self.job.node[chunk.who], room)

    def prompts(self, chunks: Sequence[Chunk]) -> None:
        """The part that computes: prompt tokens of the chunks through all layers."""
        if not chunks:
            return
        texts = [self.job.prompts[chunk.who][chunk.first : chunk.first + chunk.count] for chunk in chunks]
        caches = [_Checked(self.caches[chunk.who], chunk) for chunk in chunks]
        hidden = forward([self.stage], texts, caches)
        self.computed += sum(map(len, texts))
        whole = [place for place, chunk in enumerate(chunks) if self._ends(chunk)]
        if whole:
            self._say([chunks[place].who for place in whole], self.stage.logits([hidden[place] for place in whole]))

    def decodes(self, whom: Sequence[int]) -> None:
        """The part that reads memory: a token of everyone who decodes."""
        if whom:
            said = [[self.job.answers[who][len(self.chosen[who]) - 1]] for who in whom]
            hidden = forward([self.stage], said, [self.caches[who] for who in whom])
            self._say(whom, self.stage.logits(hidden))

    def close(self, whom: Sequence[int]) -> None:
        """After a step: whoever is done gives its cache back."""
        for who in whom:
            if len(self.chosen[who]) > len(self.job.answers[who]):
                del self.caches[who]

    def _ends(self, chunk: Chunk) -> bool:
        return chunk.first + chunk.count == len(self.job.prompts[chunk.who])

    def _say(self, whom: Sequence[int], logits: Any) -> None:
        for who, row, token in zip(whom, logits, logits.argmax(-1).tolist(), strict=True):
            self.chosen[who].append(token)
            self.logits[who].append(row)


class _Checked:
    """A cache that refuses a chunk which does not begin where the cache ends, in any layer."""

    def __init__(self, cache: PathCache, chunk: Chunk):
        self._cache, self._chunk = cache, chunk
        self.belong_to, self.add = cache.belong_to, cache.add

    def length(self, layer: int) -> int:
        """See `PathCache`."""
        if (length := self._cache.length(layer)) != self._chunk.first:
            raise NotThere(
                f"Request {self._chunk.who} goes on at token {self._chunk.first} and finds {length} tokens before it; "
                "plan the steps anew."
            )
        return length


def serve_job(stage: Stage, job: Job, together: bool) -> Served:
    """Serve a job once.

    Parameters:
        together: whether prompts and decoding of a step run beside each other.

    Errors: `NotThere` where the steps do not fit the tree.
    """
    running, seconds = _Running(stage, job), np.empty((len(job.steps), 3))
    with Beside(stage.device) as beside:
        for number, step in enumerate(job.steps):
            running.open(step)
            seconds[number] = beside.run(
                lambda step=step: running.prompts(step.prompts),
                lambda step=step: running.decodes(step.decodes),
                together,
            )
            running.close(step.decodes)
    outputs = tuple(
        Output(np.array(tokens, dtype=np.int64), np.array([row.cpu().numpy() for row in rows]))
        for tokens, rows in zip(running.chosen, running.logits, strict=True)
    )
    return Served(*seconds.T, running.computed, outputs)
