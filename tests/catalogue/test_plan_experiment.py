"""The viewer of plans: what is drawn is the plan, for every planner and at the ends of its sliders."""

import itertools

import polars as pl
import pytest

import workbench as wb
from workbench.catalogue.blitzscale.planners import ARTIFACT, BEST, GREEDY
from workbench.errors import UserError
from workbench.figures import sketch
from workbench.figures.plan import HALF, map_of
from workbench.scaling.policy.chain_plan import Holder, Spare, plan_chains
from workbench.scaling.policy.lane_plan import plan_lanes

CARD = 12.5e9
BYTES = 16_060_522_496
"""Weights of Llama 3 8B in two bytes a parameter: 16.06 GB (notes on BlitzScale, §2.1)."""
SMALL = {"hosts": 2, "accelerators": 4, "hosts_per_leaf": 1, "domain": 2, "targets": 4, "between_leaves": 0.5}
LARGE = {"hosts": 16, "targets": 128, "prefill": 4, "decode": 4}


def run(**given):
    return wb.experiment("blitzscale/plan").run("analytic", **given)


def small_cluster():
    """The small cluster by hand: below each switch a host; its first NVLink group holds a prefill and a decode one."""
    holders = [
        Holder(name=f"{role} {leaf}", role=role, leaf=leaf, bytes_per_s=CARD * (0.67 if role == "prefill" else 1))
        for role in ("prefill", "decode")
        for leaf in range(2)
    ]
    holders.append(Holder(name="host copy", role="host", leaf=1, bytes_per_s=CARD))
    places = [(host, place) for host in range(2) for place in (2, 3)]
    spares = [Spare(name=f"GPU {h}.{p}", domain=2 * h + 1, leaf=h, bytes_per_s=CARD) for h, p in places]
    return holders, spares


def hops(chains):
    """Pairs (who sends, who receives) of some chains."""
    found = set()
    for chain in chains:
        ends = [(chain.source.name,), *(node.members for node in chain.nodes)]
        found |= set(itertools.pairwise(ends))
    return found


def drawn(result):
    """Pairs of points that the lines of the figure join, and the names of what is marked as reached."""
    data = sketch(result.outcome)["data"]
    lines = [one for one in data if one.get("mode") == "lines" and one["name"].startswith(("chain", "lane"))]
    joined = set()
    for line in lines:
        for start in range(0, len(line["x"]), 7):  # six points a hop, and a gap
            x, y = line["x"][start : start + 6], line["y"][start : start + 6]
            joined.add(((round(x[0], 6), y[0]), (round(x[5], 6), y[5])))
    marked = [one for one in data if one.get("mode") == "markers" and str(one.get("legendgroup", "")).startswith("(")]
    reached = [text.split(":")[0] for one in marked for text in one["text"] if text.startswith("GPU")]
    return joined, reached


def points(result, pairs, lanes=False):
    """The same pairs as points: a line leaves in the middle of what sends first, or at the edge of an NVLink group."""
    where = map_of(result.tables["places"])

    def middle(names):
        spots = [where.spots[name] for name in names]
        return spots[0].x, sum(spot.y for spot in spots) / len(spots)

    made = set()
    for senders, members in pairs:
        (x, y), (to_x, to_y) = middle(senders), middle(members)
        edge = 0.0 if lanes or not senders[0].startswith("GPU") else HALF
        made.add(((round(x + edge, 6), y), (round(to_x - HALF, 6), to_y)))
    return made


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("chains", [0, 1])
def test_the_drawn_lines_are_the_edges_of_the_greedy_plan(prune, chains):
    result = run(**SMALL, prune=prune, chains=chains)
    holders, spares = small_cluster()
    expected = hops(plan_chains(holders, spares, 4, chains or None, prune))
    joined, reached = drawn(result)
    assert joined == points(result, expected)
    assert sorted(reached) == sorted(spare.name for spare in spares)


def test_the_drawn_lines_are_the_artifacts_lanes():
    result = run(**SMALL, planner=ARTIFACT)
    holders, spares = small_cluster()
    joined, reached = drawn(result)
    expected = set().union(*(hops(lanes) for lanes in plan_lanes(holders, spares, 4)))
    assert joined == points(result, expected, lanes=True)
    assert sorted(reached) == sorted(spare.name for spare in spares)


@pytest.fixture(scope="module")
def plans():
    """Runs over planners and shapes, those at the sliders' ends among them."""
    shapes = [
        {}, {"prune": False}, {"decode": 1, "host_copy": False}, {"slow_hosts": 1}, {"domain": 1, "targets": 5},
        LARGE, LARGE | {"hosts_per_leaf": 1}, LARGE | {"domain": 1, "prune": False, "hosts_per_leaf": 16},
    ]  # fmt: skip
    made = [(shape, planner, run(**shape, planner=planner)) for shape in shapes for planner in (GREEDY, ARTIFACT)]
    return made + [(shape, BEST, run(**shape, planner=BEST)) for shape in shapes[:5]]


