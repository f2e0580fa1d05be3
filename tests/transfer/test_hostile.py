"""Whatever a user gives, a schedule of their own or a number that is none, is used or refused in one sentence."""

import math

import numpy as np
import pytest

from workbench.errors import InputError, UnknownName, UserError
from workbench.queueing.simulated import Clock
from workbench.records import shown
from workbench.transfer.model import (
    Endpoint,
    Hockney,
    LogGP,
    Network,
    Resource,
    arrival_steps,
    chain_of_blocks_s,
    completion,
    fit_hockney,
    forwarding_chain_s,
    k_way_steps,
    lanes_completion_s,
    layer_ready_s,
    leave_one_out,
    milestones_of,
    multicast_s,
    optimal_blocks,
    recursive_doubling_all_gather_s,
    ring_all_gather_s,
    ring_all_reduce_s,
    run_times,
    scatter_all_gather_broadcast_s,
    schedule_s,
    send_receive_s,
    slow_link_share,
    slow_link_share_of_chain,
    star_s,
    stream_s,
    two_level,
    uniform_network,
)
from workbench.transfer.policy import (
    SCHEDULES,
    ScheduleKind,
    arrivals,
    block_order,
    by_bandwidth,
    chain,
    chain_members,
    check,
    fibonacci_tree,
    flow_form,
    hosts_and_share,
    k_way,
    log2_ceiling,
    lower_bound,
    make_schedule,
    multi_chain,
    replan,
    ring_broadcast,
    schedule_blocks,
    sharded,
    step_form,
    steps,
    sub_groups,
)
from workbench.transfer.simulated import Fabric, simulate

COST = Hockney(alpha_s=1e-3, bytes_per_s=1e9)
LOGGP = LogGP(latency_s=1e-6, overhead_s=1e-6, gap_s=1e-6, per_byte_s=1e-9)
NETWORK = uniform_network(3, 1e9)
NONE_IN_COMMON = [-1, math.nan, math.inf, -math.inf, "fast", None]
NOT_POSITIVE = [*NONE_IN_COMMON, 0, 10**400]
NOT_NEGATIVE = [*NONE_IN_COMMON, 10**400]
NOT_A_COUNT = [*NONE_IN_COMMON, 0, 2.5, True, 10**400, 10**5000]
NOT_A_SHARE = [*NOT_POSITIVE, 1.01, np.array([0.5, 0.0]), np.array([0.5, 2.0])]


