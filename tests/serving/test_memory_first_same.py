"""Loads from memory beside multicasts: compiled and SimPy engine give the same bits, and what may go apart occurs."""

from collections import Counter

import numpy as np
from scaling_cases import memory_scenarios
from serving_outcomes import differences

from workbench.serving.model.engine import run_compiled
from workbench.serving.model.scaled import PIPED
from workbench.serving.policy.scalers import DRAM_TIER, MULTICAST_TIER, SSD_TIER
from workbench.serving.simulated import simulate


def occurrences(lowered, run) -> Counter:
    """How often what is new here came up in a run."""
    seen, given = Counter(), lowered.scaling
    tier, sources, piped_s = run.loads[:, 3], run.loads[:, 4], run.loads[:, 8]
    model = lowered.instances.model[run.loads[:, 2].astype(int)]
    first = given.memory_first[model] == 1
    seen["from memory beside a multicast"] += (first & (tier == DRAM_TIER)).sum()
    seen["in a pipeline from memory"] += (first & (tier == DRAM_TIER) & ~np.isnan(piped_s)).sum()
    seen["sent"] += (tier == MULTICAST_TIER).sum()
    seen["from SSD"] += (tier == SSD_TIER).sum()
    seen["lost on the way"] += (first & (tier == DRAM_TIER) & np.isnan(run.loads[:, 1])).sum()
    seen["several from memory at once"] += (np.diff(run.loads[first & (tier == DRAM_TIER), 5]) == 0).sum()
    may = given.hosts_send[model] == 1
    seen["sent where hosts may send"] += (may & (tier == MULTICAST_TIER) & (sources > 1)).sum()
    seen["pinned"] += given.pinned.sum()
    seen["piped"] += (run.states[:, 2] == PIPED).sum()
    return seen


def test_they_are_the_same_in_every_bit():
    seen = Counter()
    for number, lowered in enumerate(memory_scenarios()):
        run = simulate(lowered)
        assert differences(run, run_compiled(lowered)) == [], number
        seen += occurrences(lowered, run)
    assert min(seen.values()) >= 20, seen
    assert len(seen) == 9, seen


def test_steps_and_jumps_are_the_same():
    for number, lowered in enumerate(memory_scenarios(60)):
        assert differences(run_compiled(lowered), run_compiled(lowered, jumps=False)) == [], number
