"""Small clusters and tables for tests of systems at work."""

import polars as pl

import workbench as wb
from workbench.operating import System
from workbench.serving import Engine, StepForm

MUCH = 2**31 - 1


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
