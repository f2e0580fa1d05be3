"""What is kept where, and for how long: keep-alive on GPUs and in host memory, LRU caches, and loading through tiers.

Rooms: `policy` holds the decisions (which start a request gets, which node serves it, what has expired), `kernels` the
compiled replays and the exact LRU distributions, `model` their face, `simulated` the SimPy twins.
"""
