"""Inputs that break other simulators: zero tokens, first arrival at 0, overlong requests, empty and broken traces."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operating_cases import SECOND, gpus, quarters, table

import workbench as wb
from workbench.errors import InputError, UserError
from workbench.serving import Failure, LinkFailure, StepForm, Update

BACKENDS = ("compiled", "simpy")


def serve(trace, backend="compiled", **options):
    given = {"cluster": gpus(2), "models": "llama-3-8b", "step": SECOND, "kv_tokens": 256, "backend": backend}
    return wb.simulate("fixed", trace=trace, **given | options)


@pytest.mark.parametrize("backend", BACKENDS)
def test_zero_output_tokens_compute_the_prompt_and_give_none(backend):
    run = serve(table((0.0, 8, 0), (0.0, 8, 1)), backend)
    assert run.requests["status"].to_list() == ["done", "done"]
    assert run.requests["finish_s"].to_list() == [1.0, 1.0]
    assert np.isnan(run.requests["first_token_s"][0])
    assert run.token_times()["request_id"].to_list() == [1]
    assert run.metrics(wb.slo(ttft_s=1, tbt_s=1))["attainment"] == 1.0  # of the one that asked for a token


@pytest.mark.parametrize("backend", BACKENDS)
def test_zero_input_tokens_compute_a_start_token(backend):
    run = serve(table((0.0, 0, 2)), backend)
    assert run.requests["finish_s"].to_list() == [2.0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_request_longer_than_the_memory_is_rejected_and_holds_up_nobody(backend):
    run = serve(table((0.0, 100_000, 5), (0.0, 250, 7), (0.0, 200, 3)), backend)
    assert run.requests["status"].to_list() == ["rejected", "rejected", "done"]  # 257 tokens are more than 256
    assert "rejected 2 that fit none" in run.sentence
    found = run.metrics()
    assert (found["arrived"], found["done"], found["rejected"], found["inside"]) == (3, 1, 2, 0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_first_arrival_at_zero_one_request_and_many_at_once(backend):
    assert serve(table((0.0, 8, 1)), backend).requests["finish_s"].to_list() == [1.0]
    many = serve(table(*[(0.0, 8, 1)] * 20), backend)
    assert set(many.requests["finish_s"]) == {1.0}
    assert many.metrics()["requests_per_s"] == 20


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_empty_trace_is_a_run_in_which_nothing_happens(backend, tmp_path):
    run = serve(table().cast({"arrival_s": pl.Float64, "prompt_tokens": pl.Int64, "output_tokens": pl.Int64}), backend)
    assert run.sentence.endswith("no requests came.")
    for name in ("requests", "iterations", "segments", "timeline"):
        assert getattr(run, name).height == 0
    assert run.metrics(wb.slo(ttft_s=1, tbt_s=1))["done"] == 0
    assert "no requests came" in run._repr_html_()
    assert wb.load(run.save(tmp_path / "run")).requests.equals(run.requests)
    with pytest.raises(UserError, match="nothing to export"):
        run.trace  # noqa: B018


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(1.0, 8, 1), (0.5, 8, 1)], "row 2, field 'arrival_s': comes before the one above it"),
        ([(-1.0, 8, 1)], "row 1, field 'arrival_s': is -1"),
        ([(0.0, 8, 1), (float("nan"), 8, 1)], "row 2, field 'arrival_s': is nan"),
        ([(float("inf"), 8, 1)], "row 1, field 'arrival_s': is inf"),
        ([(0.0, -8, 1)], "row 1, field 'prompt_tokens': is -8"),
        ([(0.0, 8, 1), (1.0, 8, None)], "row 2, field 'output_tokens': is nan"),
        ([(0.0, 8.5, 1)], "row 1, field 'prompt_tokens': is 8.5"),
        ([(0.0, 2**31, 2**31)], "at most 2,147,483,647 tokens"),
    ],
)
def test_broken_cells_are_refused_with_row_and_field(rows, words):
    with pytest.raises(InputError) as caught:
        serve(table(*rows))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (table((0.0, 8, 1)).drop("output_tokens"), "field 'output_tokens': is missing"),
        (table((0.0, 8, 1)).rename({"arrival_s": "TIMESTAMP"}), "field 'arrival_s': is missing"),
        (table((0.0, 8, 1), (1.0, 8, 1), request_id=pl.Series([7, 7])), "holds 7 twice"),
        (table((0.0, 8, 1)).with_columns(arrival_s=pl.lit("soon")), "field 'arrival_s': holds String"),
        (17, "field 'trace': is 17"),
    ],
)
def test_tables_that_are_none_are_refused(trace, words):
    with pytest.raises(UserError, match=words):
        serve(trace)


def test_a_raw_azure_file_is_read_as_it_comes(tmp_path):
    path = tmp_path / "AzureLLMInferenceTrace_code.csv"
    path.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,100,2\n2023-11-16 18:17:04.0319600,90,1\n"
    )
    run = serve(path)
    assert run.requests["status"].to_list() == ["done", "done"]


@pytest.mark.parametrize("system", ["fixed", "allcache", "aegaeon"])
@pytest.mark.parametrize("dtype", [pl.Null, pl.String, pl.List(pl.Int64), pl.Datetime])
def test_a_table_without_rows_may_hold_columns_of_any_kind(system, dtype):
    """`pl.DataFrame({"arrival_s": [], ...})` has columns of no type at all."""
    columns = ("arrival_s", "prompt_tokens", "output_tokens")
    none = pl.DataFrame({name: [] for name in columns}, schema=dict.fromkeys(columns, dtype))
    run = wb.simulate(system, cluster="aegaeon-h800", models="llama-3-8b", trace=none)
    assert run.sentence.endswith("no requests came.")


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.integers(0, 300), st.integers(0, 20)),
        min_size=1,
        max_size=25,
    ),
    st.sampled_from([1.0, 3.0, float("inf")]),
)
def test_requests_and_tokens_are_conserved(rows, until_s):
    run = serve(table(*sorted(rows, key=lambda row: row[0])), until_s=until_s)
    requests = run.requests
    counts = dict(requests["status"].value_counts().rows())
    assert sum(counts.values()) == len(rows)
    assert set(counts) <= {"done", "rejected", "inside"}
    found = run.metrics()
    assert found["arrived"] == found["done"] + found["rejected"] + found["inside"]
    made = dict(run.token_times().group_by("request_id").len().rows())
    for row in requests.filter(pl.col("status") == "done").to_dicts():
        assert made.get(row["request_id"], 0) == row["output_tokens"]


def test_the_same_seed_twice_is_the_same_run_and_another_is_not():
    trace = wb.trace("azure-code-2023-like").requests.head(200)
    runs = [serve(trace, kv_tokens=10_000, seed=seed, policies={"dispatch": "random"}) for seed in (1, 1, 2)]
    assert runs[0].requests.equals(runs[1].requests)
    assert not runs[0].requests.equals(runs[2].requests)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"until_s": -1.0}, "field 'until_s': is -1.0"),
        ({"until_s": float("nan")}, "field 'until_s': is nan"),
        ({"seed": -1}, "field 'seed': is -1"),
        ({"kv_tokens": 0}, "leaves 0 tokens"),
        ({"deployment": "tp=2"}, "field 'deployment': is 'tp=2'"),
        ({"slo": 1.0}, "field 'slo': is 1.0"),
    ],
)
def test_settings_that_cannot_be_are_refused(options, words):
    with pytest.raises(UserError, match=words):
        serve(table((0.0, 8, 1)), **options)


@pytest.mark.parametrize("system", ["fixed", "allcache", "aegaeon", "muxserve"])
def test_settings_of_the_wrong_kind_are_refused_by_every_kind_of_system(system):
    given = {"cluster": "aegaeon-h800", "models": "llama-3-8b", "trace": table((0.0, 8, 1))}
    for field, wrong in {
        "kv_tokens": ("many", 100.5, float("inf"), 2**70, -3, True),
        "failures": (None, 5, "all", {}), "updates": (None, 5, iter(())), "link_failures": (None, 5),
        "slo": (5,), "deployment": ("tp=2", 2), "policies": (5, "admission"), "until_s": ("end", None, True),
    }.items():  # fmt: skip
        for value in wrong:
            with pytest.raises(UserError, match=f"field '{field}': is "):
                wb.simulate(system, **given | {field: value})
    for tokens in (0, 15):  # a block has 16
        with pytest.raises(UserError, match="kv_tokens"):
            wb.simulate(system, **given | {"kv_tokens": tokens})
    nameless = table((0.0, 8, 1), (1.0, 8, 1)).with_columns(model=pl.Series(["a", None]))
    with pytest.raises(InputError, match="row 2, field 'model': is empty"):
        wb.simulate(system, **given | {"trace": nameless})


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (lambda: {"failures": [Failure(time_s=9, instance=3), Failure(time_s=1, instance=4)]},
         "row 2, field 'failures.instance': names instance 4, but there are 0 to 3; name one of them"),
        (lambda: {"failures": [Failure(time_s=5, instance=1), Failure(time_s=2, instance=1, back_s=6)]},
         "row 1, field 'failures': lets instance 1 fail at 5 s, while it is down from 2 s to 6 s; let it come back"),
        (lambda: {"failures": [Failure(time_s=5, instance=1)] * 2}, "while it is down from 5 s on"),
        (lambda: {"failures": [Failure(time_s=5, instance=1, back_s=5)]},
         "field 'Failure': fails at 5 s and is back at 5 s; let it come back later"),
        (lambda: {"failures": [Failure(time_s=5, instance=1, back_s=float("nan"))]}, "is back at nan s"),
        (lambda: {"link_failures": [LinkFailure(time_s=5, instance=1, back_s=4)]}, "is back at 4 s"),
        (lambda: {"link_failures": [LinkFailure(time_s=5, host=1, back_s=6, way="in")]}, "give way 'out'"),
        (lambda: {"link_failures": [LinkFailure(time_s=5, host=2, back_s=6)]}, "names host 2, but there are 0 to 1"),
        (lambda: {"link_failures": [LinkFailure(time_s=t, host=1, back_s=t + 2) for t in (5, 6)]},
         "lets the way out of memory of host 1 fail at 6 s, while it is down from 5 s to 7 s"),
        (lambda: {"updates": [Update(time_s=5, model="default")] * 2},
         "row 2, field 'updates': gives model 'default' new weights twice at 5 s; give them once"),
    ],
)  # fmt: skip
def test_what_cannot_happen_is_refused_by_its_row(happens, words):
    with pytest.raises(InputError) as caught:
        wb.simulate("blitzscale", trace=table((0.0, 8, 1)), cluster=quarters(2, 2), models="llama-3-8b", **happens())
    assert words in str(caught.value)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "rows",
    [
        [(0.0, 8, 3), (1e4, 8, 3)],  # steps of 1e-14 s at 10,000 s, where the next number is 2e-12 s away
        [(0.0, 8, 1), (1e4, 8, 1)],  # the same, one step a request
        [(0.0, 8, 3), (1e4, 8, 0), (2e4, 8, 2)],
    ],
)
def test_steps_that_do_not_move_the_clock_are_refused(rows, backend):
    with pytest.raises(UserError, match=r"too short to be told from none 10000 s after the first arrival .*1\.8e-12"):
        serve(table(*rows), backend, step=StepForm(compute=(1e-14, 0.0, 0.0, 0.0, 0.0)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_steps_that_just_move_the_clock_are_served(backend):
    run = serve(table((0.0, 8, 3), (1e4, 8, 3)), backend, step=StepForm(compute=(2e-12, 0.0, 0.0, 0.0, 0.0)))
    assert set(run.requests["status"]) == {"done"}
    assert (np.diff(run.iterations.filter(instance=0)["end_s"].to_numpy()) > 0).all()


def test_requests_longer_than_the_models_context_are_served_and_counted():
    """llama-3-8b was made for 8192 tokens; the first request has just as many."""
    run = serve(table((0.0, 8000, 192), (0.0, 8000, 193), (0.0, 9000, 1)), kv_tokens=2**16)
    assert set(run.requests["status"]) == {"done"}
    note = "Requests of default that take more than the 8,192 tokens that llama-3-8b was made for: 2; "
    assert [one.startswith(note) for one in run.notes].count(True) == 1
    assert not any("was made for" in one for one in serve(table((0.0, 8000, 192)), kv_tokens=2**16).notes)
