"""How many models share GPUs: turns of decoding, switches of weights, KV caches that come and go.

Rooms: `policy` holds the decisions, `kernels` the compiled loops, `model` records in and tables out, `simulated` the
SimPy processes of the same semantics.
"""
