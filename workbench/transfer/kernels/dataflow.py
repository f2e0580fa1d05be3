"""When a list of transfers ends if everybody starts as early as the ports and the data allow, and in lock step."""

from workbench.jit import kernel


@kernel
def dataflow(
    source,
    target,
    block,
    send_port,
    receive_port,
    busy_s,
    travel_s,
    send_free_s,
    receive_free_s,
    held_s,
    start_s,
    end_s,
):
    """Start = max(sender's port free, receiver's port free, block held by the sender), transfers in the given order.

    This is how RDMC runs a schedule: every node walks its own list and nobody waits for a common step (Behrens et
    al. 2018). Transfers must come after the ones that supply their blocks, as in a schedule's step order.

    Parameters (n nodes, m blocks, x transfers, p ports):
        source, target, block: int[x].
        send_port, receive_port: int[x], the port that each transfer occupies at its two ends.
        busy_s: float[x], how long a transfer keeps both ports.
        travel_s: float[x], from the start until the target holds the block; equals `busy_s` in Hockney's model.
        send_free_s, receive_free_s: float[p], in: first use of each port; out: when it is free again.
        held_s: float[n, m], in: when a node holds a block (inf: not yet); out: with all deliveries.
        start_s, end_s: float[x], out.
    """
    for i in range(source.size):
        sends, receives = send_port[i], receive_port[i]
        start = max(send_free_s[sends], receive_free_s[receives], held_s[source[i], block[i]])
        start_s[i] = start
        end_s[i] = start + travel_s[i]
        send_free_s[sends] = start + busy_s[i]
        receive_free_s[receives] = start + busy_s[i]
        if end_s[i] < held_s[target[i], block[i]]:
            held_s[target[i], block[i]] = end_s[i]


@kernel
def barrier(step, target, block, travel_s, held_s, start_s, end_s):
    """Lock step: all transfers of a step start together when the slowest of the step before has ended.

    Parameters: as in `dataflow`; step: int[x], sorted. `held_s` and both times are filled.
    """
    now, latest = 0.0, 0.0
    for i in range(step.size):
        if i > 0 and step[i] != step[i - 1]:
            now = latest
        start_s[i] = now
        end_s[i] = now + travel_s[i]
        latest = max(latest, end_s[i])
        if end_s[i] < held_s[target[i], block[i]]:
            held_s[target[i], block[i]] = end_s[i]
