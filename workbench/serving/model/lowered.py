"""What both backends of the serving engine take and give: plain arrays in SI units, time 0 at the first arrival."""

from typing import NamedTuple

import numpy as np

from workbench.serving.model.scaled import (
    ASSIST_COLUMNS,
    CHAIN_COLUMNS,
    HOP_COLUMNS,
    LOAD_COLUMNS,
    STATE_COLUMNS,
    TICK_COLUMNS,
    Scaling,
)

INSIDE, DONE, REJECTED = 0, 1, 2
"""What `Outcome.status` holds."""

COLOCATED, PREFILL, DECODE = 0, 1, 2
"""What `Instances.role` holds."""

NO_LIMIT = 2**62
"""Stands for "any number of outstanding requests" in `Instances.limit`."""


class Requests(NamedTuple):
    """What arrives, n requests sorted by (arrival, index).

    Attributes:
        arrival_s: float64[n], 0 or more.
        prompt: int64[n] tokens, at least 1 (an empty prompt still computes a start token).
        output: int64[n] tokens, 0 or more.
        model: int64[n], index of the model asked for.
        draw: float64[n, 2] uniform in [0, 1), for dispatch policies that draw.
        rank: int64[n], 0 goes first; `checked` makes an empty one all 0.
        prefix_at: int64[n + 1], where the ids of each request begin in `prefix`; `checked` fills an empty one.
        prefix: int64[t], ids of the leading hash blocks of each prompt, in order, each 0 or more and without gaps.
        prefix_tokens: tokens of one hash block; 0 where there are no ids.
    """

    arrival_s: np.ndarray
    prompt: np.ndarray
    output: np.ndarray
    model: np.ndarray
    draw: np.ndarray
    rank: np.ndarray = np.empty(0, np.int64)
    prefix_at: np.ndarray = np.empty(0, np.int64)
    prefix: np.ndarray = np.empty(0, np.int64)
    prefix_tokens: int = 0


class Instances(NamedTuple):
    """What serves, N instances.

    Attributes:
        model: int64[N], index of the model each serves.
        limit: int64[N], most requests queued or running there before the router holds back.
        slots: int64[N], most running requests.
        budget: int64[N], most tokens of one step.
        chunk: int64[N], most prompt tokens of one request in one step.
        block: int64[N], tokens of a KV block.
        blocks: int64[N], KV blocks.
        reserve: int64[N], 0 takes blocks as tokens are stored and evicts where there are none left, 1 takes those of
            prompt and output on admission.
        whole: int64[N], 1 admits only while nothing runs (fixed batches).
        apart: int64[N], 1 lets no request decode in a step that has prompts to process (prefill first).
        cache: int64[N], hash blocks that the prefix cache holds; 0 for none.
        role: int64[N], `COLOCATED`, `PREFILL` or `DECODE`.
        batch: int64[N], 0, or of one that computes prompts only, which then takes requests only when it is free, that
            is while it runs none: most prompt tokens that it takes at a time, all of them within its free blocks; one
            request at least, whatever it has. Where blocks for the first are free on none of those that could begin
            with it, one takes it all the same, and nobody joins it there until it runs.
        form: float64[N, 2, 5], coefficients of the step time: the larger of two rows, each a constant and the parts
            per prompt token, per difference of squares of stored prompt tokens, per stored token of decoding requests,
            and per request.
    """

    model: np.ndarray
    limit: np.ndarray
    slots: np.ndarray
    budget: np.ndarray
    chunk: np.ndarray
    block: np.ndarray
    blocks: np.ndarray
    reserve: np.ndarray
    whole: np.ndarray
    apart: np.ndarray
    cache: np.ndarray
    role: np.ndarray
    batch: np.ndarray
    form: np.ndarray


class Failures(NamedTuple):
    """What breaks, F failures sorted by (time, instance), at most one at a time on each instance.

    Attributes:
        time_s: float64[F] when it stops.
        instance: int64[F] which.
        back_s: float64[F] when it is up again and empty, after `time_s`; infinity for never.
    """

    time_s: np.ndarray
    instance: np.ndarray
    back_s: np.ndarray