def test_every_target_is_reached_once_and_no_other(plans):
    for shape, planner, result in plans:
        tables = result.tables
        room = tables["places"].filter(pl.col("role").is_in(["spare", "target"]))
        wanted = min(shape.get("targets", 16), len(room))
        _, reached = drawn(result)
        assert len(reached) == len(set(reached)) >= wanted, (shape, planner)
        assert set(reached) == set(tables["places"].filter(role="target")["name"])
        assert len(reached) - wanted == 0 or planner == ARTIFACT


def test_no_source_that_is_left_out_sends(plans):
    for shape, planner, result in plans:
        sources = result.tables["sources"]
        sending = set(result.tables["edges"]["senders"].list.first())
        out = set(sources.filter("pruned")["name"])
        assert not out & sending
        prefill = set(sources.filter(role="prefill")["name"])
        assert (prefill <= out) == shape.get("prune", True), (shape, planner)
        where = map_of(result.tables["places"])
        left = {(round(where.spots[name].x, 6), where.spots[name].y) for name in out}
        assert not left & {start for start, _ in drawn(result)[0]}


def test_everything_is_drawn_inside_the_picture_and_nothing_on_another(plans):
    for _, _, result in plans:
        figure = sketch(result.outcome)
        (left, right), (bottom, top) = (figure["layout"][axis]["range"] for axis in ("xaxis", "yaxis"))
        for trace in figure["data"]:
            if "xaxis" not in trace:
                assert all(left <= x <= right for x in trace["x"] if x is not None)
                assert all(bottom <= y <= top for y in trace["y"] if y is not None)
        spots = map_of(result.tables["places"]).spots.values()
        assert len({(spot.x, spot.y) for spot in spots}) == len(spots)


def test_what_goes_up_comes_down_and_the_best_chains_are_never_later(plans):
    for _, _, result in plans:
        uplinks, known = result.tables["uplinks"], result.tables["plans"]
        for (_,), part in uplinks.group_by("planner"):
            assert part["up_bytes"].sum() == pytest.approx(part["down_bytes"].sum())
        last = dict(known.select("planner", "last_s").iter_rows())
        assert last.get(BEST, 0.0) <= last[GREEDY] * (1 + 1e-12)


def test_times_and_bytes_by_hand():
    def told(series, planner=GREEDY, **given):
        table = run(**given, planner=planner).tables["headline"]
        return table.filter(series=series, x=planner)["value"].item()

    last, up = "time until the last accelerator holds the weights", "bytes that go up to the spine"
    # One switch for all: 1.285 s over 100 Gbps, however many stand behind each other.
    for targets in (1, 8, 24):
        assert told(last, hosts_per_leaf=4, targets=targets) == pytest.approx(BYTES / CARD, rel=1e-4)
        assert told(up, hosts_per_leaf=4, targets=targets) == 0.0
    # One source below the first switch, targets below both: the weights cross once. Between groups of four cards half
    # the rate is still more than the source's one card; between single cards it is half.
    one = {"decode": 1, "host_copy": False, "targets": 24}
    assert told(last, **one) == pytest.approx(BYTES / CARD, rel=1e-4)
    assert told(last, **one, domain=1) == pytest.approx(2 * BYTES / CARD, rel=1e-4)
    assert told(up, **one) == pytest.approx(BYTES, rel=1e-4)
    # A prefill instance that must send has a third less to send with: 1 / 0.67, about the published 1.5 times.
    alone = {"decode": 0, "prefill": 1, "host_copy": False, "hosts_per_leaf": 4}
    assert told(last, **alone) == pytest.approx(BYTES / (0.67 * CARD), rel=1e-4)
    # Two lanes carry half each.
    assert told(last, ARTIFACT, hosts_per_leaf=4, targets=8) == pytest.approx(BYTES / CARD / 2, rel=1e-4)


def test_what_cannot_be_planned_is_said():
    with pytest.raises(UserError, match="Nobody holds the weights"):
        run(prefill=0, decode=0, host_copy=False)
    with pytest.raises(UserError, match="4 instances on 2 accelerators"):
        run(hosts=2, accelerators=1)
    with pytest.raises(UserError, match="plans would take too long"):
        run(**LARGE, planner=BEST)
    with pytest.raises(UserError, match="no decode instance"):
        run(decode=0, planner=ARTIFACT)
    assert ARTIFACT not in run(decode=0).tables["plans"]["planner"].to_list()
    none = run(accelerators=1)
    assert none.sentence.startswith("No accelerator is spare")
    assert sketch(none.outcome)["data"]