@pytest.mark.parametrize(
    "case",  # function, arguments that are right, (values, places of the arguments that they make wrong), ...
    [
        (steps, ("chain", 4, 4), (NOT_A_COUNT, (1, 2))),
        (schedule_blocks, ("chain", 4, 4), (NOT_A_COUNT, (1, 2))),
        (step_form, ("faasnet_tree", 4), (NOT_A_COUNT, (1,))),
        (flow_form, ("binary_tree", 4), (NOT_A_COUNT, (1,))),
        (lower_bound, (4, 4), (NOT_A_COUNT, (0, 1))),
        (log2_ceiling, (4,), ([*NONE_IN_COMMON, 0, 2.5], (0,))),
        (make_schedule, ("binomial_pipeline", 4, 4), (NOT_A_COUNT, (1, 2))),
        *((kind.generate, (6, 6), (NOT_A_COUNT, (0, 1))) for kind in SCHEDULES.values()),
        (ring_broadcast, (4, 4, 2), (NOT_A_COUNT, (2,))),
        (k_way, (4, 4, 2, "contiguous", 2), (NOT_A_COUNT, (2, 4)), (["stride", None], (3,))),
        (multi_chain, (9, 4, 2, 1), (NOT_A_COUNT, (2, 3))),
        (sharded, (4, 4, 2), (NOT_A_COUNT, (2,))),
        (hosts_and_share, (4, 4, 2), (NOT_A_COUNT, (0, 1, 2))),
        (sub_groups, (4, 2), (NOT_A_COUNT, (0, 1))),
        (chain_members, (range(4), 2, 1), (NOT_A_COUNT, (1, 2))),
        (block_order, (0, 2, 4), (NONE_IN_COMMON, (0,)), (NOT_A_COUNT, (2,)), ([0, -1, 2.5, "a"], (1,))),
        (fibonacci_tree, (4,), (NOT_A_COUNT, (0,))),
        (by_bandwidth, ([1.0, 2.0], 1), ([[0.0], [math.nan], ["a"]], (0,)), ([3, -1, 0.5], (1,))),
        (arrival_steps, ("chain", 4, 4), (NOT_A_COUNT, (1, 2))),
        (completion, ("chain", 4, 4, 1e9, COST), (NOT_A_COUNT, (1, 2)), (NOT_POSITIVE, (3,)), ([LOGGP, None], (4,))),
        (multicast_s, ("chain", 4, 4, 1e9, COST), (NOT_A_COUNT, (1, 2)), (NOT_POSITIVE, (3,)), ([None], (4,))),
        (optimal_blocks, ("chain", 4, 1e9, COST, 9), (NOT_A_COUNT[:-2], (1, 4)), (NOT_POSITIVE, (2,)), ([LOGGP], (3,))),
        (k_way_steps, (8, 4, 2), (NOT_A_COUNT, (0, 1, 2))),
        (chain_of_blocks_s, ([1.0, 2.0], 4), (NOT_A_COUNT, (1,)), ([[bad] for bad in NOT_POSITIVE], (0,))),
        (chain_of_blocks_s, ([1.0], 4), ([[], 3.0, "fast", None], (0,))),
        (
            forwarding_chain_s,
            (1e9, [1e9, 1e9], 1e6, 0.0),
            (NOT_POSITIVE, (0, 2)),
            ([[bad] for bad in NOT_POSITIVE], (1,)),
            ([*NOT_NEGATIVE, [0.0], [0.0] * 3, [-1.0, 0.0]], (3,)),
        ),
        (
            layer_ready_s,
            (3, 4, 1e9, 1e6, 1e6, 1e3, 1e-3),
            (NOT_A_COUNT, (0, 1)),
            (NOT_POSITIVE, (2, 3)),
            (NOT_NEGATIVE, (4, 5, 6)),
        ),
        (star_s, (3, 1e9, 1e9), (NOT_A_COUNT, (0,)), (NOT_POSITIVE, (1, 2))),
        *(
            (form, (1e9, 4, COST), (NOT_POSITIVE, (0,)), (NOT_A_COUNT, (1,)), ([LOGGP], (2,)))
            for form in (
                ring_all_gather_s,
                ring_all_reduce_s,
                recursive_doubling_all_gather_s,
                scatter_all_gather_broadcast_s,
            )
        ),
        (send_receive_s, (1e9, COST), (NOT_POSITIVE, (0,)), ([LOGGP], (1,))),
        (stream_s, (COST, 1e6, 3), (NOT_NEGATIVE, (1,)), (NOT_A_COUNT, (2,))),
        (stream_s, (LOGGP, 1e6, 3), (NOT_POSITIVE, (1,))),
        (COST.travel_s, (1e6,), (NOT_NEGATIVE, (0,))),
        (LOGGP.busy_s, (1e6,), (NOT_POSITIVE, (0,))),
        (two_level, (1e9, 4, 1e9, 1e9), (NOT_POSITIVE, (0, 2, 3)), (NOT_A_COUNT, (1,))),
        (lanes_completion_s, (3, 2, 4, 1.0, 1.0), (NOT_A_COUNT, (0, 1, 2)), (NOT_POSITIVE, (3, 4)), ([5], (2,))),
        (slow_link_share, (8, 0.5), ([*NOT_A_COUNT, 12], (0,)), (NOT_A_SHARE, (1,))),
        (slow_link_share_of_chain, (8, 4, 0.5), (NOT_A_COUNT, (0, 1)), (NOT_A_SHARE, (2,))),
        (fit_hockney, ([1, 1], [1, 2], [1, 2]), ([[bad, 1] for bad in NOT_POSITIVE], (0,))),
        (
            fit_hockney,
            ([1, 1], [1, 2], [1, 2]),
            ([[bad, 2] for bad in NOT_NEGATIVE], (1, 2)),
            ([[], 3, [1]], (0, 1, 2)),
        ),
        (leave_one_out, ([1] * 3, [1, 2, 3], [1, 2, 3]), ([[bad, 1, 1] for bad in NOT_POSITIVE], (0,))),
        (schedule_s, (chain(3, 2), 1e6, COST), (NOT_NEGATIVE, (1,))),
        (uniform_network, (4, 1e9, 0.0), (NOT_A_COUNT, (0,)), (NOT_POSITIVE, (1,)), (NOT_NEGATIVE, (2,))),
        (
            milestones_of,
            (np.ones((8, 4)), 2),
            (NOT_A_COUNT, (1,)),
            ([np.ones(3), np.ones((4, 0)), "a", None, np.full((8, 4), np.nan)], (0,)),
        ),
        (milestones_of, (np.ones((8, 4)), 2), ([np.full((8, 4), np.inf), np.full((8, 4), 1e300)], (0,))),
    ],
    ids=lambda case: case[0].__name__,
)
def test_numbers_that_are_none_are_refused_in_a_sentence(case):
    function, good, *wrong = case
    function(*good)
    for place, bad in ((place, bad) for values, places in wrong for place in places for bad in values):
        try:
            function(*good[:place], bad, *good[place + 1 :])
        except UserError as error:
            text = str(error)
        else:
            pytest.fail(f"argument {place} may be {shown(bad)}")
        assert text.endswith("."), text
        assert "\n" not in text
        assert len(text) < 300


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("ring_broadcast", "slices"),
        ("k_way", "sources"),
        ("k_way", "parts"),
        ("multi_chain", "chains"),
        ("multi_chain", "sources"),
        ("sharded", "lanes"),
    ],
)
def test_options_of_schedules_that_are_no_counts(name, option):
    for bad in NOT_A_COUNT:
        for function in (make_schedule, arrival_steps, steps, schedule_blocks):
            with pytest.raises(InputError, match=option):
                function(name, 8, 8, **{option: bad})


