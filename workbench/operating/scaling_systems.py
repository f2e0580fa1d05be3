"""Systems whose instances come and go, as the papers describe those that they compare themselves with."""

from workbench.operating.scaling_rule import Rule
from workbench.operating.system_record import System
from workbench.serving import Part

_BLITZ = "BlitzScale (OSDI'25)"
_BLITZ_RULE = {
    "autoscaler": "BlitzScale's artifact, for instances that do both phases: 0.5 to 0.7 s of prefill waiting, 0.75 to "
    "0.95 of the KV blocks in use; one instance goes at a time; rates are those of the simulated engine",
    "tick_s": "chosen: the artifact's loop has no period, it only rests 10 ms when idle",
    "least": "BlitzScale's artifact: 1 of each kind for 24B and 72B, 2 for 8B",
    "keep_s": "BlitzScale's artifact: 333 ms for 8B and 24B, 1 to 1.5 s for 72B",
    "engine_start": "OSDI'25 paper, appendix A.1: contexts and connections are made beforehand",
    "provisioning": "chosen: as few as the artifact allows",
    "engine": "chosen: one engine for all whose instances do both phases",
}
_BATCHED = {"engine": "token-batches", "batch_tokens": 4096}
_BATCHED_RULE = {
    "engine": "BlitzScale's artifact: up to 4,096 tokens of prompts a batch, blocks of 64 tokens, reserved for prompt "
    "and output on admission, all who decode in every step",
    "batch_tokens": "BlitzScale's artifact: all prompts wait in one first-come queue, from which an instance that is "
    "free takes up to 4,096 tokens within its free blocks",
}
_BLITZ_CHOICES = {
    "provisioning": "least",
    "least": 1,
    "autoscaler": Rule(policy="backlog", down_step=1),
    "tick_s": 0.1,
    "keep_s": 1 / 3,
    "engine_start": Part(seconds=0.0, source="OSDI'25 paper, appendix A.1: made beforehand", status="published"),
}

_LAMBDA = "λScale (MLSys'26, as FaaScale)"
_LAMBDA_RULE = {
    "autoscaler": "λScale's artifact (controller.py): an instance for each batch that waits over the GPUs of a node, "
    "unless some are starting; idle ones go when nobody waits",
    "tick_s": "λScale's artifact: 1 s (0.5 s for 7B and 13B with host memory)",
    "limit": "λScale's artifact: a node runs one batch of 4 prompts at a time",
    "least": "λScale's artifact: every idle node is released",
    "keep_s": "λScale's artifact: 0 s",
    "engine_start": "λScale's artifact: workers are there before any scaling",
    "blocks": "λScale's artifact: 16 transfer blocks",
    "provisioning": "λScale's artifact: every idle node is released, so none is there at first",
    "engine": "chosen: one engine for all; the artifact runs batches of 4 to their end",
}
_LAMBDA_CHOICES = {
    "provisioning": "least",
    "least": 0,
    "autoscaler": Rule(policy="queue"),
    "limit": 4,
    "tick_s": 1.0,
    "keep_s": 0.0,
    "blocks": 16,
}
_NO_CACHE = {"cache_bytes": "MLSys'26 paper §7.4: a remote GPU's copy if any exists, else the local SSD"}

