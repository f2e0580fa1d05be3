"""How a cluster changes its size: what an autoscaler sees and decides, and how weights reach an instance.

A *group* is what serves one of M models in one role. Where no instance has a role of its own there are M groups, with
the numbers of their models. Otherwise there are 2 M: group m computes prompts of model m, or does both phases, and
group M + m decodes for it. Decisions are made group after group. With roles there is more than without:

- Signals of a decoding group: *waiting* are requests in its model's decode line, *outstanding* also those whose KV is
  on its way or has landed, *arrived* those that joined that line. *Stored* are the tokens for which a group's rows that
  are up, drain, or are piped have KV blocks in use.
- The policy *roles* takes prompt tokens and stored tokens of the prefill group and blocks of both, all as old as a
  scrape, and how many decode rows are up or starting now. See `workbench.serving.policy.decide_role`.
- After draining and warm rows of its own, and before free places, a group that grows takes places of warm rows of the
  model's other group, if its own row there is empty: those first that are warm for the longest time, then by index, and
  none that an operation reads. Each old row becomes empty and the new one starting, without a use or trim of the host's
  memory; when all have, each has a load of tier *resident*, all in one operation without sources, and they come up one
  by one at the same instant. Warm rows of other models are displaced as ever.
- With *mutate*, a decoding group that still needs rows then takes busy ones of the model's prefill group, one after the
  other, while a row of its own is up: of those that drain the one with the fewest blocks in use, then by index; with
  *mutate* 2, when there is none, of those that are up likewise, as long as another one is, and as more free places
  have an empty prefill row than were taken so. None that an operation reads, none without a decode row on its place.
  A row that is up drains from now on; with *requeue* or *stays* its queue goes back to the router, as from a place
  that fails. It counts as a starting decode row, but where none is up or starting, since it may wait for one to send
  KV to; and it does not come back. While there is such a row, the last decode row that is up does not drain at a tick.
  When it would be warm, it is empty instead and the other row starting, in an operation of its own, up at once; unless
  an operation reads it then, or there is a newer version.
  Behind the last one taken, the prefill group starts as many rows as were up, on free places and those of warm rows of
  other models.
- With *stays*, KV of prompts that such a row has computed is not sent any more, unless it is on its way: its requests
  leave the decode line, or do not join it, and do not count there. The row is done when nobody queues or runs there and
  nothing is on its way from it. When the other row has come up, and before the router hands out, it takes those over
  whose KV is there, in the order in which their prompts were done, each if it would take it over the links too; they
  land at once. The others lose their KV, count as moved, and wait before their equals in the line of their model. KV
  that turns back as its target fails stays too. If there is a newer version, or an operation reads the row when it is
  done, those whose KV is there join the decode line in that order, behind their equals, and it is sent; in the second
  case the router hands on at once, and the row changes its role no more but drains on.
- Whenever a row comes up, or a place fails, the router hands out and then hands on for the model.
- A row that drains is warm when it also has no KV that is still to be sent: behind all ends of steps of that instant,
  if a tick of the same instant has not brought it back and its place has not failed. When a place fails, transfers
  from and to it are cancelled first, as in a cluster that keeps its size.
- Nothing will happen of itself on a row that computes prompts if nobody runs there and the blocks of the first in its
  queue are not free.
- Any row of the model that is up, drains or is warm is a source of a multicast, whatever its role. Rows with roles form
  no pipelines.

Weights that come by *chains* travel over the ports of `workbench.serving.model.lowered.Network`, max-min fairly with KV
and with each other. What rows of a group g that starts at one decision (or begins again) do, in the order chosen:

- With *memory_first* those whose hosts have the weights load from there, as one operation of tier *dram*.
- With a finite *near_s* those on a host where a row of the model is up, drains or is warm load from there, as one
  operation a host, by number: tier *near*, with those rows as sources, ready after *near_s* and *control_s*.
- All others are sent theirs. Senders are the rows of the model that are up, drain or are warm, without those that
  compute prompts if *decode_first* is set and there are others; those first that the fewest operations read, then by
  index. Where there are none, *hosts_send* lets hosts send that have the weights in memory, by number. Where there
  are none either, rows load as by *tiers*.
- With *chains* 0 there is a chain for each row, as below, with or without a finite *near_s*; senders take turns as its
  source. Otherwise:
- Without a finite *near_s* there are k = min(*chains*, senders, rows) chains, each an operation with one source: chain
  c has rows c, c + k, and so on. Its flow holds the egress of the source, the ingress of all its rows, and the egress
  of all but the last one, and has all bytes to send. Chains begin one after the other, each with its loads and its
  flow.
- With a finite *near_s* there is one operation, a ring. Its nodes are hosts, by first appearance of their rows. There
  are k = min(*chains*, senders, most rows of a host) flows, each with its own source and 1/k of the bytes; flow i
  passes row i modulo n of the n rows of a node. Loads are in order of nodes.
- When a flow ends (of a ring: the last one), its sources are read no more, and the weights of the rows at position h,
  from 0, are there h x *lag_s* later. A row is ready *control_s* after that: (end + h lag_s) + control_s. Ends of flows
  of KV and of weights come in one order, by time and then by start; of one instant before reads from SSD.
- When a source fails, the flows that it has not sent whole are given up and the loads of its operation begin again.
- When a row of a chain fails (also one that is up), those behind it whose weights are not there yet begin again as a
  chain from the nearest row before it that is up, drains or is warm, else from the source, if that is a host or such
  a row still, else as any rows that start. If the flow goes on, what is left is sent, as a new flow of the
  operation, to the rows before it that still load. This flow starts first. When a row of a ring fails, all others whose
  weights are not there yet begin again as any rows that start.

While the flows of an operation of *chains* are on their way, their tails, the last rows that they pass, may help rows
of their group that are up, if the group is *live*. When a step with prompt chunks is about to begin on such a row:

- Free are the tails of the group that help no step now and of whose model at least one layer is there. Of these it is
  the floor of *layers* times the share of the operation's bytes that have come, of a ring the least share of a flow
  still on its way. What has come until now is what is left at the latest start or end of any flow, less the rate since;
  of a flow without bounds nothing until its end. Lags are not counted.
- The row is helped if fewer rows than there are free tails have a better claim: those that are up, that nobody helps
  now, and that have more prompt tokens to compute in their queue and among those that run, or as many and a lower
  index. It gets the free tail with the most layers, of equals by operation, then by flow.
- The step then takes `workbench.serving.policy.helped_s`, of all its tokens, if that is less than alone, and if, with
  *live* 2 or 3, `worth_helping` agrees: *waiting* are its prompt tokens and those in its model's line over those of the
  step, rounded up, *layer_s* is the step alone over *layers*, *hand_s* what handing over adds, and *left_s* the longest
  time that any of the operation's flows needs for what is left at its rate, without latency (0 without bounds). With
  *live* 3 `would_break` has to agree too: *age_s* is since the arrival of the oldest request there whose prompt is not
  computed yet, *whole_s* is as *left_s* for the part that each sender has to send in all, *alone_s* the step alone.
- The length of a step does not change any more. The tail is free again when the step ends or is lost, even if the tail
  itself is up by then, or has failed.
"""

