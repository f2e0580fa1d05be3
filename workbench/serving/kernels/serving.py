"""A whole run: the state laid out from plain arrays, the event loop, and what it leaves as plain arrays."""

from typing import Any, NamedTuple

import numpy as np

from workbench.serving.kernels import layout
from workbench.serving.kernels.events import run
from workbench.serving.kernels.layout import BAD_CHOICE, FINISHED, PAGE_STEPS, PAGES_SHORT, Router, State
from workbench.serving.kernels.logs import grown, sort_rows, unroll, valid
from workbench.serving.kernels.prefix_cache import cache_sizes
from workbench.serving.kernels.roles_events import run_roles
from workbench.serving.kernels.roles_layout import FLOWS_SHORT, Links, flows_of, grown_links, links_from
from workbench.serving.kernels.scaled import logged, scaled_from, with_longer_logs
from workbench.serving.kernels.scaled_events import PLACES, run_scaled
from workbench.serving.kernels.scaled_layout import LOGS_SHORT, TICKS_USED, Scaled
from workbench.serving.kernels.scaled_roles_events import run_scaled_roles
from workbench.serving.policy.scalers import CHAINS

MOST_DECISIONS = 10_000_000
"""Of autoscalers in one run; their log takes a gigabyte."""


class Finished(NamedTuple):
    """What a run leaves; see `workbench.serving.model.Outcome`, whose fields these are in order."""

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
    states: np.ndarray
    loads: np.ndarray
    ticks: np.ndarray
    cached: np.ndarray
    prefill: np.ndarray
    flows: np.ndarray
    chains: np.ndarray
    hops: np.ndarray
    assists: np.ndarray
    weight_version: np.ndarray
    restarts: np.ndarray
    load_version: np.ndarray


def serve(
    requests: tuple, instances: tuple, failures: tuple, route: int, until_s: float, scaling: tuple | None,
    network: tuple | None, updates: tuple, outages: tuple, models: int, chooser: Any = None, jumps: bool = True,
) -> Finished | int:  # fmt: skip
    """Run a cluster.

    Parameters:
        requests: the fields of `workbench.serving.model.Requests`.
        instances: the fields of `workbench.serving.model.Instances`.
        failures: (time_s, instance, back_s).
        route: number of the dispatch policy.
        until_s: the last instant that happens.
        scaling: the fields of `workbench.serving.model.Scaling`, or None; with it failures are those of places.
        network: the fields of `workbench.serving.model.Network`, or None where no instance has a role of its own.
        updates: the fields of `workbench.serving.model.Updates`.
        outages: the fields of `workbench.serving.model.Outages`.
        models: how many there are.
        chooser: a first-class function that dispatches in place of the numbered policy, or None.
        jumps: False does every step in full, for tests.

    Returns:
        `Finished`; `BAD_CHOICE` if the chooser chose what was not offered, or `LOGS_SHORT` if autoscalers decided
        more than `MOST_DECISIONS` times.
    """
    apart = bool((instances.role != layout.COLOCATED).any())
    linked = apart or (scaling is not None and bool((scaling.source == CHAINS).any()))
    if scaling is not None:
        models = scaling.bytes.size if linked else max(models, scaling.bytes.size)
    state = _state(requests, instances, models, jumps)
    router = _router(state, 2 * models if linked else models, route)
    own, host, groups = np.arange(instances.role.size), None, 0
    if scaling is not None:
        own, host, groups = scaling.place, scaling.host, scaling.kind.size
    links = links_from(network, own, host, groups, outages) if linked else None
    scaled = None if scaling is None else scaled_from(scaling, state, links, updates)
    time_s, failing, back_s = failures
    order = np.lexsort((failing, back_s))
    order = np.ascontiguousarray(order[np.isfinite(back_s[order])])
    broken, place = (time_s, failing, back_s, order), np.zeros(PLACES, np.int64)
    while True:
        if scaled is not None and links is not None:
            stop = run_scaled_roles(state, router, scaled, chooser, until_s, broken, place)
        elif scaled is not None:
            stop = run_scaled(state, router, scaled, chooser, until_s, broken, place)
        elif links is not None:
            stop = run_roles(state, router, links, chooser, until_s, broken, place)
        else:
            stop = run(state, router, chooser, until_s, broken, place)
        if stop == FINISHED:
            return _finished(state, scaled, links, updates[0].size > 0)
        if stop == BAD_CHOICE or (stop == LOGS_SHORT and scaled.counts[TICKS_USED] > MOST_DECISIONS):
            return stop
        if stop == LOGS_SHORT:
            scaled = with_longer_logs(scaled)
        elif stop == FLOWS_SHORT:
            links = grown_links(links)
            scaled = None if scaled is None else scaled._replace(links=links)
        else:
            log = "pages" if stop == PAGES_SHORT else "rows"
            state = state._replace(**{log: grown(getattr(state, log))})


