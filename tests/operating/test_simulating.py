"""One run of a system: against hand calculations, over both backends, with the user's own policies."""

import html
import json

import numba
import numpy as np
import polars as pl
import pytest
from operating_cases import MUCH, SECOND, SERVED, SERVER, gpus, table

import workbench as wb
from workbench import workloads
from workbench.errors import InputError, UnknownName, UserError
from workbench.operating import System
from workbench.serving import Engine, Failure

CODE = "azure-code-2023-like"

SLOW = System(name="one at a time", engine=Engine(slots=1))


def small(**options):
    """Two instances that step by the second; four requests."""
    given = {
        "cluster": gpus(2),
        "models": "llama-3-8b",
        "trace": table((10.0, 5, 3), (10.5, 5, 1), (11.0, 5, 2), (12.5, 5, 2)),
        "step": SECOND,
        "kv_tokens": 1024,
        "policies": {"dispatch": "round-robin"},
    }
    return wb.simulate(**{"system": "fixed"} | given | options)


def test_a_run_by_hand():
    """Instance 0: request 0 in steps ending 11, 12, 13; 2 comes at 11, as the step ends, and takes 12, 13.

    Instance 1: request 1 in the step 10.5 to 11.5; 3 comes at 12.5 and takes 13.5, 14.5.
    """
    run = small(slo=wb.slo(ttft_s=1.0, tbt_s=1.0))
    requests = run.requests
    assert requests["first_token_s"].to_list() == [11.0, 11.5, 12.0, 13.5]
    assert requests["finish_s"].to_list() == [13.0, 11.5, 13.0, 14.5]
    assert requests["wait_s"].to_list() == [0.0] * 4
    assert requests["prefill_instance"].to_list() == requests["decode_instance"].to_list() == [0, 1, 0, 1]
    assert requests["weight_version"].to_list() == [0] * 4
    assert run.iterations["end_s"].to_list() == [11.0, 12.0, 13.0, 11.5, 13.5, 14.5]
    assert run.segments.rows() == [(0, 0, 3, 0, 0), (1, 0, 1, 1, 0), (2, 0, 2, 0, 1), (3, 0, 2, 1, 1)]
    assert run.token_times([2])["time_s"].to_list() == [12.0, 13.0]
    found = run.metrics()
    assert found["attainment"] == found["goodput_per_s"] * 4.5 / 4 == 1.0
    assert run.metrics(wb.slo(ttft_s=0.9, tbt_s=1.0))["attainment"] == 0.0
    assert found["inside"] == 0


def test_allocation_by_hand():
    """Both are there from 10 to 14.5; instance 0 works from 10 to 13, instance 1 from 10.5 to 11.5 and from 12.5."""
    expected = [(10, 2, 1), (10.5, 2, 2), (11.5, 2, 1), (12.5, 2, 2), (13, 2, 1), (14.5, 0, 0)]
    found = small().allocation
    assert found.select("time_s", "gpus_allocated", "gpus_active").rows() == expected
    assert set(found["model"]) == {"default"}


def test_allocation_counts_the_accelerators_of_an_instance_and_its_failures():
    run = small(deployment=wb.deployment(tp=2), cluster=gpus(4), failures=[Failure(time_s=1.5, instance=1, back_s=2.0)])
    rows = run.allocation.select("time_s", "gpus_allocated").rows()
    assert (11.5, 2) in rows
    assert (12.0, 4) in rows


def seconds_of(allocation: pl.DataFrame, column: str) -> float:
    """Integral of a column of the allocation table over time."""
    total = 0.0
    for (_,), part in allocation.group_by("model"):
        part = part.sort("time_s")
        total += float((np.diff(part["time_s"].to_numpy()) * part[column].to_numpy()[:-1]).sum())
    return total


@pytest.mark.parametrize("trace", [CODE, "two models"])
def test_active_time_is_the_time_of_all_steps(trace):
    """The engine idles only while no request is admitted, so the two agree without sharing a line of code."""
    requests = wb.trace(CODE).requests.head(500)
    if trace == "two models":
        requests = requests.with_columns(model=pl.Series(["a", "b"] * 250))
    run = wb.simulate("fixed", cluster=gpus(4), models="llama-3-8b", trace=requests)
    found = run.metrics()
    assert seconds_of(run.allocation, "gpus_active") == pytest.approx(found["gpu_active_s"], rel=1e-9)
    assert seconds_of(run.allocation, "gpus_allocated") == pytest.approx(found["gpu_allocated_s"], rel=1e-9)


