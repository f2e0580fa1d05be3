"""Batches that pass through the stages of an execution pipeline, token after token."""

import numpy as np

from workbench.jit import kernel


@kernel
def free_running(visit_node, visit_s, nodes, tokens, in_flight, start_s):
    """Fill when each visit of each batch begins: a stage serves whoever is ready first, batches go round independently.

    Parameters:
        visit_node: int64[v], the node of each visit of a pass, neighbours differ.
        visit_s: float64[v], seconds of each.
        nodes: of the pipeline.
        tokens: passes that a batch makes; it is pinned to the pipeline for all of them.
        in_flight: batches at a time; the next enters when one is done.
        start_s: float64[batches, tokens, v].
    """
    batches, visits = start_s.shape[0], visit_node.size
    free_s = np.zeros(nodes)
    ready_s = np.full(batches, np.inf)
    ready_s[:in_flight] = 0.0
    at = np.zeros(batches, np.int64)
    entered = min(in_flight, batches)
    for _ in range(batches * tokens * visits):
        best, best_start, best_ready = -1, np.inf, np.inf
        for batch in range(entered):
            if at[batch] < tokens * visits:
                begin = max(ready_s[batch], free_s[visit_node[at[batch] % visits]])
                if begin < best_start or (begin == best_start and ready_s[batch] < best_ready):
                    best, best_start, best_ready = batch, begin, ready_s[batch]
        visit = at[best] % visits
        start_s[best, at[best] // visits, visit] = best_start
        end = best_start + visit_s[visit]
        free_s[visit_node[visit]] = ready_s[best] = end
        at[best] += 1
        if at[best] == tokens * visits and entered < batches:
            ready_s[entered] = end
            entered += 1


@kernel
def lock_step(run_node, block_s, nodes, tokens, in_flight, start_s):
    """Fill when each block of each batch begins: all batches finish their block before any goes on.

    In each round one batch enters if fewer than `in_flight` are inside and nobody wants the node of the first block
    (λScale's artifact). Blocks of one node in a round come one after the other.

    Parameters:
        run_node: int64[b], the node that runs each block.
        block_s: float64[b], seconds of each.
        nodes, tokens, in_flight: as of `free_running`.
        start_s: float64[batches, tokens, b].
    """
    batches, blocks = start_s.shape[0], run_node.size
    at = np.zeros(batches, np.int64)
    free_s = np.empty(nodes)
    entered, done, now = 0, 0, 0.0
    while done < batches:
        if entered < batches and entered - done < in_flight:
            free = True
            for batch in range(entered):
                if at[batch] < tokens * blocks and run_node[at[batch] % blocks] == run_node[0]:
                    free = False
            if free:
                entered += 1
        free_s[:] = now
        for batch in range(entered):
            if at[batch] < tokens * blocks:
                block = at[batch] % blocks
                start_s[batch, at[batch] // blocks, block] = free_s[run_node[block]]
                free_s[run_node[block]] += block_s[block]
                at[batch] += 1
                done += at[batch] == tokens * blocks
        now = free_s.max()
