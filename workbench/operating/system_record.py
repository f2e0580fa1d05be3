"""What a system is: one set of choices, how instances come and go among them, each with whose it is."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import polars as pl
from pydantic import Field, field_validator, model_validator

from workbench.errors import InputError, UnknownName
from workbench.operating.scaling_rule import Rule
from workbench.records import Asked, AtLeastOne, NotNegative, Positive, ZeroOrMore
from workbench.serving import ENGINES, ROUTES, Engine, Part
from workbench.serving.policy import SOURCES

Share = Literal["full", "half", "average", "one each", "least"]

PROVISIONING: dict[str, str] = {
    "full": "all instances that the cluster holds, divided among the models by the work each brings",
    "half": "half of them",
    "average": "for each model as many as its requests need on average over the trace",
    "one each": "each model has one instance of its own",
    "least": "for each model the least that there may be",
}


class System(Asked):
    """One set of choices; `replaced` makes a hybrid.

    Attributes:
        name, summary: what it is called and what it does.
        engine: how an instance batches: a name of `workbench.serving.ENGINES`, or an `Engine`.
        dispatch: how the router chooses, a name of `wb.policies()`.
        provisioning: how many instances run, or run at first where an autoscaler follows, see `PROVISIONING`; a whole
            number is that many for each model.
        roles: instances do both phases (*together*), or compute prompts or decode only (*apart*), and send each other
            KV over their network cards.
        limit: most requests that the router gives one instance at a time, while others wait in one queue for all; None
            for no limit. With roles *apart* it is for those that compute prompts.
        batch_tokens: with roles *apart*, prompts wait in one queue for all until an instance that computes them is
            free, that is computes none; it takes the first ones, as many as have so many tokens together and find free
            blocks there, or one that has more. None gives prompts away at any time.
        autoscaler: how many instances a model gets, a `Rule` or its text; the rule "none" keeps what `provisioning`
            gives.
        least: instances of each model that are always there, unless the deployment has bounds.
        tick_s, scrape_s: seconds between two decisions, and how old the load is that they see.
        path: where the weights of a new instance come from, a name of `workbench.serving.policy.SOURCES`.
        load_s: seconds of loading on path *fixed*.
        schedule, blocks: how instances send weights to each other on path *multicast*, and in how many blocks.
        pipelines: on that path, how instances serve together before each has all weights: not at all, by the
            pipelines of λScale's paper (neighbouring blocks, Algorithm 2), or by those of its artifact (strided ones).
        stages: parts of a model in which a pipeline shares it out; `blocks` is a multiple of it.
        stage_s: seconds that a step loses at each stage of a pipeline.
        switch: a member leaves its pipeline when it has its own copy (*each*), or when all targets have theirs
            (*whole*).
        memory_first: on that path and on *chains*, instances whose hosts have the weights in memory load them from
            there.
        hosts_send: on these paths, hosts send what they have in memory where no instance has the weights.
        pinned: on these paths, hosts, counted from the first, whose memory keeps the weights whatever happens.
        chains: on path *chains*, how many go from their sources at a time; None for as many as there are sources, 0 for
            no chains: each instance is sent its weights by itself.
        lag_s: on that path, by which each further instance, or host, of a chain has its weights later.
        decode_first: on that path, instances that compute prompts send only where no others can.
        near: on that path, the fast network inside hosts plays a part, where there is one.
        live: on that path, what the last instance of each chain does with layers that it has: it helps with prompts
            not at all, *always* when that is quicker, where it is *worth* it, or where it is that and a *promise* of
            TTFT would else be broken.
        promise_s: seconds of that promise; None for those of the run's own, without which *promise* is *worth*.
        judged: what would break it: a *new* prompt, if it had to wait for all of the load and be computed then, or the
            *oldest* one that is there, for what is left of the load, as fast as it goes now.
        mutate: with roles *apart*, which instances that compute prompts may become ones that decode, when more of these
            are wanted: without work only (*no*), *draining* ones too, or also *busy* ones that are up, while another
            one is and there is a place for the one that starts instead. They finish what they have, and their KV is
            sent like any other's, unless it stays.
        requeue: what waits in the queue of such an instance goes back to the router.
        kv_stays: KV that is not on its way from such an instance stays, and is decoded there; what it has no room for
            then is computed anew, and what waits in the queue goes back to the router too.
        reroute: on that path, chains begin again from another source when the way out of theirs fails.
        stale_s, detect_s: how late it is known that weights left a host's memory for lack of room or for a newer
            version, and what it costs to look for them there meanwhile.
        engine_start, warm_up: seconds of a start beside the weights, a `Part` or a number.
        keep_s: how long an idle instance keeps its place and weights.
        cache_bytes: of a host's memory for weights; None for all of it, without end where no source states its size.
        cache_ttl_s: how long weights that nothing uses stay there.
        cached: every host has every model in memory at first.
        variant: whether the paper's rules are meant or the artifact's.
        artifact: what the artifact does otherwise, field -> value; `replaced(variant="artifact")` makes it so.
        source: who does it so.
        sources: field -> where its value comes from; a field that stands nowhere is `source`'s, or as usual here.
    """

    name: str = Field(min_length=1)
    summary: str = ""
    engine: str | Engine = "continuous"
    dispatch: str = "least-outstanding"
    provisioning: Share | AtLeastOne = "full"
    roles: Literal["together", "apart"] = "together"
    limit: AtLeastOne | None = None
    batch_tokens: AtLeastOne | None = None
    autoscaler: Rule = Rule()
    least: ZeroOrMore = 1
    tick_s: Positive = 1.0
    scrape_s: NotNegative = 0.0
    path: str = "ideal"
    load_s: NotNegative = 0.0
    schedule: Literal["chain", "binomial_pipeline", "faasnet_tree", "ring_broadcast"] = "chain"
    blocks: AtLeastOne = 64
    pipelines: Literal["none", "paper", "artifact"] = "none"
    stages: AtLeastOne = 8
    stage_s: NotNegative = 0.002
    switch: Literal["each", "whole"] = "whole"
    memory_first: bool = False
    hosts_send: bool = False
    pinned: ZeroOrMore = 0
    chains: ZeroOrMore | None = None
    lag_s: NotNegative = 0.0
    decode_first: bool = True
    near: bool = True
    live: Literal["no", "always", "worth", "promise"] = "no"
    promise_s: NotNegative | None = None
    judged: Literal["new", "oldest"] = "new"
    mutate: Literal["no", "draining", "busy"] = "no"
    requeue: bool = False
    kv_stays: bool = False
    reroute: bool = False
    stale_s: NotNegative = 0.0
    detect_s: NotNegative = 0.0
    engine_start: Part = Part()
    warm_up: Part = Part()
    keep_s: float = 0.0
    cache_bytes: NotNegative | None = None
    cache_ttl_s: float = math.inf
    cached: bool = False
    variant: Literal["paper", "artifact"] = "paper"
    artifact: Mapping[str, Any] = {}
    source: str = "given in code"
    sources: Mapping[str, str] = {}

    @field_validator("engine")
    @classmethod
    def _engine_is_known(cls, engine: str | Engine) -> str | Engine:
        if isinstance(engine, str) and engine not in ENGINES:
            raise UnknownName("engine", engine, ENGINES)
        return engine

    @field_validator("dispatch")
    @classmethod
    def _dispatch_is_known(cls, name: str) -> str:
        if name not in ROUTES:
            raise UnknownName("dispatch policy", name, ROUTES)
        return name

    @field_validator("path")
    @classmethod
    def _path_is_known(cls, name: str) -> str:
        if name not in SOURCES:
            raise UnknownName("path of weights", name, SOURCES)
        return name

    @field_validator("engine_start", "warm_up", mode="before")
    @classmethod
    def _a_part(cls, given: Any) -> Any:
        if isinstance(given, int | float | str) and not isinstance(given, bool):
            return {"seconds": given, "source": "given in code"}
        return given

    @field_validator("keep_s", "cache_ttl_s")
    @classmethod
    def _a_time(cls, value: float) -> float:
        if not value >= 0:
            raise ValueError(f"is {value}; give 0 or more, or infinity")
        return value

    @model_validator(mode="after")
    def _fields_exist(self):
        for table in (self.sources, self.artifact):
            for field in table:
                if field not in type(self).model_fields:
                    raise ValueError(f"{field!r} is no choice of a system; name one of its fields")
        return self

    @model_validator(mode="after")
    def _pipelines_form(self):
        if self.path != "multicast" or self.pipelines == "none":
            return self
        if self.schedule != "binomial_pipeline":
            raise ValueError(
                f"schedule is {self.schedule!r}, by which no pipelines form; choose 'binomial_pipeline', or pipelines "
                "'none'"
            )
        if self.blocks % self.stages:
            raise ValueError(
                f"blocks is {self.blocks}, no multiple of the {self.stages} stages of a pipeline; choose one that is"
            )
        return self

    @model_validator(mode="after")
    def _fits_together(self):
        if self.live != "no" and self.path != "chains":
            raise ValueError(f"live is {self.live!r} on path {self.path!r}; choose path 'chains', or live 'no'")
        if self.autoscaler.policy == "roles" and self.roles == "together":
            raise ValueError(
                "autoscaler is 'roles', but instances do both phases; choose roles 'apart', or another rule"
            )
        return self

    @property
    def batching(self) -> Engine:
        """The engine's settings."""
        return ENGINES[self.engine] if isinstance(self.engine, str) else self.engine

    @property
    def scales(self) -> bool:
        """Whether an autoscaler adds and removes instances."""
        return self.autoscaler.policy != "none"

    def replaced(self, **changes: Any) -> "System":
        """The same but for some choices.

        >>> System(name="mine").replaced(dispatch="random", provisioning=3).provisioning
        3
        """
        wanted = changes.get("variant", self.variant)
        if wanted != self.variant:
            if self.variant == "artifact":
                raise InputError("was made the artifact's before", "take the system by name again", field="variant")
            changes = {**self.artifact, **changes} if wanted == "artifact" else changes
        told = dict(self.sources) | {field: "given in code" for field in changes if field in CHOICES}
        if wanted == "artifact" != self.variant:
            told |= {
                field: f"{self.name}'s artifact" for field in self.artifact if changes[field] == self.artifact[field]
            }
        fields = {field: getattr(self, field) for field in System.model_fields}
        return System(**fields | {"sources": told} | changes)

    @property
    def choices(self) -> pl.DataFrame:
        """Every choice with its value and where it comes from: `choice, value, source`."""
        usual = System(name=self.name)
        rows = []
        for field in CHOICES:
            value = getattr(self, field)
            usually = value == getattr(usual, field)
            source = value.source if isinstance(value, Part) and value.source != "given" else ""
            source = self.sources.get(field) or source or ("as usual here" if usually else self.source)
            rows.append((field, _shown(value), source))
        return pl.DataFrame(rows, schema=["choice", "value", "source"], orient="row")


CHOICES = tuple(
    field
    for field in System.model_fields
    if field not in ("name", "summary", "variant", "artifact", "source", "sources")
)


def _shown(value: Any) -> str:
    if isinstance(value, Part):
        return f"{value.seconds:g} s"
    return f"{value:g}" if isinstance(value, float) else str(value)