FLOW_COLUMNS = ("start_s", "end_s", "request", "source", "target", "bytes")
"""Columns of `Outcome.flows`."""


class Network(NamedTuple):
    """What KV caches travel over, from instances that prefill to those that decode, and weights that come by chains.

    A flow holds some ports, and has one rate over all of them; rates are max-min fair by progressive filling: the port
    with the smallest share fixes that of its flows, of equal ones the first in the order out of instances, into them,
    out of hosts. Whenever a flow starts or is over, or ports change, what has been sent is settled for all of them in
    order of start, and the next end is told anew: that of the flow that ends first, of equals the one that started
    first. Where rounding, or no bytes, put it at this very instant, it comes before all else that is still to happen.

    Attributes:
        egress, ingress: float64[N] bytes/s out of and into each instance, above 0, or infinity.
        latency_s: the least time that a transfer takes.
        kv_bytes: float64[M], bytes of one token's KV of each model.
        host_egress: float64[H] bytes/s out of the memory of each host, with a pool; `checked` makes an empty one
            infinite.
    """

    egress: np.ndarray
    ingress: np.ndarray
    latency_s: float
    kv_bytes: np.ndarray
    host_egress: np.ndarray = np.empty(0)


class Updates(NamedTuple):
    """New versions of weights, U of them sorted by (time, model); with a pool only, at most one of a model at a time.

    All weights have version 0 at first. At an update, behind the ends of warm rows and before a tick of that instant:

    - The version of the model is one higher. Its weights leave the memory of all hosts, pinned ones too; these keep
      them again when they are read anew. Rows of the model with an older version count neither as holding them for a
      host's memory nor as sources, come back no more, and change no role.
    - Rows of the model that are up drain, by index, even those without any work, and warm ones leave, by index (those
      that operations read when these are over, see below). A row of an older version that has no work any more is warm
      and leaves at once, and that is no use of what is in its host's memory.
    - Operations of the model begin again, by number: their loads are lost, also those that read an SSD.

    A request has the version of the row on which it is admitted first. When a row of another version is given it, it
    starts anew: its tokens are void, as if they had never been, and its next admission tells its version. KV is only
    sent to rows of the version that computed it; these include rows of an older version that drain. If no row that
    decodes for the model has that version and is up or drains, the request leaves its KV when it is the first of its
    line and the router hands on: it stands before all others of its rank in the line of its model, and counts as moved.
    When it has handed on, the router then hands out, if there were such. Behind all else of an update it hands out and
    on; it hands on when a row of an older version has no work any more.

    Attributes:
        time_s: float64[U], when.
        model: int64[U], of which model.
    """

    time_s: np.ndarray = np.empty(0)
    model: np.ndarray = np.empty(0, np.int64)


class Outages(NamedTuple):
    """Links that carry nothing for a time, F of them sorted by (time, port), at most one at a time of each.

    Ports are counted by places (without a pool by instances), P of them, and by hosts: p is the way out of place p,
    P + p the way into it, 2 P + h the way out of the memory of host h. All rows of a place lose it. At one instant,
    behind failures of places and before transfers that end: first those come back that do, by port, then those fail
    that do. At each of them what has been sent is settled and all rates are told anew. A flow over such a link stands
    still. Where *reroute* of `workbench.serving.model.Scaling` is 1, operations of chains with a source whose way out
    has just failed begin again, by number; with it, senders whose way out has failed send only where no others can.

    Attributes:
        time_s: float64[F], when it fails.
        port: int64[F], which.
        back_s: float64[F], when it is as fast as before, after `time_s` and finite.
    """

    time_s: np.ndarray = np.empty(0)
    port: np.ndarray = np.empty(0, np.int64)
    back_s: np.ndarray = np.empty(0)


class Lowered(NamedTuple):
    """A whole run as arrays.

    Attributes:
        requests, instances, failures: see their classes.
        route: number of the dispatch policy, see `workbench.serving.policy.ROUTES`.
        until_s: events up to and at this time happen, later ones do not; infinity to run until all is done.
        scaling: how the cluster changes its size; None where all instances are there from the start. With it, failures
            name places, not instances.
        network: what KV caches travel over; None where no instance has a role of its own, and no weights need it.
        updates, outages: see their classes.
    """

    requests: Requests
    instances: Instances
    failures: Failures
    route: int
    until_s: float
    scaling: Scaling | None = None
    network: Network | None = None
    updates: Updates = Updates()
    outages: Outages = Outages()


