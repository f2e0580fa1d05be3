"""Records in, tables out: what a pool is made of, how it is run, and what became of its requests."""

from workbench.pooling.model.engine import run_compiled
from workbench.pooling.model.facts import facts
from workbench.pooling.model.lowered import Lowered, Outcome
from workbench.pooling.model.market import market_lengths, market_models, market_trace
from workbench.pooling.model.placing import muxserve_places
from workbench.pooling.model.pooling import Pooling, lower, pooling_on
from workbench.pooling.model.run import PoolRun, pooled
from workbench.pooling.model.served import PoolModel, pool_model
from workbench.pooling.model.switching import ByPlan, ByRate, InSeconds

__all__ = [
    "ByPlan",
    "ByRate",
    "InSeconds",
    "Lowered",
    "Outcome",
    "PoolModel",
    "PoolRun",
    "Pooling",
    "facts",
    "lower",
    "market_lengths",
    "market_models",
    "market_trace",
    "muxserve_places",
    "pool_model",
    "pooled",
    "pooling_on",
    "run_compiled",
]
