"""How bytes move: multicast schedules, shared resources on a path, sharding (BlitzScale, λScale).

Rooms: `policy` decides who sends what to whom, `kernels` and `model` say when by formula, `simulated` by SimPy on
shared links, `real` by processes that really send.
"""
