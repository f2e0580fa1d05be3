"""What serves, as people say it: engines, groups of instances, dispatch, and what happens to them."""

import math
from typing import Literal

import numpy as np
import polars as pl
from pydantic import Field, field_validator, model_validator

from workbench.errors import InputError, UnknownName
from workbench.records import Asked, AtLeastOne, Positive, ZeroOrMore
from workbench.serving.model.autoscaling import Autoscaler, Pool
from workbench.serving.model.checking import checked
from workbench.serving.model.happenings import Failure, LinkFailure, Update, require_possible
from workbench.serving.model.kv_network import ROLES, Network, network_of
from workbench.serving.model.lowered import NO_LIMIT, Failures, Instances, Lowered, Outages, Requests, Updates
from workbench.serving.model.pooling import pooled
from workbench.serving.model.request_columns import prefixes, ranks
from workbench.serving.model.start_up import StartUp
from workbench.serving.model.step_forms import StepForm
from workbench.serving.policy import ROUTES
from workbench.workloads.generators.streams import Seed, stream
from workbench.workloads.handle import Trace


class Engine(Asked):
    """How one instance batches.

    Attributes:
        slots: most running requests.
        budget: most tokens of one step.
        chunk: most prompt tokens of one request in one step.
        block_tokens: tokens of a KV block.
        reserve: blocks for prompt and output are taken on admission; otherwise they are taken as tokens are stored, and
            the last admitted request is evicted where none is left.
        whole: newcomers are admitted only when nothing runs.
        apart: a step with prompts to process decodes nothing.
        prefix_cache_tokens: of prompts whose KV is kept for others that begin alike, in memory beside that of running
            requests; 0 for none.
        prefix_block_tokens: that one of the requests' prefix hashes covers; where they are a trace, that states it.
    """

    slots: AtLeastOne = 256
    budget: AtLeastOne = 2048
    chunk: AtLeastOne = 2048
    block_tokens: AtLeastOne = 16
    reserve: bool = False
    whole: bool = False
    apart: bool = False
    prefix_cache_tokens: ZeroOrMore = 0
    prefix_block_tokens: AtLeastOne | None = None


UNBOUNDED = 2**31 - 1
"""Slots or tokens of an engine without a bound of its own."""

ENGINES: dict[str, Engine] = {
    "continuous": Engine(),
    "reserved-slots": Engine(reserve=True),
    "fixed-batches": Engine(slots=8, budget=UNBOUNDED, chunk=UNBOUNDED, reserve=True, whole=True),
    "prefill-first": Engine(budget=8192, chunk=8192, apart=True),
    "token-batches": Engine(slots=UNBOUNDED, budget=4096, chunk=4096, block_tokens=64, reserve=True),
}
"""Name -> settings. *continuous*: paged KV, prompts in chunks beside decoding; *reserved-slots*: the same with KV
reserved for whole requests; *fixed-batches*: a batch runs until all in it are done; *prefill-first*: whole prompts
before any decoding; *token-batches*: steps of 4,096 tokens, KV in blocks of 64 tokens reserved for whole requests, and
any number of requests, as BlitzScale's artifact has it. The sizes of the others are chosen, not any system's."""


def engine_named(name: str, **changes) -> Engine:
    """One of `ENGINES`, with some settings changed.

    >>> engine_named("prefill-first", slots=64).apart
    True
    """
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    return Engine(**(ENGINES[name].model_dump() | changes))


class Group(Asked):
    """Instances that are alike.

    Attributes:
        model: name of the model they serve, as requests ask for it.
        count: how many; with a pool, how many at first.
        engine: how each batches.
        step: how long a step takes, see `workbench.serving.step_form`.
        role: *colocated* instances do both phases; *prefill* ones compute prompts and send the KV to *decode* ones.
        kv_bytes_per_token: of the KV that is sent; needed with roles.
        kv_tokens: tokens whose KV fits one instance (`workbench.profiles.check_fits` tells).
        limit: most requests queued or running on one before the router holds back; None for no limit.
        batch_tokens: of *prefill* ones: requests wait at the router until one is free, that is runs none, which takes
            as many as have so many prompt tokens together and find free blocks, or one that has more; None gives them
            away at any time.
        autoscaler: with a pool, how many there should be.
        start_up: with a pool, what it takes to start one.
    """

    model: str
    count: ZeroOrMore = 1
    engine: Engine = ENGINES["continuous"]
    step: StepForm
    kv_tokens: AtLeastOne
    role: Literal["colocated", "prefill", "decode"] = "colocated"
    kv_bytes_per_token: Positive | None = None
    limit: AtLeastOne | None = None
    batch_tokens: AtLeastOne | None = None
    autoscaler: Autoscaler = Autoscaler()
    start_up: StartUp = StartUp()


