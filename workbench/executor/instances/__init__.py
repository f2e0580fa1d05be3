"""An instance that runs layers of batches on order while it receives its weights, and instances that share one link.

Its modules import little, since a worker process imports them while its parent waits for a sign of life.
"""
