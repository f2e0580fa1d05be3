"""How an instance helps that has a part of its weights only: execution pipelines while a multicast runs (λScale).

Rooms: `policy` holds the decisions (which nodes make a pipeline, who runs which block, when a node leaves it, where the
weights of a start come from), `kernels` the closed forms over arrays, `model` their face and the tables for the serving
engine. Sub-groups and block orders are those of `workbench.transfer.policy`.
"""