class Scenario(Asked):
    """A cluster and its rules.

    Attributes:
        groups: what serves.
        dispatch: name of the policy by which the router chooses, see `workbench.serving.policy.ROUTES`.
        failures: in any order; one at a time on each instance.
        updates: of weights, in any order; need a pool.
        link_failures: in any order; one at a time of each link; need a network.
        until_s: when the clock stops; infinity to run until all is done.
        pool: where instances come and go; None where those of the groups are all there are.
        network: what KV is sent over, and weights that come by chains; needed where groups have roles or such weights.
    """

    groups: tuple[Group, ...] = Field(min_length=1)
    dispatch: str = "least-outstanding"
    failures: tuple[Failure, ...] = ()
    updates: tuple[Update, ...] = ()
    link_failures: tuple[LinkFailure, ...] = ()
    until_s: float = math.inf
    pool: Pool | None = None
    network: Network | None = None

    @field_validator("dispatch")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in ROUTES:
            raise UnknownName("dispatch policy", name, ROUTES)
        return name

    @model_validator(mode="after")
    def _scales_in_a_pool(self):
        scaled = [group for group in self.groups if group.autoscaler != Autoscaler() or group.start_up != StartUp()]
        if self.pool is None and scaled:
            raise ValueError(f"group {scaled[0].model!r} has an autoscaler or a start-up but there is no pool; add one")
        return self

    @model_validator(mode="after")
    def _updates_what_it_serves(self):
        if self.updates and self.pool is None:
            raise ValueError(
                "updates need a pool, in which instances come and go; add one, or take a system that scales"
            )
        for update in self.updates:
            if update.model not in self.models:
                known = ", ".join(map(repr, self.models[:8])) + (", …" if len(self.models) > 8 else "")
                raise ValueError(f"updates name {update.model!r}, which no group serves; name one of {known}")
        return self

    @property
    def instance_models(self) -> list[str]:
        """The model of each instance; with a pool, of each row: a place and a group."""
        return [group.model for group in self.rows]

    @property
    def places(self) -> int:
        """How many instances, with a pool places, failures may name."""
        return self.pool.hosts * self.pool.places if self.pool is not None else len(self.row_groups)

    @property
    def models(self) -> list[str]:
        """The models that are served, as they are numbered."""
        return list(dict.fromkeys(group.model for group in self.groups))

    @property
    def rows(self) -> list[Group]:
        """The group of each instance; with a pool every place can hold one of each."""
        return [self.groups[k] for k in self.row_groups]

    @property
    def row_groups(self) -> list[int]:
        """The same as positions in `groups`."""
        if self.pool is not None:
            return list(range(len(self.groups))) * (self.pool.hosts * self.pool.places)
        return [k for k, group in enumerate(self.groups) for _ in range(group.count)]


