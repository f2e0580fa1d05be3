"""How batches mix: compute density, prefix tree, dual scan (BlendServe).

Offline requests are all there at the start and have no deadlines, so the order is free. Rooms: `policy` holds the
decisions (how memory is split between the two ends of the order, how large a dense batch is, who is admitted),
`kernels` the prefix tree, its transformation and the step loop, `model` their face and the formulas, `simulated` the
SimPy twin of the step loop, `real` a small transformer that shares prefixes and serves the same steps.
"""