def _state(requests: tuple, instances: tuple, models: int, jumps: bool) -> State:
    arrival_s, prompt, output, model, draw, rank, ids_at, ids, id_tokens = requests
    serves, *settings, batch, form = instances
    count, size = arrival_s.size, serves.size
    rows = np.zeros((count, layout.REQUEST_SIZE), np.int32)
    rows[:, layout.PROMPT], rows[:, layout.OUTPUT], rows[:, layout.NEED] = prompt, output, prompt
    rows[:, layout.REQUEST_MODEL] = model
    if rank.any():
        rows[:, layout.RANK] = np.unique(rank, return_inverse=True)[1]
    if ids.size:
        rows[:, layout.IDS_AT], rows[:, layout.IDS] = ids_at[:-1], np.diff(ids_at)
    for column in _UNKNOWN:
        rows[:, column] = -1
    moments = np.full((count, layout.MOMENTS_SIZE), np.nan)
    moments[:, layout.ARRIVAL_S], moments[:, layout.DRAW :] = arrival_s, draw

    one = np.zeros((size, layout.INSTANCE_SIZE), np.int64)
    for column, values in enumerate(settings):
        one[:, column] = values
    block, blocks = one[:, layout.BLOCK], one[:, layout.BLOCKS]
    one[:, layout.ROOM] = np.where(blocks > layout.LARGE // block, layout.LARGE, block * blocks)
    histogram = np.where(one[:, layout.RESERVE] == 0, block, 0)
    table, caches = cache_sizes(one[:, layout.CACHE], ids)
    ends = ids.size + np.cumsum(np.concatenate([histogram, caches]))
    one[:, layout.PHASES], one[:, layout.CACHE_AT] = ends[:size] - histogram, ends[size:] - caches
    one[:, layout.CACHE_MASK] = table - 1
    one[:, layout.CACHE] *= caches > 0
    cells = np.zeros(ends[-1], np.int32)
    cells[: ids.size] = ids
    cells[ends[size - 1] :] = -1
    # Those who wait to decode have lines of their own, after the models' first ones.
    one[:, layout.MODEL] = serves + models * (one[:, layout.ROLE] == layout.DECODES)
    one[:, layout.UP], one[:, layout.FREE], one[:, layout.BATCH] = 1, blocks, batch
    one[:, _NOBODY] = -1
    one[:, layout.PLACE] = PAGE_STEPS
    reals = np.zeros((size, layout.REALS_SIZE))
    reals[:, layout.BOUNDARY], reals[:, layout.FORM :] = np.inf, form.reshape(size, -1)
    shared = np.zeros(layout.SHARED_SIZE, np.int64)
    shared[layout.JUMPS], shared[layout.ID_TOKENS], shared[layout.SENT_HEAD] = jumps, id_tokens, -1
    return State(
        requests=rows,
        moments=moments,
        instances=one,
        reals=reals,
        cells=cells,
        shared=shared,
        pages=np.empty((size + 64, PAGE_STEPS + 1)),
        rows=np.empty((count + 64, 5), np.int64),
    )


def _router(state: State, count: int, route: int) -> Router:
    line_of = state.instances[:, layout.MODEL]
    members = np.argsort(line_of, kind="stable")
    lines = np.full((count, layout.LINE_SIZE), -1)
    lines[:, [layout.CURSOR, layout.WAITING, layout.WAITING_TOKENS, layout.LATEST]] = 0
    edges = np.searchsorted(line_of[members], np.arange(count + 1))
    lines[:, layout.BEGIN], lines[:, layout.BEHIND] = edges[:-1], edges[1:]
    return Router(lines=lines, members=members, offer=np.empty((3, members.size), np.int64), route=route)


def _finished(state: State, scaled: Scaled | None, links: Links | None, updated: bool) -> Finished:
    requests, moments, one = state.requests, state.moments, state.instances
    iteration_at = np.concatenate([[0], np.cumsum(one[:, layout.ITERATION])])
    iteration_end_s = np.empty(iteration_at[-1])
    unroll(one, state.pages, iteration_at, iteration_end_s)
    used = int(state.shared[layout.ROWS_USED])
    segments = np.empty((used, 5), np.int64)
    sort_rows(state.rows, used, np.zeros(len(requests) + 1, np.int64), segments)
    if updated:
        segments = valid(segments, requests[:, layout.MADE])
    flows, chains, hops = flows_of(links)
    states, loads, ticks, assists = logged(scaled, state, segments)
    whole = {name: requests[:, getattr(layout, name.upper())].astype(np.int64) for name in _WHOLE}
    instants = {name: moments[:, getattr(layout, name.upper())].copy() for name in _INSTANTS}
    return Finished(
        status=requests[:, layout.STATUS].astype(np.int8),
        **instants,
        **whole,
        iteration_end_s=iteration_end_s,
        iteration_at=iteration_at,
        segments=segments,
        busy_s=state.reals[:, layout.BUSY_S].copy(),
        peak_blocks=one[:, layout.PEAK].copy(),
        failed_steps=one[:, layout.FAILED_STEPS].copy(),
        states=states,
        loads=loads[:, :-1],
        ticks=ticks,
        flows=flows,
        chains=chains,
        hops=hops,
        assists=assists,
        weight_version=requests[: updated * len(requests), layout.VERSION].astype(np.int64),
        restarts=requests[: updated * len(requests), layout.RESTARTS].astype(np.int64),
        load_version=loads[: updated * len(loads), -1].astype(np.int64),
    )


_UNKNOWN = [
    layout.SINCE, layout.SEGMENT_FROM, layout.SEGMENT_ROW, layout.INSTANCE, layout.PREFILL, layout.FLOW,
    layout.VERSION,
]  # fmt: skip
_NOBODY = [
    layout.HEAD, layout.TAIL, layout.QUEUE_HEAD, layout.QUEUE_TAIL, layout.PREFILL_HEAD, layout.PREFILL_TAIL,
    layout.ROOT, layout.PAGE, layout.FIRST_PAGE, layout.NEWEST, layout.OLDEST, layout.LEAVING_HEAD, layout.LEAVING_TAIL,
    layout.LEFT_NOW,
]  # fmt: skip
_WHOLE = ("instance", "evictions", "moves", "made", "cached", "prefill")
_INSTANTS = ("first_token_s", "finish_s", "wait_s")
