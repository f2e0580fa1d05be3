"""The rules of a pool by number, as compiled loops take them, and by name, as people do."""

ACCUMULATIVE, CURRENT, BY_MEMORY = range(3)

GROUP_RULES = {"accumulative": ACCUMULATIVE, "current": CURRENT, "memory": BY_MEMORY}
"""When a prefill group is full. *accumulative*: after so many requests in its whole life (the paper); *current*: while
so many of it wait (the artifact); *memory*: when the prompts that wait fill the KV cache (the authors' simulator)."""

BY_TIME, BY_COUNT, BY_GROUPS = range(3)

LOAD_RULES = {"time": BY_TIME, "count": BY_COUNT, "groups": BY_GROUPS}
"""What makes a prefill instance the least loaded one: seconds of work with switches (the paper), requests (the
artifact), or groups (the simulator)."""

NO_PREFETCH, PREFETCH, IDEAL = range(3)

PREFETCHES = {"off": NO_PREFETCH, "on": PREFETCH, "ideal": IDEAL}
"""*on*: the next model is loaded beside the work, from the moment of a switch on, where memory allows; *ideal*: all the
work since the last switch is taken off the next one, whatever was known when (the simulator)."""

AFTER_SWITCH, AFTER_FIRST_STEP = range(2)

CLOCKS = {"after-switch": AFTER_SWITCH, "after-first-step": AFTER_FIRST_STEP}
"""When a turn's quota begins to run: with its first step, or when that has ended (the artifact)."""

TURNS, RUNS, SHORTEST, SHARED = range(4)

SYSTEMS = {
    "aegaeon": TURNS,
    "serverlessllm@aegaeon": RUNS,
    "serverlessllm-plus": SHORTEST,
    "muxserve": SHARED,
    "dedicated": SHARED,
}
"""How models share instances. *turns*: prefill and decoding on instances of their own, models taking turns; *runs*:
whole requests, runs of up to four of one model in order of arrival; *shortest*: whole batches, the shortest remaining
first, what is displaced is computed anew; *shared*: models stay where they are, steps of those on one instance
alternate."""

EVERYBODY, LOOK_AHEAD, BY_ESTIMATES = range(3)

ADMISSIONS = {"everybody": EVERYBODY, "look-ahead": LOOK_AHEAD, "estimates": BY_ESTIMATES}
"""Who is admitted. *look-ahead*: a request with which a run of all that was admitted, nobody else coming, still keeps
every promise; *estimates*: one whose prompt and decoding, judged apart by formulas, fit the slack that is left."""
