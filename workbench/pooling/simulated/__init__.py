"""Pools in SimPy: the semantics that both backends share, in words, and processes that keep to them.

**Instants.** At one instant transfers end first (by GPU, then kind: weights, prefetched weights, KV out, KV in), then
requests arrive (by number), then steps, switches and sleeps end (by GPU), then GPUs decide what to do next (by GPU).
Whatever a decision starts and is over in no time happens at that same instant, before GPUs of a higher number decide.

**Transfers.** Those of a node that are going share it: each could use the rate of its way, over the number that come
into the same GPU; the host's memory is then shared max-min fair. A transfer whose rate changes is settled, left bytes
less what went since, and goes on at its new rate.

**Prompts.** A request joins the first group with room of its model, scanning the prefill GPUs of the model's node, else
it becomes a group of the GPU with the least load, the first of them. A GPU takes one request of its front group,
switches if need be, and processes the prompt; a group is dropped when the GPU looks for work and nobody of it waits.
With the prompt's end the first token comes, the KV cache goes to the host, and the request is handed to the first
batch with room of its model on the node's decode GPUs, else as a new batch to the shortest work list. A new batch waits
for the next round. Without overlap a GPU takes no request while KV caches leave it.

**Turns.** A round starts with all requests of the GPU in order of arrival, packed first fit into batches, these in
order of their models, and their quotas. A turn begins with the KV caches of other batches leaving, and, with overlap,
those of its own being called; without, both the switch and the call wait until nothing leaves. A switch waits for
prefetched weights, or loads; when it is over the model of the first other batch left in the round is prefetched where
memory allows. A step decodes those whose KV cache is there (without overlap: all, or it waits). The turn is over when
nobody is left or the quota is used up, counted from the begin (or end) of its first step. Those called that have not
started stay in the host, one that is coming is waited for, and where another batch has requests all KV caches of this
one leave. A batch that has outgrown the KV cache leaves its last requests to a new one, which waits for the next round.

**A cap on what is earned.** A batch pauses while each of its requests is so far ahead of a reader who began with its
first token: it gets no turn, and a turn ends when it comes to that. Where all pause the GPU sleeps until one of their
requests is a token below the cap.

**KV caches.** Those leaving a GPU do so one by one, those coming too. The first in line comes when it has left where it
was, and when it fits, or nothing leaves that could make room. Its size is that of its blocks when it left.

**Looking ahead.** A request is let in where a run of all that are inside and of it, nobody else coming, breaks no
promise that is still kept, those inside being as long as is believed (`looking`). Admission by formulas is the compiled
loop's alone: it is arithmetic on its state, with nothing left to simulate.

**Whole requests.** Requests arrive, then switches and steps end, then instances decide. An instance drops batches
without requests and works on its first one: it switches, processes the first waiting prompt for which there is KV
cache, prompt and output being set aside at once, or decodes one token for all others. Where the shortest comes first,
all work lists are sorted at each arrival, and a batch that is displaced from the front must compute its KV caches anew,
with what it has made. Where models share instances they are all there, and the batch in front goes to the end after
each step.
"""

from workbench.pooling.simulated.colocated import simulate_colocated
from workbench.pooling.simulated.run import simulate

__all__ = ["simulate", "simulate_colocated"]
