"""A trace on instances: alone by hand, never faster among others, and both engines alike."""

from importlib import import_module

import polars as pl
import pytest

import workbench as wb
from workbench.errors import UserError
from workbench.latency import step_time

LIKE = "azure-code-2023-like"


def run(*backends, **parameters):
    return wb.experiment("serving/replay").run(backends, **{"trace": LIKE, "quick": True} | parameters)


def test_a_request_alone_takes_its_own_steps(tmp_path):
    """A prompt of 3,000 tokens in chunks of 2,048 and 952, and nine further tokens; the fit is within 15 %."""
    path = tmp_path / "one.csv"
    path.write_text("arrival_s,prompt_tokens,output_tokens\n" + "".join(f"{9 * k},3000,10\n" for k in range(5)))
    found = run("analytic", "compiled", trace=str(path), quick=False).tables["times"]
    step = step_time("llama-3-8b", "h100-80gb-sxm")
    ttft = float(step.prefill_s(2048)) + float(step.prefill_s(952, 2048))
    for backend in ("analytic", "compiled"):
        part = found.filter((pl.col("backend") == backend) & (pl.col("share") == 0.5))
        seconds = dict(part.select("what", "seconds").rows())
        assert seconds["TTFT"] == pytest.approx(ttft, rel=0.15)
        assert seconds["TPOT"] == pytest.approx(float(step.decode_s(1, 3005)), rel=0.15)


@pytest.mark.parametrize("instances", [1, 4])
def test_among_others_no_quantile_is_shorter_than_alone(instances):
    times = run("analytic", "compiled", instances=instances, speed=4.0).tables["times"]
    wide = times.pivot(on="backend", index=["what", "share"], values="seconds")
    assert (wide["compiled"] >= wide["analytic"] * (1 - 1e-9)).all()


def test_more_instances_keep_more_promises_and_work_less():
    kept = [run("compiled", instances=count, speed=20.0).tables["kept"].row(0, named=True) for count in (1, 2, 8)]
    assert kept[0]["both_kept"] < kept[1]["both_kept"] < kept[2]["both_kept"]
    assert kept[0]["active_share"] > kept[1]["active_share"] > kept[2]["active_share"]


def test_both_engines_give_the_same_times():
    result = run("compiled", "simpy", instances=2, speed=8.0, dispatch="two-choices")
    assert result.agreement()["difference"].to_list() == [0.0]
    kept = result.tables["kept"].drop("backend").rows()
    assert kept[0] == kept[1]


def test_times_come_from_the_simulator(monkeypatch):
    """One in which every first and last token comes an hour later, and every token after the first takes no longer."""
    module = import_module("workbench.catalogue.serving.replay")
    true, before = module.simulate, run("simpy").tables["times"]
    later = ("first_token_s", "finish_s")
    monkeypatch.setattr(
        module, "simulate",
        lambda lowered: (out := true(lowered))._replace(**{name: getattr(out, name) + 3600.0 for name in later}),
    )  # fmt: skip
    after = run("simpy").tables["times"]
    first = pl.col("what") == "TTFT"
    assert (after.filter(first)["seconds"] - before.filter(first)["seconds"]).to_list() == pytest.approx([3600.0] * 52)
    assert after.filter(~first)["seconds"].to_list() == pytest.approx(before.filter(~first)["seconds"].to_list())


def test_a_model_that_leaves_no_room_is_refused():
    with pytest.raises(UserError, match="does not fit"):
        run("analytic", model="qwen2.5-72b")


def test_the_figure_has_both_panels_and_the_sentence_counts():
    result = run("analytic", "compiled", instances=1)
    assert result.sentence.startswith("1 instance keeps both promises for ")
    assert len(result.figure().data) == 4
    assert len(result.figure("tpot").data) == 2


def test_a_promise_far_from_the_times_is_among_the_ticks():
    """Tokens come after 7 ms each; of an axis that ends at a promise of 0.1 s, ticks are spread over the whole."""
    axis = run("analytic", tbt_s=0.1).figure().layout.xaxis2
    assert 10 ** axis.range[0] < 0.0065 < 0.1 < 10 ** axis.range[1]
    assert max(axis.tickvals) == 0.1
    assert len(axis.tickvals) <= 5
