"""Whether a new instance that has some layers runs them for one that has work waiting."""

import math

from workbench.jit import lean_kernel


@lean_kernel
def ready_layers(layers, sent_share):
    """Layers of a model that are there when a share of all its bytes, 0 to 1, is."""
    return math.floor(layers * sent_share)


@lean_kernel
def helped_s(seconds, layers, ready, tokens, activation_s):
    """How long a step takes whose first layers another instance runs: all that it has, up to half of the model.

    Parameters:
        seconds: of the step on one instance.
        layers, ready: of the model, and on the other instance.
        tokens: of the step.
        activation_s: seconds of handing over one token's activation.

    Source: BlitzScale (OSDI'25) §4 (notes on BlitzScale, §2.4): throughput L / (L - min(k, L // 2)) of alone.
    """
    return seconds * (layers - min(ready, layers // 2)) / layers + activation_s * tokens


@lean_kernel
def worth_helping(waiting, ready, layers, layer_s, hand_s, left_s):
    """Whether help pays: several batches wait, what is spared is longer than the hand-over, and the load lasts that
    long.

    Parameters:
        waiting: batches at the old instance, the one that it runs included.
        ready, layers: on the new instance, and of the model.
        layer_s: seconds of one layer of a batch.
        hand_s: seconds of handing over the activation of one.
        left_s: seconds until the load is complete, as it goes now.

    A ready layer is not yet a reason: handing an activation over costs the old instance `hand_s` a batch, and a batch
    that nobody waits behind gains nothing.

    Source: notes on BlitzScale, §2.4 (throughput, pairing rule); the paper leaves the comparison open.
    """
    spared_s = min(ready, layers // 2) * layer_s
    return waiting >= 2 and spared_s > hand_s and left_s > spared_s - hand_s


@lean_kernel
def would_break(waits, age_s, whole_s, left_s, alone_s, promise_s):
    """Whether a promise of TTFT would be broken if the prompts waited until the load is complete, and were computed
    then.

    Parameters:
        waits: 0 judges a prompt that comes with the load and waits for all of it; 1 the oldest one that is there, which
            waits for what is left.
        age_s: since the oldest one came.
        whole_s, left_s: of all of the load, and of what is left of it, at the speed at which it goes now.
        alone_s: of the step that computes it.
        promise_s: seconds of TTFT.

    Source: BlitzScale (OSDI'25) §5.2 (notes on BlitzScale, §2.4): help only if stopping for the load at its speed now
    would break the promise; what that is judged on is chosen.
    """
    waited_s = age_s + left_s if waits == 1 else whole_s
    return waited_s + alone_s > promise_s
