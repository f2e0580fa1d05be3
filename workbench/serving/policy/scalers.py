"""Autoscaling policies and sources of weights, by number as compiled loops take them, and by name as people do."""

NONE, QUEUE, BACKLOG, CONCURRENCY, RATE = range(5)

SCALERS = {"none": NONE, "queue": QUEUE, "backlog": BACKLOG, "concurrency": CONCURRENCY, "rate": RATE}
"""Name -> number. Parameters, in order: *queue*: waiting requests for one more instance; *backlog*: prompt tokens/s of
an instance, seconds of prefill an instance may be loaded with at least and at most, its KV blocks, and the shares of
them that may be in use at least and at most; *concurrency*: requests an instance; *rate*: requests/s an instance."""

PARAMETERS = {NONE: 0, QUEUE: 1, BACKLOG: 6, CONCURRENCY: 1, RATE: 1}
"""Number -> how many parameters it reads; all must be above 0."""

IDEAL, FIXED, TIERS, ALL_CACHED, MULTICAST = range(5)

SOURCES = {"ideal": IDEAL, "fixed": FIXED, "tiers": TIERS, "all-cached": ALL_CACHED, "multicast": MULTICAST}
"""Name -> number. *ideal*: an instance is up at once; *fixed*: after given seconds; *tiers*: from the host's memory if
it caches the model, else from SSD; *all-cached*: always from the host's memory; *multicast*: from instances of the same
model over the network, and as *tiers* where there are none."""

IDEAL_TIER, FIXED_TIER, DRAM_TIER, SSD_TIER, MULTICAST_TIER = range(5)
TIERS_BY_NUMBER = ("ideal", "fixed", "dram", "ssd", "multicast")
"""Where the weights of one load came from."""