@pytest.mark.parametrize("failing", [False, True])
def test_both_backends_give_the_same_tables(failing):
    failures = [Failure(time_s=20.0, instance=0, back_s=40.0), Failure(time_s=30.0, instance=2)] if failing else []
    given = {"cluster": gpus(3), "models": "llama-3-8b", "trace": wb.trace(CODE).requests.head(300)}
    given |= {"policies": {"dispatch": "two-choices"}, "seed": 3, "failures": failures}
    one, other = (wb.simulate("fixed", backend=name, **given) for name in ("compiled", "simpy"))
    for name in ("requests", "iterations", "segments", "timeline", "allocation"):
        assert getattr(one, name).equals(getattr(other, name)), name
    status = one.requests["status"].value_counts().sort("status").rows()
    assert sum(count for _, count in status) == 300


def test_the_export_of_a_run_replays_to_the_same_times(tmp_path):
    """As a trace in memory, as a file, and as the table of requests of a saved run."""
    given = {"cluster": gpus(4), "models": "llama-3-8b", "seed": 5, "policies": {"dispatch": "random"}}
    run = wb.simulate("fixed", trace=CODE, **given)
    file = workloads.convert(run.trace, tmp_path / "export.csv")
    saved = run.save(tmp_path / "run") / "requests.parquet"
    columns = ["request_id", "status", "first_token_s", "finish_s", "wait_s", "tbt_max_s", "prefill_instance"]
    for trace in (run.trace, str(file), pl.read_parquet(saved)):
        again = wb.simulate("fixed", trace=trace, **given)
        assert len(again.requests) == len(run.requests)
        assert again.requests.select(columns).equals(run.requests.select(columns))


def test_priorities_are_exported_too(tmp_path):
    """One slot, three steps of a second each: those of priority 0 go first, of equals the one that stands first."""
    trace = table(*[(0.0, 8, 3)] * 6).with_columns(priority=pl.Series([2, 1, 0, 2, 1, 0]))
    given = {"system": wb.system("fixed", engine=Engine(slots=1)), "cluster": gpus(1), "models": "llama-3-8b"}
    given |= {"step": SECOND, "kv_tokens": 256}
    run = wb.simulate(**given, trace=trace)
    files = [workloads.convert(run.trace, tmp_path / f"export.{kind}") for kind in ("csv", "jsonl", "parquet")]
    for again in (run, *(wb.simulate(**given, trace=one) for one in (run.trace, *files))):
        assert again.requests["finish_s"].to_list() == [15.0, 9.0, 3.0, 18.0, 12.0, 6.0]


def test_a_saved_run_comes_back_bit_for_bit(tmp_path):
    run = small(slo=wb.slo(ttft_s=1.0, tbt_s=1.0), failures=[Failure(time_s=1.5, instance=1)], until_s=3.25)
    loaded = wb.load(run.save(tmp_path / "run"))
    for name in ("requests", "iterations", "segments", "timeline", "allocation"):
        assert getattr(loaded, name).equals(getattr(run, name)), name
    assert str(loaded.metrics()) == str(run.metrics())
    assert (loaded.system, loaded.cluster, loaded.slo, loaded.models) == (run.system, run.cluster, run.slo, run.models)
    assert loaded.scenario == run.scenario
    assert loaded.sentence == run.sentence
    assert run.save(tmp_path / "run").is_dir()  # saving again replaces it
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_folder_that_is_no_run_is_left_alone(tmp_path):
    run = small()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(UserError, match="exists and is not a saved run"):
        run.save(tmp_path / "mine")
    saved = run.save(tmp_path / "run")
    (saved / "arrays.parquet").unlink()
    with pytest.raises(InputError, match="a broken saved run"):
        wb.load(saved)


def test_a_chrome_trace_has_each_phase_of_each_request(tmp_path):
    document = json.loads(small().chrome_trace(tmp_path / "run.json").read_text())
    events = document["traceEvents"]
    begun = [event for event in events if event["ph"] == "b"]
    ended = [event for event in events if event["ph"] == "e"]
    assert len(begun) == len(ended) == 4 * 3
    prompt = next(event for event in begun if event["id"] == "2" and event["name"] == "prompt")
    assert (prompt["pid"], prompt["ts"]) == (0, 1e6)
    assert [event["args"]["name"] for event in events if event["ph"] == "M"] == [
        "instance 0: default",
        "instance 1: default",
    ]


