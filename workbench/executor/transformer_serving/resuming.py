"""Going on with a request at another node: its cache computed anew, or moved there over a paced link.

Two processes: the node that goes on, and one that stands for the other members of the pipeline, each of which holds its
layers of the cache. The node's receiving port is what all of them share, so one sender for all is no faster.
"""

import time
from typing import Any, NamedTuple

import numpy as np

from workbench.executor.blocks import Blocks
from workbench.executor.clock import sleep_until
from workbench.executor.desk import Desk
from workbench.executor.group import break_up, open_group
from workbench.executor.held import Held
from workbench.executor.links import Arrival, Links, Receive, Send
from workbench.executor.transformer import (
    KvCache,
    KvPart,
    Output,
    Shape,
    Stage,
    compare,
    forward,
    keeps_bits,
    make_weights,
)

LEAD_S = 0.05
FOLLOW = 16
"""Tokens that are said after the switch, to see that they are right."""

VERSION = "resumed"


class Resume(NamedTuple):
    """What is tried.

    Attributes:
        rendezvous, timeout_s: of the group.
        shape, seed: of the model; its layers are a multiple of the members.
        members: nodes of the pipeline, the one that goes on among them.
        texts: prompts with all that was said.
        recompute_s: of each text how long its prefill is to take.
        part_s: of each text how long each sender's part of the cache is to take on the link.
    """

    rendezvous: str
    timeout_s: float
    shape: Shape
    seed: int
    members: int
    texts: tuple[tuple[int, ...], ...]
    recompute_s: tuple[float, ...]
    part_s: tuple[float, ...]


class Resumed(NamedTuple):
    """What one text's switch took and said.

    Attributes:
        recompute_s, move_s: seconds until the cache was there.
        late_s: how much later than they should the prefill ended and, on average, the parts arrived.
        busy_s: processor seconds of the node during both.
        recomputed, moved: whether what followed is what follows without a switch; see `Identity`.
    """

    recompute_s: float
    move_s: float
    late_s: tuple[float, float]
    busy_s: float
    recomputed: Any
    moved: Any


def go_on(desk: Desk, asked: Resume) -> list[Resumed]:
    """The task of the node that goes on: each text both ways."""
    import torch

    stage, group = _loaded(asked), open_group(asked.rendezvous, 0, 2, asked.timeout_s)
    kept = keeps_bits(asked.shape)
    desk.say("ready")
    found = []
    with torch.inference_mode():
        for place, text in enumerate(asked.texts):
            right, whole = _undisturbed(stage, text)
            busy_s = time.process_time()
            took_s, recompute_late_s, cache = _recomputed(stage, text, asked.recompute_s[place])
            busy_s = time.process_time() - busy_s
            again = _said(stage, cache, right)
            moved_s, move_late_s, moving_s, cache = _moved(group, asked, place, whole)
            moved = _said(stage, cache, right)
            found.append(
                Resumed(
                    took_s,
                    moved_s,
                    (recompute_late_s, move_late_s),
                    busy_s + moving_s,
                    compare([right], [again], same_order=kept),
                    compare([right], [moved], same_order=True),
                )
            )
    desk.say("done")
    desk.hear()
    break_up(group)
    return found


def hand_over(desk: Desk, asked: Resume) -> None:
    """The task of the other members: send their layers of the cache."""
    import torch

    stage, group = _loaded(asked), open_group(asked.rendezvous, 1, 2, asked.timeout_s)
    keeps_bits(asked.shape)
    desk.say("ready")
    for place, text in enumerate(asked.texts):
        with torch.inference_mode():
            cache = KvCache(asked.shape, len(text))
            forward([stage], [text], [cache])
        blocks, held = _parts(asked, place), Held()
        for part, (first, count) in enumerate(_shares(asked)[1:]):
            blocks.payload(part)[:] = cache.export(first, count).rows.reshape(-1).view(np.uint8)
            held.add(part, 0.0)
        start = torch.empty(1, dtype=torch.float64)
        group.recv([start], 0, _tag(place)).wait()
        sends = tuple(Send(0, part, _index(place, part), asked.part_s[place]) for part in range(asked.members - 1))
        Links(group, blocks, held, "real", ()).send(sends, float(start))
    desk.hear()
    break_up(group)


def _loaded(asked: Resume) -> Stage:
    stage = Stage(asked.shape)
    stage.load(make_weights(asked.shape, asked.seed, 0, asked.shape.layers), VERSION)
    return stage


def _undisturbed(stage: Stage, text: tuple[int, ...]) -> tuple[Output, KvCache]:
    """What follows where nothing is switched, and the cache after the text alone."""
    cache, kept = KvCache(stage.shape), KvCache(stage.shape)
    (hidden,) = forward([stage], [text], [cache])
    kept.insert(cache.export(0, stage.shape.layers))
    logits = [stage.logits([hidden])[0].numpy()]
    while len(logits) < FOLLOW:
        logits.append(stage.logits(forward([stage], [[int(logits[-1].argmax())]], [cache]))[0].numpy())
    every = np.array(logits)
    return Output(every.argmax(1), every), kept


def _said(stage: Stage, cache: KvCache, right: Output) -> Output:
    """What follows from a cache after the text, on the tokens that are right; the first was said before the switch."""
    logits = [right.logits[0]]
    for token in right.tokens[:-1].tolist():
        logits.append(stage.logits(forward([stage], [[token]], [cache]))[0].numpy())
    every = np.array(logits)
    return Output(every.argmax(1), every)


def _recomputed(stage: Stage, text: tuple[int, ...], hold_s: float) -> tuple[float, float, KvCache]:
    cache = KvCache(stage.shape)
    begun_s = time.monotonic()
    forward([stage], [text], [cache])
    took_s = sleep_until(begun_s + hold_s, lambda: None) - begun_s
    return took_s, took_s - hold_s, cache


def _moved(group: Any, asked: Resume, place: int, whole: KvCache) -> tuple[float, float, float, KvCache]:
    """The node has its own layers; the others' come over the link."""
    import torch

    shares, cache, blocks = _shares(asked), KvCache(asked.shape), _parts(asked, place)
    cache.insert(whole.export(*shares[0]))
    blocks.clear()
    busy_s, start_s, arrivals = time.process_time(), time.monotonic() + LEAD_S, list[Arrival]()
    group.send([torch.tensor([start_s], dtype=torch.float64)], 1, _tag(place)).wait()
    receives = tuple(Receive(1, part, _index(place, part)) for part in range(asked.members - 1))
    Links(group, blocks, Held(), "real", ()).receive(receives, start_s, arrivals)
    tokens = len(asked.texts[place])
    for part, (first, count) in enumerate(shares[1:]):
        size = (count, 2, asked.shape.kv_heads, tokens, asked.shape.head_width)
        cache.insert(KvPart(VERSION, first, blocks.payload(part).view(np.float32).reshape(size)))
    took_s, busy_s = time.monotonic() - start_s, time.process_time() - busy_s
    late_s = [arrival.end_s - arrival.deadline_s for arrival in arrivals]
    return took_s, sum(late_s) / len(late_s), busy_s, cache


def _shares(asked: Resume) -> list[tuple[int, int]]:
    """The layers of each member, the node that goes on first."""
    return asked.shape.blocks(asked.members)


def _parts(asked: Resume, place: int) -> Blocks:
    size = len(asked.texts[place]) * asked.shape.kv_bytes_per_token // asked.members
    return Blocks((size,) * (asked.members - 1))


def _index(place: int, part: int) -> int:
    return 100 * place + part


def _tag(place: int) -> int:
    return (1 << 24) + place