_CHAINS = {
    "path": "chains",
    "pinned": 1,
    "cache_bytes": 0.0,
    "hosts_send": True,
}
_CHAIN_RULE = {
    "path": "OSDI'25 paper §5.1: chains from instances or host copies",
    "pinned": "OSDI'25 paper §5.3: one copy of each model in the hosts' memories together",
    "cache_bytes": "OSDI'25 paper §5.3: no host keeps more than that one copy",
    "hosts_send": "OSDI'25 paper §5.3: the host copy is a source like any other",
    "decode_first": "OSDI'25 paper §5.1 (Figure 11, line 1): who sends KV sends no weights where others can",
    "near": "OSDI'25 paper §5.1 (Figure 14): shards inside a scale-up domain",
    "lag_s": "chosen: none; blocks are small beside a layer",
    "roles": "OSDI'25 paper §6: prompts and decoding apart",
    "live": "OSDI'25 paper §5.2: the tails of chains, only if stopping for the load at its speed now would break the "
    "promise, and only for an overloaded instance",
    "judged": "chosen: the load's whole time, as in the profile of the paper's Figure 3",
}
_ROLES_RULE = {
    **_BLITZ_RULE,
    **_BATCHED_RULE,
    "autoscaler": "BlitzScale's artifact (planner.rs): 0.5 to 0.7 s of prefill waiting, 0.75 to 0.95 of the KV blocks "
    "in use, KV that moves at 0.4 to 0.8 of its rate; one instance goes at a time",
    "roles": "OSDI'25 paper §6: prompts and decoding apart",
}
_ROLES_CHOICES = {**_BLITZ_CHOICES, **_BATCHED, "roles": "apart", "autoscaler": Rule(policy="roles", down_step=1)}
_MUTATING = {"mutate": "busy", "requeue": True, "artifact": {"mutate": "draining"}}
_MUTATING_RULE = {
    "mutate": "OSDI'25 paper §5.4: one that computes prompts turns into one that decodes, and another one is loaded in "
    "its place. BlitzScale's artifact: only where fewer are wanted for prompts, that with the fewest blocks, never the "
    "last, and it keeps KV that waits there, which is sent on here; in all steps of the ablation and AllCache, not in "
    "ServerlessLLM",
    "kv_stays": "chosen: sent on; neither the paper nor the notes on its artifact say where such KV is decoded",
    "requeue": "BlitzScale's artifact: prompts wait in one queue for all until an instance takes a batch",
}
_DISTSERVE = f"DistServe as {_BLITZ} §6 emulates it in its own engine: least and most instances are the same number"