def test_nothing_moves_where_the_instances_stay():
    run = small()
    for name, columns in (
        ("transfers", "start_s end_s source target block bytes kind model version path"),
        ("links", "start_s end_s link kind bytes_per_s"),
    ):
        assert getattr(run, name).columns == columns.split()
        assert getattr(run, name).height == 0
    assert run.scaleouts.height == 0
    assert {"model", "version", "needed_s", "detected_s", "first_useful_s", "alone_s"} <= set(run.scaleouts.columns)


def test_the_sentence_and_the_page_are_computed():
    run = small(slo=wb.slo(ttft_s=0.9, tbt_s=1.0), trace=table((0.0, 5, 3), (1.0, 5000, 1)))
    assert run.sentence == (
        "fixed on 1x2-a100-80gb-sxm served 1 of 2 requests by 2 instances of TP 1 and rejected 1 that fit none; the "
        "first token took 1 s on average (P99 1 s), a further one 1 s; TTFT 0.9 s and TBT 1 s were kept for 0.0% by "
        "the definition 'request'."
    ).replace("1x2-a100-80gb-sxm", run.cluster.name)
    assert html.escape(run.sentence) in run._repr_html_()


def test_names_in_a_trace_are_escaped_on_the_page():
    run = small(system=System(name="<script>"))
    assert "<script>" not in run._repr_html_()
    assert "&lt;script&gt;" in run._repr_html_()


def test_own_dispatch_compiled_from_python_and_as_a_cfunc():
    def last(places, outstanding, tokens, draw, turn):
        return places.size - 1

    from workbench.serving.policy.functions import SIGNATURE

    for function in (last, numba.cfunc(SIGNATURE)(last)):
        run = small(policies={"dispatch": function})
        assert run.requests["prefill_instance"].to_list() == [1] * 4
        assert "dispatch by" in run.sentence


def wordy(places, outstanding, tokens, draw, turn):
    """Least outstanding, in words that numba does not speak."""
    busy = {f"place {place}": int(count) for place, count in zip(places, outstanding, strict=True)}
    return list(busy).index(min(busy, key=busy.get))


def test_own_dispatch_that_does_not_compile_runs_on_simpy_and_says_so():
    trace = wb.trace(CODE).requests.head(200)
    run = small(policies={"dispatch": wordy}, trace=trace, step="roofline", kv_tokens=None)
    assert run.backend == "simpy"
    (note,) = run.notes
    assert note.startswith("SimPy serves, because the dispatch function wordy does not compile: ")
    named = small(policies={"dispatch": "least-outstanding"}, trace=trace, step="roofline", kv_tokens=None)
    assert run.requests.equals(named.requests)


def test_own_dispatch_is_asked_the_same_by_both_engines():
    """All that it is told goes into the choice: places, outstanding, tokens, draws and turn."""

    def mixed(places, outstanding, tokens, draw, turn):
        total = 7 * turn + int(100 * draw[0])
        for k in range(places.size):
            total += places[k] * 3 + outstanding[k] * 5 + tokens[k]
        return total % places.size

    given = {"cluster": gpus(5), "trace": wb.trace(CODE).requests.head(300), "step": "roofline", "kv_tokens": None}
    one, other = (small(policies={"dispatch": mixed}, backend=name, **given) for name in ("compiled", "simpy"))
    assert (one.backend, other.backend) == ("compiled", "simpy")
    assert one.notes == other.notes == ()
    assert one.requests.equals(other.requests)