def test_what_memory_would_not_hold_is_refused():
    assert steps("chain", 60_000, 2**31 - 1) == 2**31 - 1 + 60_000 - 2  # a formula may be asked
    for build in (make_schedule, arrival_steps):
        with pytest.raises(InputError, match="more than the 50,000,000 that can be laid out"):
            build("chain", 60_000, 1000)
    with pytest.raises(InputError, match="more than the 50,000,000"):
        k_way(8, 1000, 2, parts=10_000)
    with pytest.raises(InputError, match="more than the 50,000,000"):
        ring_broadcast(8, 1000, slices=10_000)
    with pytest.raises(InputError, match="layers"):
        layer_ready_s(60_000, 10_000, 1e9, 1e6)


@pytest.mark.parametrize("run", ["lockstep", "", None, 1])
def test_a_run_that_there_is_not(run):
    for use in (
        lambda: run_times(chain(3, 2), 1.0, run),
        lambda: simulate(chain(3, 2), NETWORK, 1e6, run=run),
        lambda: arrival_steps("chain", 3, 2, run),
    ):
        with pytest.raises(UnknownName, match=r"barrier|dataflow"):
            use()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"travel_s": [1.0, 2.0]}, r"travel_s': has the shape \(2,\); give one number, or one for each of 4"),
        ({"travel_s": np.ones((4, 2))}, "travel_s': has the shape"),
        ({"travel_s": "fast"}, "travel_s': is no number"),
        ({"travel_s": [1.0, math.nan, 1.0, 1.0]}, "row 2, field 'travel_s': is nan"),
        ({"travel_s": -1.0}, "travel_s': is -1"),
        ({"travel_s": math.inf}, "travel_s': is inf"),
        ({"travel_s": 1.0, "busy_s": [1.0] * 5}, "busy_s': has the shape"),
        ({"travel_s": 1.0, "busy_s": -1}, "busy_s': is -1"),
        ({"travel_s": 1.0, "port": [0, 1]}, "port': has the shape"),
        ({"travel_s": 1.0, "port": 0.5}, "port': is no number"),
    ],
)
def test_times_and_ports_that_do_not_fit(given, problem):
    with pytest.raises(InputError, match=problem):
        run_times(chain(3, 2), **given)