from typing import NamedTuple

import numpy as np

EMPTY, STARTING, UP, DRAINING, WARM, DEAD, PIPED = range(7)
"""States of a row: without weights; being loaded; serving; finishing what it has; idle with its weights; failed; in
service as a member of a pipeline while its weights are still on their way."""

STATE_COLUMNS = ("time_s", "row", "state")
LOAD_COLUMNS = (
    "start_s", "end_s", "row", "tier", "sources", "operation", "first_token_s", "helped", "piped_s",
)  # fmt: skip
TICK_COLUMNS = ("time_s", "group", "want", "have")
CHAIN_COLUMNS = ("start_s", "end_s", "stop_s", "operation", "source", "bytes")
HOP_COLUMNS = ("flow", "row")
ASSIST_COLUMNS = ("start_s", "end_s", "helper", "row", "iteration", "layers")
"""Columns of the six tables that `Outcome` adds."""


class Scaling(NamedTuple):
    """Places that can hold one instance of one of G groups at a time, on H hosts; a row of `Instances` is one pair.

    Attributes:
        place: int64[N], the place of each row, numbered from 0; a place has one row at most for each group.
        host: int64[N], the host of each row, numbered from 0, the same for all rows of a place.
        start_state: int64[N], `EMPTY` or `UP` at time 0; one row of a place at most is up.
        tick_s: seconds between two decisions; the first one is at `tick_s`.
        scrape_ticks: how many ticks old the load is that a decision sees.
        kind: int64[G], the number of each group's policy, see `workbench.serving.policy.SCALERS`.
        par: float64[G, 8], its parameters.
        min_rows, max_rows: int64[G], bounds of what it may want.
        up_ticks, down_ticks: int64[G], ticks in a row that must want more, or less, before anything is done; 1 or more.
        down_step: int64[G], most rows drained at one tick, 1 or more.
        source: int64[G], the number of how weights come, see `workbench.serving.policy.SOURCES`.
        control_s: float64[G], seconds of starting an engine and warming it up, beside loading.
        fixed_s: float64[G], seconds of loading, where they are given.
        dram_s: float64[N], seconds of loading from the host's memory.
        multicast_s: float64[G, S, K, K], seconds until target i of k has its copy from s sources, at [g, s-1, k-1, i].
        bytes: float64[M], the weights.
        ssd_bytes_per_s: float64[H], shared by all that load on the host.
        cache_bytes: float64[H], room for weights in the host's memory.
        ttl_s: float64[M], seconds that unused weights stay there, or infinity.
        cached: int64[H, M], 1 where they are there at time 0, last used then.
        keep_s: float64[G], seconds that an idle row stays warm, or infinity.
        piped_s: float64[G, S, K, K], seconds until target i of k serves as a member of a pipeline, indexed as
            `multicast_s`; infinity where it never does.
        piped_with: int64[G, S, K, K], the number of that pipeline within the operation; -1 for none.
        piped_form: float64[N, 2, 5], coefficients of the step time while a row is a member, as `Instances.form`.
        switch_whole: int64[G], 0 lets each target go on alone when it has its own copy, 1 when all of the operation do.
        ssd_each_bytes_per_s: float64[H], that one load gets at most, or infinity; `checked` fills an empty one with it.
        memory_first: int64[G], with source *multicast*: 1 lets rows whose hosts have the weights in memory load from
            there, together as an operation of their own. `checked` fills this and all below, if empty, with what
            changes nothing.
        local_s, local_piped_s, local_with: [G, K, K], for row i of k that load from memory together, at [g, k-1, i]:
            seconds until it has all, until it serves as a member of a pipeline, and the number of that.
        hosts_send: int64[G], 1 lets hosts send what they have in memory where no row has the weights.
        pinned: int64[H, M], 1 where they never leave the memory, and are there at time 0, also where `cache_bytes` has
            no room for them; of that they take their part.
        chains: int64[G], with source *chains*: most flows of an operation, or 0 for an operation of each row.
        lag_s: float64[G], by which the weights are later at each further row, or node, of a chain.
        decode_first: int64[G], 1 lets rows that compute prompts send only where no others can.
        near_s: float64[G], seconds of a load from a row on the same host; infinity where hosts have no fast network of
            their own.
        live: int64[G], with source *chains*: 0 lets rows only load, 1 lets tails help whenever that is quicker, 2 where
            it is worth helping, 3 where a promise would be broken besides.
        promise_s: float64[G], seconds of TTFT that are promised, or infinity.
        waits: int64[G], what such a promise is judged on, see `workbench.serving.policy.would_break`.
        layers: int64[G], of the model, 1 or more.
        activation_s: float64[G], seconds of handing over the activation of one token.
        reroute: int64[G], with source *chains*: 1 lets them begin again from others when a way out fails.
        mutate: int64[G], of groups that decode: 0 lets only rows without work change their role, 1 also rows that
            drain, 2 also rows that are up, in whose place others start.
        requeue: int64[G], 1 lets what waits in the queue of such a row go back to the router.
        stays: int64[G], of groups that decode: 1 lets KV that is not on its way from such a row stay there; what waits
            in the queue, whose blocks it may have, goes back to the router then.
        stale_s: how much later than it happened it is known that weights left a host's memory for lack of room, also
            at time 0, or for a newer version. A row that would read its host's SSD in that time looks for them in
            memory first.
        detect_s: seconds until it knows that they are not there, behind which the read begins, when rows that are
            ready come up.
    """

    place: np.ndarray
    host: np.ndarray
    start_state: np.ndarray
    tick_s: float
    scrape_ticks: int
    kind: np.ndarray
    par: np.ndarray
    min_rows: np.ndarray
    max_rows: np.ndarray
    up_ticks: np.ndarray
    down_ticks: np.ndarray
    down_step: np.ndarray
    source: np.ndarray
    control_s: np.ndarray
    fixed_s: np.ndarray
    dram_s: np.ndarray
    multicast_s: np.ndarray
    bytes: np.ndarray
    ssd_bytes_per_s: np.ndarray
    cache_bytes: np.ndarray
    ttl_s: np.ndarray
    cached: np.ndarray
    keep_s: np.ndarray
    piped_s: np.ndarray
    piped_with: np.ndarray
    piped_form: np.ndarray
    switch_whole: np.ndarray
    ssd_each_bytes_per_s: np.ndarray = np.empty(0)
    memory_first: np.ndarray = np.empty(0)
    local_s: np.ndarray = np.empty(0)
    local_piped_s: np.ndarray = np.empty(0)
    local_with: np.ndarray = np.empty(0)
    hosts_send: np.ndarray = np.empty(0)
    pinned: np.ndarray = np.empty(0)
    chains: np.ndarray = np.empty(0)
    lag_s: np.ndarray = np.empty(0)
    decode_first: np.ndarray = np.empty(0)
    near_s: np.ndarray = np.empty(0)
    live: np.ndarray = np.empty(0)
    promise_s: np.ndarray = np.empty(0)
    waits: np.ndarray = np.empty(0)
    layers: np.ndarray = np.empty(0)
    activation_s: np.ndarray = np.empty(0)
    reroute: np.ndarray = np.empty(0)
    mutate: np.ndarray = np.empty(0)
    requeue: np.ndarray = np.empty(0)
    stays: np.ndarray = np.empty(0)
    stale_s: float = 0.0
    detect_s: float = 0.0
