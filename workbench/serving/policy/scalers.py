"""Autoscaling policies and sources of weights, by number as compiled loops take them, and by name as people do."""

NONE, QUEUE, BACKLOG, CONCURRENCY, RATE, ROLES = range(6)

SCALERS = {
    "none": NONE, "queue": QUEUE, "backlog": BACKLOG, "concurrency": CONCURRENCY, "rate": RATE, "roles": ROLES,
}  # fmt: skip
"""Name -> number."""

PARAMETERS: dict[int, tuple[str, ...]] = {
    NONE: (),
    QUEUE: ("waiting",),
    BACKLOG: ("prompt_tokens_per_s", "lower_s", "upper_s", "blocks", "lower_share", "upper_share"),
    CONCURRENCY: ("requests",),
    RATE: ("requests_per_s",),
    ROLES: (
        "prompt_tokens_per_s", "lower_s", "upper_s", "blocks", "lower_share", "upper_share", "lower_moved_per_s",
        "upper_moved_per_s",
    ),
}  # fmt: skip
"""Number -> names of the parameters it reads, in order; all must be above 0. *queue*: waiting requests for one more
instance; *backlog*: prompt tokens/s of an instance, seconds of prefill that it may have before it at least and at most,
its KV blocks, and the shares of them that may be in use at least and at most; *concurrency*: requests an instance;
*rate*: requests/s an instance; *roles*: as *backlog*, for instances that
only compute prompts or only decode, and the tokens/s of KV that a decoding instance may be asked to take at least and
at most."""

USUAL = {"lower_s": 0.5, "upper_s": 0.7, "lower_share": 0.75, "upper_share": 0.95}
"""Parameters that BlitzScale's artifact fixes (notes on BlitzScale)."""

IDEAL, FIXED, TIERS, ALL_CACHED, MULTICAST, CHAINS = range(6)

SOURCES = {
    "ideal": IDEAL, "fixed": FIXED, "tiers": TIERS, "all-cached": ALL_CACHED, "multicast": MULTICAST, "chains": CHAINS,
}  # fmt: skip
"""Name -> number. *ideal*: an instance is up at once; *fixed*: after given seconds; *tiers*: from the host's memory if
it caches the model, else from SSD; *all-cached*: always from the host's memory; *multicast*: from instances of the same
model over the network, and as *tiers* where there are none; *chains*: the same, from one to
the next, over the links that KV is sent by too."""

IDEAL_TIER, FIXED_TIER, DRAM_TIER, SSD_TIER, MULTICAST_TIER, RESIDENT_TIER, CHAIN_TIER, NEAR_TIER = range(8)
TIERS_BY_NUMBER = ("ideal", "fixed", "dram", "ssd", "multicast", "resident", "chain", "near")
"""Where the weights of one load came from; *resident*: they were there, where the instance had another
role; *near*: from an instance on the same host."""