def lower(scenario: Scenario, requests: Trace | pl.DataFrame, seed: Seed = 0) -> Lowered:
    """The run as arrays.

    Models are numbered by first appearance in the groups, then in the requests; a request for a model that no group
    serves is rejected by the run. Time counts from the first arrival.

    Parameters:
        scenario: what serves.
        requests: a trace, or its table: `model, arrival_s, prompt_tokens, output_tokens` in order of arrival, and
            `priority` if requests have ranks, 0 for those that go first; `prefix_hashes` if prompts begin alike.
        seed: of the random numbers that dispatch policies draw.

    Raises:
        InputError: a column that is missing or makes no sense; what `require_possible` refuses.
    """
    table = requests.requests if isinstance(requests, Trace) else requests
    for column in ("model", "arrival_s", "prompt_tokens", "output_tokens"):
        if column not in table.columns:
            raise InputError("is missing from the requests", f"add a column {column}", field=column)
    hosts, places = scenario.pool.hosts if scenario.pool else 0, scenario.places
    require_possible(scenario.failures, scenario.link_failures, scenario.updates, places, hosts, scenario.network)
    names = list(dict.fromkeys([*scenario.models, *table["model"].unique(maintain_order=True)]))
    number = {name: k for k, name in enumerate(names)}
    model = table["model"].replace_strict(number, return_dtype=pl.Int64).to_numpy() if len(table) else np.zeros(0, int)
    arrival_s = table["arrival_s"].cast(pl.Float64).to_numpy()
    draw = stream(seed, "dispatch").random((len(table), 2))
    prefix_at, prefix, prefix_tokens = _prefixes(scenario, requests, table)
    outages = sorted((one.time_s, one.port(places), one.back_s) for one in scenario.link_failures)
    updates = sorted(scenario.updates, key=lambda update: (update.time_s, number[update.model]))
    failures = sorted(scenario.failures, key=lambda failure: (failure.time_s, failure.instance))
    return checked(
        Lowered(
            Requests(
                arrival_s=arrival_s - arrival_s[0] if len(table) else arrival_s,
                prompt=np.maximum(table["prompt_tokens"].cast(pl.Int64).to_numpy(), 1),
                output=table["output_tokens"].cast(pl.Int64).to_numpy(),
                model=model,
                draw=draw,
                rank=ranks(table),
                prefix_at=prefix_at,
                prefix=prefix,
                prefix_tokens=prefix_tokens,
            ),
            _instances(scenario, number, prefix_tokens),
            Failures(
                time_s=np.array([failure.time_s for failure in failures]),
                instance=np.array([failure.instance for failure in failures], dtype=np.int64),
                back_s=np.array([failure.back_s for failure in failures]),
            ),
            ROUTES[scenario.dispatch],
            scenario.until_s,
            None if scenario.pool is None else pooled(scenario.pool, scenario.groups),
            network_of(scenario.network, scenario.groups, scenario.row_groups, names, hosts),
            Updates(
                time_s=np.array([update.time_s for update in updates]),
                model=np.array([number[update.model] for update in updates], dtype=np.int64),
            ),
            Outages(*(np.array([one[k] for one in outages], dtype=(float, np.int64, float)[k]) for k in range(3))),
        )
    )


def _prefixes(
    scenario: Scenario, requests: Trace | pl.DataFrame, table: pl.DataFrame
) -> tuple[np.ndarray, np.ndarray, int]:
    """`prefix_at`, `prefix` and `prefix_tokens` of `Requests`; nothing where no engine keeps prefixes."""
    engines = [group.engine for group in scenario.groups if group.engine.prefix_cache_tokens]
    prefix_at, prefix = prefixes(table if engines else table.drop("prefix_hashes", strict=False))
    if not prefix.size:
        return prefix_at, prefix, 0
    stated = {one.prefix_block_tokens for one in engines if one.prefix_block_tokens}
    if isinstance(requests, Trace) and requests.origin.block_tokens:
        stated.add(requests.origin.block_tokens)
    if len(stated) != 1:
        found = " and ".join(map(str, sorted(stated)))
        raise InputError(
            f"is {found} for the same hashes" if stated else "is missing, and no trace states it",
            "give the tokens that one prefix hash covers", field="prefix_block_tokens",
        )  # fmt: skip
    return prefix_at, prefix, stated.pop()


def _cached_blocks(engine: Engine, prefix_tokens: int) -> int:
    """Hash blocks that an engine keeps, where the requests have any."""
    tokens = engine.prefix_cache_tokens
    if 0 < tokens < prefix_tokens:
        raise InputError(
            f"is {tokens}, less than one hash block of {prefix_tokens}", "give more", field="prefix_cache_tokens"
        )
    return tokens // prefix_tokens if prefix_tokens else 0


def _instances(scenario: Scenario, number: dict[str, int], prefix_tokens: int) -> Instances:
    rows, forms = [], []
    for group in scenario.rows:
        one = group.engine
        row = (
            number[group.model], group.limit or NO_LIMIT, one.slots, one.budget, one.chunk, one.block_tokens,
            group.kv_tokens // one.block_tokens, one.reserve, one.whole, one.apart, _cached_blocks(one, prefix_tokens),
            ROLES[group.role], group.batch_tokens or 0,
        )  # fmt: skip
        if group.kv_tokens < one.block_tokens:
            raise InputError(
                f"is {group.kv_tokens}, less than one block of {one.block_tokens}", "give more", field="kv_tokens"
            )
        rows.append(row)
        forms.append(group.step.rows)
    if not rows:
        raise InputError("have no instance between them", "give one a count of 1 or more, or a pool", field="groups")
    return Instances(*np.array(rows, dtype=np.int64).T, form=np.array(forms))
