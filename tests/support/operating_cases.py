"""Small clusters and tables for tests of systems at work."""

import polars as pl

import workbench as wb
from workbench.operating import System
from workbench.serving import Engine, StepForm

MUCH = 2**31 - 1
SCALING = (
    "ideal",
    "serverlessllm@blitzscale",
    "serverlessllm@lambdascale",
    "allcache",
    "nccl",
    "faasnet",
    "lambdascale",
)
APART = ("blitzscale", "blitzscale@multicast", "blitzscale@network")
"""Those whose instances compute prompts or decode only."""
"""Systems whose instances come and go."""


def gpus(accelerators: int, hosts: int = 1, accelerator: str = "a100-80gb-sxm"):
    """A cluster of A100s."""
    return wb.cluster(hosts=hosts, accelerators=accelerators, accelerator=accelerator, nic_bytes_per_s=25e9)


def table(*rows, **columns):
    """Rows (arrival, prompt, output)."""
    names = ["arrival_s", "prompt_tokens", "output_tokens"]
    return pl.DataFrame(list(rows), schema=names, orient="row", strict=False).with_columns(**columns)


SECOND = StepForm(compute=(1.0, 0.0, 0.0, 0.0, 0.0))
"""Every step takes a second."""

SERVER = System(
    name="servers",
    engine=Engine(slots=1, budget=MUCH, chunk=MUCH, block_tokens=2**20, reserve=True),
    dispatch="first-free",
    limit=1,
)
"""Each instance is a server of the textbooks, with one line before all."""

TICK_S = 1e-6
TICKS = StepForm(compute=(1e-12, TICK_S, 0.0, 0.0, 0.0))
"""A prompt token is a microsecond of service."""
SERVED = {"models": "llama-3-8b", "step": TICKS, "kv_tokens": 2**40}

WEIGHTS = wb.model("llama-3-8b").weight_bytes


def quarters(hosts: int = 2, accelerators: int = 2, **links):
    """Hosts from whose SSD an instance of Llama-3-8B reads in 4 s, from whose memory in 1 s, from another in 2 s."""
    given = {"ssd_bytes_per_s": WEIGHTS / 4, "ssds": accelerators, "host_bytes_per_s": WEIGHTS}
    given |= {"nic_bytes_per_s": WEIGHTS / 2, "host_memory_bytes": 1.5 * WEIGHTS} | links
    return wb.cluster(hosts=hosts, accelerators=accelerators, accelerator="a100-80gb-sxm", **given)