SCALING_SYSTEMS = (
    System(
        name="ideal",
        summary="instances start at once and go as soon as they are idle: the floor of any system that scales",
        path="ideal",
        source=f"{_LAMBDA} §7.4",
        sources={**_LAMBDA_RULE, "path": "MLSys'26 paper §7.4: no time to load or unload"},
        **_LAMBDA_CHOICES,
    ),
    System(
        name="serverlessllm@blitzscale",
        summary="weights from the host's memory while they are kept there, else from its SSD; each instance by itself",
        path="tiers",
        cache_ttl_s=300.0,
        artifact={"cache_ttl_s": 30.0},
        source=f"ServerlessLLM as {_BLITZ} §6 builds it into its own engine",
        sources={
            **_BLITZ_RULE,
            "path": "OSDI'25 paper §6: host memory with a time to live, a miss reads the SSD",
            "cache_ttl_s": "OSDI'25 paper §3: 5 minutes (its artifact: 30 s)",
            "cache_bytes": "all of the host's memory; the paper does not state its size",
        },
        **_BLITZ_CHOICES,
    ),
    System(
        name="serverlessllm@lambdascale",
        summary="weights from the host's memory while they are kept there, else from its SSD, by λScale's rules",
        path="tiers",
        cache_ttl_s=15.0,
        source=f"ServerlessLLM as {_LAMBDA} §7.1 and §7.4 builds it",
        sources={
            **_LAMBDA_RULE,
            "path": "MLSys'26 paper §7.4: host memory on a hit, SSD on a miss, no network",
            "cache_ttl_s": "MLSys'26 paper §2.3: 15 s in its study of traces; not said for its runs of §7.4",
            "cache_bytes": "all of the host's memory (500 GB in the artifact's configuration)",
        },
        **_LAMBDA_CHOICES,
    ),
    System(
        name="allcache",
        summary="every host has every model in its memory, so that no start reads an SSD",
        path="all-cached",
        cached=True,
        source=f"AllCache of {_BLITZ} §6",
        sources={**_BLITZ_RULE, **_MUTATING_RULE, "path": "OSDI'25 paper §6: hits only, over PCIe, before any serving"},
        **_BLITZ_CHOICES,
        **_MUTATING,
    ),
    System(
        name="nccl",
        summary="a ring broadcast from instances of the model, else the local SSD",
        path="multicast",
        schedule="ring_broadcast",
        cache_bytes=0.0,
        engine_start=Part(
            seconds=0.1,
            source="OSDI'25 paper, appendix A.1: about 100 ms to set up an NCCL group; λScale gives no time. Counted "
            "for reads from SSD too",
            status="published",
        ),
        source=f"NCCL of {_LAMBDA} §7.1 and §7.4",
        sources={
            **{field: text for field, text in _LAMBDA_RULE.items() if field != "engine_start"},
            **_NO_CACHE,
            "path": "MLSys'26 paper §7.4",
            "schedule": "MLSys'26 paper §7.1: groups are formed, and blocks broadcast in them",
        },
        **_LAMBDA_CHOICES,
    ),
    System(
        name="faasnet",
        summary="a binary tree from instances of the model, else the local SSD",
        path="multicast",
        schedule="faasnet_tree",
        cache_bytes=0.0,
        source=f"FaaSNet of {_LAMBDA} §7.1 and §7.4",
        sources={
            **_LAMBDA_RULE,
            **_NO_CACHE,
            "path": "MLSys'26 paper §7.4",
            "schedule": "λScale's artifact (faasnet_transfer_strategy.py), carried on beyond its 12 nodes",
        },
        **_LAMBDA_CHOICES,
    ),
    System(
        name="lambdascale",
        summary="a binomial pipeline from instances or hosts that have the model; instances serve together before each "
        "has all of it",
        path="multicast",
        schedule="binomial_pipeline",
        pipelines="artifact",
        stages=8,
        stage_s=0.002,
        switch="whole",
        memory_first=True,
        hosts_send=True,
        pinned=2,
        cache_ttl_s=15.0,
        artifact={"hosts_send": False},
        source=_LAMBDA,
        sources={
            **_LAMBDA_RULE,
            "path": "MLSys'26 paper §5: from any complete copy, in GPU or host memory",
            "schedule": "MLSys'26 paper §4.2",
            "pipelines": "λScale's artifact: strided chunks, pipelines of halved lengths (paper §4.3: neighbouring "
            "blocks, Algorithm 2)",
            "stages": "λScale's artifact: 8 execution blocks",
            "stage_s": "chosen: 2 ms, not published",
            "switch": "λScale's artifact: all leave when the operation is complete (paper §4.1: each by itself)",
            "memory_first": "MLSys'26 paper §5: a copy in the host's memory is loaded over PCIe",
            "hosts_send": "MLSys'26 paper §5: from registered host memory too (its artifact reads SSDs instead)",
            "pinned": "λScale's artifact (store_manager.py): two nodes never drop the weights",
            "cache_ttl_s": "MLSys'26 paper §2.3: 15 s in its study of traces; not said for its runs of §7.4",
            "cache_bytes": "all of the host's memory (500 GB in the artifact's configuration)",
        },
        **_LAMBDA_CHOICES,
    ),
    System(
        name="blitzscale",
        summary="chains from instances that decode, or from the one host copy; the tails of chains help with prompts "
        "while they load",
        live="promise",
        source=_BLITZ,
        sources={**_ROLES_RULE, **_CHAIN_RULE, **_MUTATING_RULE},
        **_ROLES_CHOICES,
        **_CHAINS,
        **_MUTATING,
    ),
    System(
        name="blitzscale@multicast",
        summary="BlitzScale without help while loading: its ablation's network and multicast",
        source=f"{_BLITZ} §6, Figure 20: +Multicast",
        sources={
            **_ROLES_RULE,
            **_CHAIN_RULE,
            **_MUTATING_RULE,
            "live": "OSDI'25 paper §6, Figure 20: not yet",
        },
        **_ROLES_CHOICES,
        **_CHAINS,
        **_MUTATING,
    ),
    System(
        name="blitzscale@network",
        summary="each new instance gets its weights over the network by itself: the first step of BlitzScale's "
        "ablation",
        chains=0,
        decode_first=False,
        source=f"{_BLITZ} §6, Figure 20: +Network",
        sources={
            **_ROLES_RULE,
            **_CHAIN_RULE,
            **_MUTATING_RULE,
            "live": "OSDI'25 paper §6, Figure 20: not yet",
            "chains": "OSDI'25 paper §6, Figure 20: point to point, each target from a source by itself",
            "decode_first": "BlitzScale's artifact (eval_net): no regard to directions",
        },
        **_ROLES_CHOICES,
        **_CHAINS,
        **_MUTATING,
    ),
    System(
        name="distserve-full",
        summary="as many instances for prompts and for decoding as the deployment allows, all the time",
        roles="apart",
        source=_DISTSERVE,
        sources=_BATCHED_RULE,
        **_BATCHED,
    ),
    System(
        name="distserve-half",
        summary="half as many for prompts and for decoding, rounded up, all the time",
        roles="apart",
        provisioning="half",
        source=_DISTSERVE,
        sources={
            **_BATCHED_RULE,
            "provisioning": "chosen: half; the paper says the average that is needed, its counts are not published",
        },
        **_BATCHED,
    ),
)
