"""How a cluster serves: requests are dispatched to instances, batched step by step, evicted, moved when hardware fails.

Rooms: `policy` holds the decisions, `kernels` the compiled event loop, `model` records in and tables out, `simulated`
the SimPy processes of the same semantics.
"""