def test_any_whole_number_names_a_port():
    """Ports are names: -1 and a million are two, as 0 and 1 are."""
    schedule = sharded(4, 4, 2)
    local = (schedule.source // 2 == schedule.target // 2).astype(int)
    expected = run_times(schedule, 1.0, port=local).held_s
    assert run_times(schedule, 1.0, port=np.where(local == 1, 10**6, -1)).held_s.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"block_bytes": [1e6] * 3}, r"block_bytes': has the shape \(3,\) .* each of the 2 blocks"),
        ({"block_bytes": []}, "block_bytes': has the shape"),
        ({"block_bytes": [[1e6, 1e6]]}, "block_bytes': has the shape"),
        ({"block_bytes": [1e6, -1.0]}, r"block_bytes': is -1\.0"),
        ({"block_bytes": "large"}, "block_bytes'"),
        ({"block_bytes": 10**400}, "block_bytes'"),
        ({"held": np.ones((2, 3), dtype=bool)}, r"held': has the shape \(2, 3\); .* 3 x 2"),
        ({"held": True}, r"held': has the shape \(\)"),
        ({"held": [[True, False], [True]]}, "held': has the shape"),
        ({"detect_s": -1.0}, "detect_s': is"),
        ({"detect_s": math.nan}, "detect_s': is nan"),
    ],
)
def test_a_simulation_refuses_what_does_not_fit(given, problem):
    with pytest.raises(InputError, match=problem):
        simulate(chain(3, 2), NETWORK, **{"block_bytes": 1e6, **given})


def test_check_and_replan_refuse_nodes_that_there_are_not():
    for use in (
        lambda: check(chain(3, 2), absent=(3,)),
        lambda: check(chain(3, 2), absent=(-1,)),
        lambda: replan(chain(3, 2), (3,), np.ones((3, 2), dtype=bool)),
        lambda: replan(chain(3, 2), (-1,), np.ones((3, 2), dtype=bool)),
    ):
        with pytest.raises(InputError, match="from 0 to 2"):
            use()
    for use in (check, arrivals):
        with pytest.raises(InputError, match="held': has the shape"):
            use(chain(3, 2), held=np.ones((3, 3), dtype=bool))


def test_a_network_knows_its_resources_and_nodes():
    """Rates are shared out by index, unchecked."""
    nic = Resource(name="nic", kind="nic", bytes_per_s=1e9)
    ends = (Endpoint("a", 0, 0, remote_out=(0,)), Endpoint("b", 1, 0))
    Network(resources=(nic,), endpoints=ends, links=((0, 1, 0),))
    for wrong, problem in (
        ({"endpoints": (Endpoint("a", 0, 0, remote_out=(1,)), Endpoint("b", 1, 0))}, "names resource 1 of 1"),
        ({"endpoints": (Endpoint("a", 0, 0, memory_in=(-1,)),)}, "names resource -1 of 1"),
        ({"leaf_out": ((2,),)}, "names resource 2 of 1"),
        ({"links": ((0, 1, 7),)}, "names resource 7 of 1"),
        ({"links": ((0, 2, 0),)}, "a link with node 2 of 2"),
        ({"endpoints": (Endpoint("a", 0, 1),)}, "'a' on leaf 1"),
    ):
        with pytest.raises(InputError, match=problem):
            Network(**{"resources": (nic,), "endpoints": ends, **wrong})
    fabric = Fabric(Clock(), [1e9], ["nic"])
    for path in ((1,), (-1,), (0.5,)):
        with pytest.raises(InputError, match="path"):
            fabric.start(path, 1e6, "weights")


def test_a_schedule_that_is_added_needs_a_closed_form_of_its_own(monkeypatch):
    monkeypatch.setitem(SCHEDULES, "new", ScheduleKind(chain, "new", "m + n - 2", lambda nodes: (1, nodes - 2)))
    assert steps("new", 4, 4) == 6
    with pytest.raises(NotImplementedError, match="'new'"):
        arrival_steps("new", 4, 4)