class Outcome(NamedTuple):
    """What happened.

    Attributes:
        status: int8[n], `INSIDE`, `DONE` or `REJECTED`.
        first_token_s, finish_s: float64[n] instants, NaN where there was none.
        wait_s: float64[n] from arrival to the first admission.
        instance: int64[n], the last one that the request was given to, -1 for none.
        evictions, moves: int64[n], how often its KV was evicted, and lost with its instance.
        made: int64[n] tokens emitted.
        iteration_end_s: float64, ends of all steps, instance after instance.
        iteration_at: int64[N + 1], where the steps of each instance begin.
        segments: int64[k, 5] sorted by (request, first index): request, index of the first token, how many tokens,
            instance, iteration of the first; a segment has one token in each of so many consecutive iterations.
        busy_s: float64[N], sum of the step times of completed steps, in order.
        peak_blocks: int64[N], most KV blocks ever in use.
        failed_steps: int64[N], steps lost with their instance.
        states: float64[k, 3], every change of a row in the order of events: time, row, new state (see `model.scaled`).
        loads: float64[k, 9], every load of weights by start: start and end (when the row was up; NaN if it was lost or
            the run ended first), row, tier, number of sources, operation, first time afterwards that a request emitted
            its first token there (NaN if none did), requests that finished there before the row was empty again,
            when its pipeline formed (NaN if it did not).
        ticks: float64[k, 4], every decision: time, group, instances wanted, those up or starting before it.
        cached: int64[n], prompt tokens that prefix caches saved each request.
        prefill: int64[n], the instance that ended the request's latest prefill, -1 for none.
        flows: float64[k, 6], transfers of KV in order of start: start, end (NaN if cancelled or on its way), request,
            source, target, bytes.
        chains: float64[k, 6], flows of weights in order of start: start, end (NaN if given up or on its way), when it
            was over in whatever way (NaN if it was not), operation, source (a row, or N + the number of a host), bytes.
        hops: float64[k, 2], the rows that each of these passes, in order: number of the flow, row.
        assists: float64[k, 6], steps that tails helped with, in order of start: start, end (NaN if the step was lost,
            or the run ended first), who helped, whose step, its iteration, layers that were there.
        weight_version: int64[n], the version of the weights on which the request was admitted since its latest start,
            -1 if it was not; empty in runs without updates, as are the two below.
        restarts: int64[n], how often it started anew with another version. Segments, tokens made and the first token
            are those since the latest start.
        load_version: int64[k], of each load.
    """

    status: np.ndarray
    first_token_s: np.ndarray
    finish_s: np.ndarray
    wait_s: np.ndarray
    instance: np.ndarray
    evictions: np.ndarray
    moves: np.ndarray
    made: np.ndarray
    iteration_end_s: np.ndarray
    iteration_at: np.ndarray
    segments: np.ndarray
    busy_s: np.ndarray
    peak_blocks: np.ndarray
    failed_steps: np.ndarray
    states: np.ndarray = np.empty((0, len(STATE_COLUMNS)))
    loads: np.ndarray = np.empty((0, len(LOAD_COLUMNS)))
    ticks: np.ndarray = np.empty((0, len(TICK_COLUMNS)))
    cached: np.ndarray = np.empty(0, np.int64)
    prefill: np.ndarray = np.empty(0, np.int64)
    flows: np.ndarray = np.empty((0, len(FLOW_COLUMNS)))
    chains: np.ndarray = np.empty((0, len(CHAIN_COLUMNS)))
    hops: np.ndarray = np.empty((0, len(HOP_COLUMNS)))
    assists: np.ndarray = np.empty((0, len(ASSIST_COLUMNS)))
    weight_version: np.ndarray = np.empty(0, np.int64)
    restarts: np.ndarray = np.empty(0, np.int64)
    load_version: np.ndarray = np.empty(0, np.int64)
