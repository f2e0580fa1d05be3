"""One node of a model that several serve: it takes weights in, computes with what it has and passes activations on.

Its modules import little, since a worker process imports them while its parent waits for a sign of life.
"""
