"""Batches among failures, new versions, rows that change roles, help and short memories: as by hand, and compiled."""

from collections import Counter

import numpy as np
from everything_cases import everything
from serving_invariants import cluster_is_sound
from serving_outcomes import differences

from workbench.serving.model.checking import checked
from workbench.serving.model.engine import run_compiled
from workbench.serving.model.lowered import DONE
from workbench.serving.simulated.prefiller import Prefiller
from workbench.serving.simulated.run import Cluster

SEEDS = (*range(30), 39, 45, 65, 139, 141, 486)
"""From 39 on there is much help; at 486 for one that decodes and computes prompts anew, while others wait."""


def calm(lowered):
    """The same without failures, new versions and rows that give requests back."""
    none = {name: given._replace(**{field: column[:0] for field, column in given._asdict().items()})
            for name, given in (("failures", lowered.failures), ("outages", lowered.outages),
                                ("updates", lowered.updates))}  # fmt: skip
    return lowered._replace(**none, scaling=lowered.scaling._replace(mutate=lowered.scaling.mutate * 0))


def nobody_free_lets_others_wait(cluster):
    """Of all that could ever take the first in a line."""
    for line in cluster.router.lines:
        for place in line.places if line else ():
            free = place.up and place.batch and not place.outstanding
            assert not (free and place.fits(line[0])), (place.index, cluster.clock.now)


def test_batches_end_the_same_and_are_what_they_are_said_to_be(monkeypatch):
    """One at a time, within its tokens unless one goes alone, first come first served, while nobody who is free lets
    others wait; every third one without failures and whatever else gives requests back."""
    seen, give, given = Counter(), Prefiller.give, []

    def watched(self, request):
        assert not self.batch or not (self.running or self.step)
        give(self, request)
        together = [one.need for one in self.queue]
        assert not self.batch or len(together) == 1 or sum(together) <= self.batch
        seen["batches"] += self.batch > 0
        seen["joined"] += self.batch > 0 and len(together) > 1
        given.append((request.model, request.rank, request.index))

    monkeypatch.setattr(Prefiller, "give", watched)
    for seed in SEEDS:
        lowered = checked(everything(seed, batched=True))
        lowered = calm(lowered) if seed % 3 == 1 else lowered
        given.clear()
        cluster = Cluster(lowered)
        clock = cluster.clock
        while clock.peek() <= min(lowered.until_s, np.finfo(float).max):
            clock.step()
            cluster_is_sound(cluster)
            if clock.peek() > clock.now:
                nobody_free_lets_others_wait(cluster)
        run = cluster.outcome()
        assert differences(run_compiled(lowered, jumps=seed % 5 > 0), run) == [], f"seed {seed}"
        assert (run.made[run.status == DONE] == lowered.requests.output[run.status == DONE]).all()
        if seed % 3 == 1 and not run.moves.any() and not run.evictions.any():
            assert all(of == sorted(of) for of in ranked(given)), f"seed {seed}"
            seen["first come first served"] += 1
        seen["helped"] += len(run.assists)
        seen["moves"] += run.moves.sum()
    assert not {name: count for name, count in seen.items() if count < 8}, seen


def ranked(given):
    """Requests by model and rank, in the order in which they were given away."""
    return [[index for *of, index in given if of == [*key]] for key in {(model, rank) for model, rank, _ in given}]
