"""Prefill and decode on accelerators of their own (DistServe): as fast as the slower group, phase by phase."""

from typing import NamedTuple

import numpy as np

from workbench.blending.kernels.layout import DECODES, TOKENS
from workbench.blending.model.costs import Costs, Engine, seconds_of
from workbench.blending.model.estimating import Estimates
from workbench.blending.model.ordering import plain
from workbench.blending.model.prompts import Pool
from workbench.blending.model.running import serve
from workbench.blending.model.tree import Tree
from workbench.records import whole

PROMPTS_AT_ONCE = 1 << 20
"""Dense batch of the run that stands for a decode group: prompts come computed and only memory limits admission."""


class Halves(NamedTuple):
    """Seconds that one accelerator prefills, and that one decodes, for each source of a pool (float64 arrays)."""

    prefill_s: np.ndarray
    decode_s: np.ndarray


def halves(pool: Pool, tree: Tree, estimates: Estimates, costs: Costs, engine: Engine) -> Halves:
    """How long one accelerator prefills and one decodes the requests of each source, down the prefix tree.

    A step that decodes reads weights and KV one after the other with its arithmetic; it has no prompts to fill it.
    """
    prefill, decode = [], []
    dfs = tree.dfs()
    for place in range(len(pool.sources)):
        own = dfs[pool.source[dfs] == place]
        if not own.size:
            prefill.append(0.0)
            decode.append(0.0)
            continue
        run = serve(pool, tree, estimates, plain(own), costs, batch=PROMPTS_AT_ONCE)
        prefill.append(float(run.computed.sum()) * engine.costs.token_s)
        log = run.log.copy()
        log[:, TOKENS] = log[:, DECODES]
        log = log[log[:, DECODES] > 0]
        decode.append(float(seconds_of(log, engine).step_s.sum()))
    return Halves(np.array(prefill), np.array(decode))


def disaggregated_s(found: Halves, prefills: int, decodes: int) -> float:
    """Seconds of a pool on so many accelerators that prefill and so many that decode, source after source.

    While a source is served the slower group sets the pace; the other one waits, as nothing else is at hand.

    Parameters:
        found: seconds of one accelerator of each kind, source by source.
        prefills, decodes: how many there are of each kind.
    """
    whole(prefills, "prefills", 1)
    whole(decodes, "decodes", 1)
    return float(np.maximum(found.prefill_s / prefills, found.decode_s / decodes).sum())
