"""What is known of Aegaeon's pool: models, lengths, ways of running and stages of a switch, each with its source."""

import functools
from pathlib import Path

from pydantic import Field

from workbench.paths import facts_folder
from workbench.profiles.checking import build
from workbench.profiles.quantities import Bytes, BytesPerSecond, Number, Seconds
from workbench.profiles.toml_reading import read_toml
from workbench.records import Record, Status


class Mix(Record):
    """Names of models; model number k is `models[k % len(models)]`."""

    models: tuple[str, ...] = Field(min_length=1)
    status: Status
    source: str


class Lengths(Record):
    """Of requests, in tokens: mean, median and bounds of a log-normal distribution."""

    prompt_mean: Number
    prompt_median: Number
    prompt_most: Number
    output_mean: Number
    output_median: Number
    output_least: Number
    output_most: Number


class Variant(Record):
    """How the paper, its artifact, or the simulator in that runs a pool; what is None is the hardware's.

    Attributes:
        group_rule, load_rule, blind, clock, prefetch: see `workbench.pooling.model.pooling.Pooling`.
        weights: bytes of a model by its "shape", by the "parameters" of the artifact, or as "simulated" there.
        accelerator: whose step times are taken.
        assumed_fraction, assumed_nominal_bytes_per_s: share of the nominal rate at which the schedulers think that
            weights load, and that rate.
        load_bytes_per_s: at which they load.
        kv_bytes_per_token: of every model, on the way.
        memory_fraction, least_blocks: of a GPU for weights and KV cache; KV blocks that a prefetch must leave.
        least_switch_s, give_up_s: see `Pooling`.
        source: whose rules these are.
    """

    group_rule: str
    load_rule: str
    blind: bool
    clock: str
    prefetch: str
    weights: str
    accelerator: str = ""
    assumed_fraction: Number | None = None
    assumed_nominal_bytes_per_s: BytesPerSecond | None = None
    load_bytes_per_s: BytesPerSecond | None = None
    kv_bytes_per_token: Number | None = None
    memory_fraction: Number
    least_blocks: Number | None = None
    least_switch_s: Seconds
    give_up_s: Seconds | None = None
    source: str


class Mux(Record):
    """MuxServe's memory rule: bytes of a GPU for weights and more, and what each model takes beside its weights."""

    budget_bytes: Bytes
    added_bytes: Bytes


class Stages(Record):
    """Seconds of what an unoptimised switch does, and the rate of plain copies."""

    collect_s: Seconds
    executor_s: Seconds
    profiling_s: Seconds
    pinning_s: Seconds
    other_s: Seconds
    weights_s: Seconds
    plain_bytes_per_s: BytesPerSecond


class Facts(Record):
    """What `data/pooling/aegaeon.toml` states: the market, variants, MuxServe's rule, the stages of a switch."""

    mix: Mix
    lengths: Lengths
    variants: dict[str, Variant]
    muxserve: Mux
    stages: Stages


def facts() -> Facts:
    """The facts about Aegaeon's pools, each with status and source, read once from `data/pooling/aegaeon.toml`."""
    return _read(facts_folder() / "pooling" / "aegaeon.toml")


@functools.cache
def _read(path: Path) -> Facts:
    tables = read_toml(path)
    return build(Facts, tables, file=path, sources=tables.pop("sources", {}))
