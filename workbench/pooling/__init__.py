"""How many models share GPUs: turns of decoding, switches of weights, KV caches that come and go.

Rooms: `policy` holds the decisions, `kernels` the compiled loops, `model` records in and tables out, `simulated` the
SimPy processes of the same semantics, `real` small transformers that share one process.
"""

from workbench.pooling.model import (
    ByPlan,
    ByRate,
    InSeconds,
    Pooling,
    PoolModel,
    PoolRun,
    lower,
    market_lengths,
    market_models,
    market_trace,
    muxserve_places,
    pool_model,
    pooled,
    pooling_on,
)

__all__ = [
    "ByPlan",
    "ByRate",
    "InSeconds",
    "PoolModel",
    "PoolRun",
    "Pooling",
    "lower",
    "market_lengths",
    "market_models",
    "market_trace",
    "muxserve_places",
    "pool_model",
    "pooled",
    "pooling_on",
]
