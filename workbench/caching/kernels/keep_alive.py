"""Nodes that keep one model alive on GPU and in host memory, second by second."""

import numpy as np

from workbench.caching.policy.keep_alive import COLD, HOT, expired, pick_node, start_kind, start_s
from workbench.jit import kernel


@kernel
def keep_alive_nodes(
    arrival_s,
    nodes,
    memory_keep_s,
    gpu_keep_s,
    ssd_to_memory_s,
    memory_to_gpu_s,
    serve_s,
    from_last_use,
    by_locality,
    kind,
    begin_s,
    finish_s,
    totals,
):
    """Fill kind, begin and finish of every request, and the totals of the run.

    Parameters:
        arrival_s: int64[n], the second in which each arrives, in order.
        nodes: how many, all of them empty at first.
        memory_keep_s, gpu_keep_s: whole seconds for which a copy is kept in host memory, and on the GPU.
        ssd_to_memory_s, memory_to_gpu_s, serve_s: whole seconds of the two parts of a start, and of serving.
        from_last_use: whether keep-alive in host memory counts from the last use; otherwise from the load.
        by_locality: whether a node with a copy is taken before others; otherwise the first idle one.
        kind: int8[n], number of the start. begin_s, finish_s: int64[n].
        totals: int64[3]: seconds of the run, with that in which the last request is done; seconds with more copies in
            host memory than nodes that serve from their GPU; and seconds of copies in host memory summed over nodes.

    In a second, nodes that are due finish, then waiting requests go, first come first served, to nodes that were idle
    when the second began, then what has expired is dropped, then the copies are counted.
    """
    requests = arrival_s.size
    idle, on_gpu, in_memory = np.ones(nodes, np.bool_), np.zeros(nodes, np.bool_), np.zeros(nodes, np.bool_)
    gpu_since, memory_since = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    holder = np.full(nodes, -1, np.int64)  # the request a node is busy with
    now, arrived, head, done = 0, 0, 0, 0
    while done < requests:
        while arrived < requests and arrival_s[arrived] <= now:
            arrived += 1
        ready = idle.copy()
        for node in range(nodes):
            request = holder[node]
            if request >= 0 and finish_s[request] == now:
                if kind[request] == COLD:
                    in_memory[node], memory_since[node] = True, now
                elif from_last_use and in_memory[node]:
                    memory_since[node] = now
                on_gpu[node], gpu_since[node] = True, now
                holder[node], idle[node] = -1, True
                done += 1
        while head < arrived:
            node = pick_node(ready, on_gpu, in_memory, by_locality)
            if node < 0:
                break
            how = start_kind(on_gpu[node], in_memory[node])
            kind[head], begin_s[head] = how, now
            finish_s[head] = now + start_s(how, ssd_to_memory_s, memory_to_gpu_s, serve_s)
            holder[node], ready[node], idle[node] = head, False, False
            head += 1
        copies, serving = 0, 0
        for node in range(nodes):
            request = holder[node]
            if request < 0 and on_gpu[node] and expired(now, gpu_since[node], gpu_keep_s):
                on_gpu[node] = False
            used = request >= 0 and from_last_use
            if in_memory[node] and not used and expired(now, memory_since[node], memory_keep_s):
                in_memory[node] = False
            copies += in_memory[node]
            serving += request >= 0 and kind[request] == HOT
        totals[1] += copies > serving
        totals[2] += copies
        now += 1
    totals[0] = now


def keep_alive_slow(arrival_s, nodes, memory_keep_s, gpu_keep_s, ssd_to_memory_s, memory_to_gpu_s, serve_s):
    """First idle node, keep-alive from the load, over plain dictionaries: kinds of the starts, and the totals."""
    state = [{"left": 0, "kind": None, "gpu": None, "memory": None} for _ in range(nodes)]
    waiting, kinds, over, held, now = list(arrival_s), [], 0, 0, 0
    while waiting or any(node["kind"] is not None for node in state):
        for node in state:
            if node["kind"] is not None:
                node["left"] -= 1
                if node["left"] == 0:
                    node["memory"] = now if node["kind"] == COLD else node["memory"]
                    node["gpu"], node["kind"] = now, None
            elif waiting and waiting[0] <= now:
                waiting.pop(0)
                node["kind"] = 0 if node["gpu"] is not None else 1 if node["memory"] is not None else 2
                node["left"] = serve_s + (node["kind"] > 0) * memory_to_gpu_s + (node["kind"] > 1) * ssd_to_memory_s
                kinds.append(node["kind"])
        for node in state:
            if node["kind"] is None and node["gpu"] is not None and now - node["gpu"] > gpu_keep_s:
                node["gpu"] = None
            if node["memory"] is not None and now - node["memory"] > memory_keep_s:
                node["memory"] = None
        copies = sum(node["memory"] is not None for node in state)
        over += copies > sum(node["kind"] == HOT for node in state)
        held += copies
        now += 1
    return kinds, (now, over, held)