def test_own_dispatch_that_cannot_be_is_refused():
    from workbench.serving.policy.functions import SIGNATURE

    def writes(places, outstanding, tokens, draw, turn):
        places[0] = 99
        return 0

    for wrong in (
        lambda places, outstanding, tokens, draw, turn: 7,
        lambda places, outstanding, tokens, draw, turn: 0.5,
        lambda places, outstanding, tokens, draw, turn: np.nan,
        lambda places, outstanding, tokens, draw, turn: 1 // turn,
        lambda places, outstanding, tokens, draw, turn: tokens[places.size],
    ):
        with pytest.raises(UserError, match="failed, or returned a number that is no position"):
            small(policies={"dispatch": wrong})
    whole = small(policies={"dispatch": lambda places, outstanding, tokens, draw, turn: 0.0})
    assert (whole.backend, whole.notes) == ("compiled", ())
    assert whole.requests.equals(small(policies={"dispatch": "first-free"}).requests)
    asked = small(policies={"dispatch": writes})
    assert "SimPy serves, because the dispatch function writes does not compile" in asked.notes[0]
    for wrong in (7, -1, 0.5, None):
        with pytest.raises(UserError, match=r"returned|failed"):
            small(policies={"dispatch": lambda *told, k=wrong: k}, backend="simpy")
    with pytest.raises(UserError, match="failed with ZeroDivisionError"):
        small(policies={"dispatch": lambda *told: 1 // 0}, backend="simpy")
    with pytest.raises(InputError, match="field 'dispatch': is 3"):
        small(policies={"dispatch": 3})
    first = numba.cfunc(SIGNATURE)(lambda places, outstanding, tokens, draw, turn: 0)
    with pytest.raises(InputError, match="is machine code"):
        small(policies={"dispatch": first}, backend="simpy")


@pytest.mark.parametrize(
    ("options", "near"),
    [
        ({"policies": {"dispatchh": "random"}}, "near names: dispatch"),
        ({"policies": {"dispatch": "randm"}}, "near names: random"),
        ({"backend": "simpi"}, "near names: simpy"),
        ({"cluster": "blitzscale"}, "near names: blitzscale"),
        ({"models": "lama-3-8b"}, "near names: llama-3-8b"),
        ({"slo": "aegeon"}, "near names: aegaeon"),
        ({"step": "rooflin", "kv_tokens": None}, "near names: roofline"),
    ],
)
def test_unknown_names_list_near_ones(options, near):
    with pytest.raises(UnknownName, match=near):
        small(**options)


def test_a_model_for_each_name_in_the_trace():
    trace = table((0.0, 10, 2), (1.0, 10, 2), model=pl.Series(["small", "large"]))
    run = small(trace=trace, models={"small": "llama-3-8b", "large": "qwen2.5-14b"}, kv_tokens=None)
    assert {group.model: group.count for group in run.scenario.groups} == {"small": 1, "large": 1}
    rooms = {group.model: group.kv_tokens for group in run.scenario.groups}
    for name, model in run.models.items():  # 0.9 x 80 GB less the weights, over the KV of a token
        room = 0.9 * float(run.cluster.accelerator.memory_bytes) - model.weight_bytes
        assert rooms[name] == int(room // model.kv_bytes_per_token)
    with pytest.raises(UserError, match="asks for large, for which no model is given"):
        small(trace=trace, models={"small": "llama-3-8b"})


def test_notes_say_what_plays_no_part():
    hashed = table((0.0, 10, 2), prefix_hashes=pl.Series([[1]]))
    (note,) = small(trace=hashed).notes
    assert "no prefix cache" in note
    keeping = System(name="keeping", engine=Engine(prefix_cache_tokens=64, prefix_block_tokens=8))
    assert small(trace=hashed, system=keeping).notes == ()
    (note,) = small(deployment=wb.deployment(prefill=(1, 7), decode=(1, 7))).notes
    assert "bounds of the deployment play no part" in note
    crowd = table(*((0.01 * k, 5, 9) for k in range(9)))
    assert any("bring work for" in note for note in small(trace=crowd, system=SLOW).notes)


def test_one_server_is_first_come_first_served():
    """Services of 2, 1 and 1 s that come at 0, 0.5 and 4: waits 0, 1.5 and 0."""
    run = wb.simulate(
        SERVER, cluster=gpus(1), trace=table((0, 2_000_000, 1), (0.5, 1_000_000, 1), (4, 1_000_000, 1)), **SERVED
    )
    assert run.requests["finish_s"].to_list() == pytest.approx([2, 3, 5], abs=1e-9)


def test_a_fixed_batch_waits_for_its_slowest():
    batches = System(name="batches", engine=Engine(slots=2, budget=MUCH, chunk=MUCH, reserve=True, whole=True))
    run = small(system=batches, cluster=gpus(1), trace=table((0, 1, 1), (0, 1, 3), (0.5, 1, 1)), policies=None)
    assert run.requests["finish_s"].to_list() == [1.0, 3.0, 4.0]
