"""simulate, compare, capacity and plan from the command line: answers, exit codes, one sentence on stderr."""

import pytest

import workbench as wb
from workbench.cli import main
from workbench.serving import Failure, LinkFailure, Update

COMMON = ["--trace", "azure-code-2023-like", "--cluster", "dgx-h100", "--model", "llama-3-8b"]
PROMISE = ["--ttft", "1", "--tbt", "0.1"]


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def trace(tmp_path):
    """Two hundred requests, one each tenth of a second."""
    path = tmp_path / "mine.csv"
    rows = "".join(f"{k / 10},500,20\n" for k in range(200))
    path.write_text("arrival_s,prompt_tokens,output_tokens\n" + rows)
    return path


def test_simulate_prints_saves_and_traces(capsys, tmp_path, trace):
    arguments = ["--trace", trace, "--cluster", "dgx-h100", "--model", "llama-3-8b", "--hosts", 1]
    code, out, err = run(
        capsys, "simulate", "fixed@half", *arguments, *PROMISE, "--policy", "dispatch=random", "--out",
        tmp_path / "run", "--chrome-trace", tmp_path / "run.json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    saved = wb.load(tmp_path / "run")
    assert out.startswith(saved.sentence)
    assert "by 4 instances of TP 1" in out
    assert "ttft_p99_s" in out
    assert (tmp_path / "run.json").is_file()


def test_saved_runs_are_compared(capsys, trace, tmp_path):
    """Instances of four GPUs answer sooner, by what the runs' own means differ; another trace's run is refused."""
    arguments = ["--trace", trace, "--cluster", "dgx-h100", "--model", "llama-3-8b", "--hosts", 1]
    for tp in (1, 4):
        assert run(capsys, "simulate", "fixed", *arguments, "--tp", tp, "--out", tmp_path / str(tp))[0] == 0
    one, four = (wb.load(tmp_path / str(tp)).requests["finish_s"] for tp in (1, 4))
    code, out, err = run(capsys, "compare", tmp_path / "1", tmp_path / "4", *PROMISE)
    assert (code, err) == (0, "")
    later_s = (four - one).mean()
    assert later_s < 0
    assert out.startswith("from fixed to fixed the same requests change ttft_s by -")
    assert f"e2e_s by {later_s:+.3g} " in out
    assert "attainment" in out
    trace.write_text(trace.read_text().replace(",500,", ",501,"))
    assert run(capsys, "simulate", "fixed", *arguments, "--out", tmp_path / "other")[0] == 0
    code, out, err = run(capsys, "compare", tmp_path / "1", tmp_path / "other")
    assert (code, out) == (2, "")
    assert "served other requests" in err
    code, _, err = run(capsys, "compare", tmp_path / "1", tmp_path / "nothing")
    assert code == 2
    assert err.count("\n") == 1
    assert "nothing holds no saved run" in err


def test_both_backends_print_the_same(capsys, trace):
    arguments = ["--trace", trace, "--cluster", "dgx-h100", "--model", "llama-3-8b", "--tp", 2]
    answers = [run(capsys, "simulate", "fixed", *arguments, "--backend", name)[1] for name in ("compiled", "simpy")]
    assert answers[0] == answers[1]


def test_a_system_that_scales_takes_choices_bounds_and_a_rule(capsys, trace):
    arguments = ["--trace", trace, "--cluster", "blitzscale-a", "--model", "llama-3-8b", *PROMISE]
    code, out, err = run(
        capsys, "simulate", "serverlessllm", *arguments, "--set", "variant=artifact", "--set", "limit=none", "--set",
        "tick_s=0.5", "--instances", "2:5", "--policy", "autoscaler=concurrency:requests=0.25,down_ticks=4",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "by up to 5 instances of TP 1" in out
    assert "Each model has 2 to 5 instances, by the deployment." in out
    assert "weight_bandwidth_share" in out
    code, out, err = run(capsys, "plan", *arguments, "--system", "allcache", "--tp", 1, "--instances", "1:4")
    assert (code, err) == (0, "")
    assert "peak_gpus" in out
    code, out, err = run(capsys, "capacity", "ideal", *arguments, "--attainment", 0.5)
    assert (code, err) == (0, "")
    assert "GPU seconds a request" in out


@pytest.mark.parametrize("name", ["blitzscale", "distserve-full"])
def test_bounds_are_those_of_each_kind_where_prompts_and_decoding_are_apart(capsys, trace, tmp_path, name):
    """The same answer as in Python with two to three instances of both kinds."""
    arguments = ["--trace", trace, "--cluster", "blitzscale-a", "--model", "llama-3-8b", *PROMISE]
    none = ["--set", "promise_s=none", "--set", "name=" + name]
    code, out, err = run(capsys, "simulate", name, *arguments, *none, "--instances", "2:3", "--out", tmp_path / "run")
    assert (code, err) == (0, "")
    other = wb.simulate(
        name, trace=trace, cluster="blitzscale-a", models="llama-3-8b", slo=wb.slo(ttft_s=1, tbt_s=0.1),
        deployment=wb.deployment(prefill=(2, 3), decode=(2, 3)),
    )  # fmt: skip
    assert out.startswith(other.sentence)
    assert wb.load(tmp_path / "run").requests.equals(other.requests)
    code, out, _ = run(capsys, "capacity", name, *arguments, "--instances", "1:1", "--attainment", 0.5)
    assert (code, out.startswith(f"{name} bears ")) == (0, True)


def test_failures_and_updates_are_those_of_python(capsys, trace, tmp_path):
    """A host is its eight instances, a link both of its ways; the model has no name in the trace, so none is needed."""
    arguments = ["--trace", trace, "--cluster", "blitzscale-a", "--model", "llama-3-8b", *PROMISE]
    happens = ["--fail", "host:1@5-9", "--fail", "instance:0@6.5", "--fail", "link:2@3-4", "--fail", "memory:0@1-2"]
    code, out, err = run(
        capsys, "simulate", "blitzscale", *arguments, *happens, "--update", 7, "--set", "stale_s=2", "--out",
        tmp_path / "run",
    )  # fmt: skip
    assert (code, err) == (0, "")
    same = wb.simulate(
        wb.system("blitzscale", stale_s=2.0), trace=trace, cluster="blitzscale-a", models="llama-3-8b",
        slo=wb.slo(ttft_s=1, tbt_s=0.1), deployment=wb.deployment(colocated=False),
        failures=[*(Failure(time_s=5, instance=k, back_s=9) for k in range(8, 16)), Failure(time_s=6.5, instance=0)],
        link_failures=[
            *(LinkFailure(time_s=3, instance=2, back_s=4, way=way) for way in ("in", "out")),
            LinkFailure(time_s=1, host=0, back_s=2),
        ],
        updates=[Update(time_s=7, model="default")],
    )  # fmt: skip
    assert out.startswith(same.sentence)
    saved = wb.load(tmp_path / "run")
    assert saved.requests.equals(same.requests)
    assert saved.timeline.equals(same.timeline)
    assert set(saved.requests["weight_version"]) == {0, 1}
    code, out, _ = run(capsys, "capacity", "allcache", *arguments, "--fail", "host:0@5", "--attainment", 0.5)
    assert (code, out.startswith("allcache bears ")) == (0, True)


def test_a_host_is_those_of_its_instances_that_there_are(capsys, trace, tmp_path):
    """Twelve instances on hosts of eight: the second host has four."""
    arguments = ["--trace", trace, "--cluster", "blitzscale-a", "--model", "llama-3-8b", "--set", "provisioning=12"]
    out = tmp_path / "run"
    assert run(capsys, "simulate", "fixed", *arguments, "--fail", "host:1@5", "--out", out)[0] == 0
    failed = wb.load(out).timeline.filter(kind="failure").select("time_s", "value")
    assert failed.rows() == [(5.0, 8.0), (5.0, 9.0), (5.0, 10.0), (5.0, 11.0)]


def test_capacity_and_plan_answer(capsys, trace):
    arguments = ["--trace", trace, "--cluster", "dgx-h100", "--model", "llama-3-8b", *PROMISE]
    code, out, _ = run(capsys, "capacity", "dedicated", *arguments, "--attainment", 0.95)
    assert code == 0
    assert out.startswith("dedicated bears ")
    assert "are kept for 95%" in out
    code, out, _ = run(capsys, "plan", *arguments, "--hosts", 1)
    assert code == 0
    assert "Smallest deployments:" in out
    code, out, _ = run(capsys, "plan", *arguments, "--hosts", 1, "--tp", 1, "--system", "distserve-full")
    assert code == 0
    assert "(1 for prompts and 1 that decode, 2 accelerators" in out


def test_a_plan_outlives_the_host_that_fails(capsys, trace):
    """One instance would do, and two do while the first host is gone only if the ninth is there too: on another."""
    arguments = ["--trace", trace, "--cluster", "dgx-h100", "--model", "llama-3-8b", *PROMISE, "--tp", 1]
    code, out, _ = run(capsys, "plan", *arguments)
    assert (code, "fixed for default takes 1 instance of TP 1 " in out) == (0, True)
    code, out, _ = run(capsys, "plan", *arguments, "--fail", "host:0@5")
    assert (code, "fixed for default takes 9 instances of TP 1 " in out) == (0, True)
    assert "; failures binds" in out
    code, out, _ = run(capsys, "plan", *arguments, "--fail", "host:1@5", "--fail", "instance:3@5-9")
    assert (code, "fixed for default takes 1 instance of TP 1 " in out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["simulate", "blendserve", *COMMON], "System 'blendserve' is not built yet; choose one of fixed"),
        (["simulate", "fixd", *COMMON], "There is no system named 'fixd'; near names: fixed"),
        (["simulate", "fixed", *COMMON, "--tp", 3], "TP 3 does not divide"),
        (["simulate", "fixed", *COMMON, "--backend", "torch"], "There is no backend named 'torch'"),
        (["simulate", "fixed", *COMMON, "--policy", "random"], "--policy takes NAME=VALUE, got 'random'"),
        (["simulate", "fixed", *COMMON, "--policy", "dispatch=rnd"], "There is no dispatch policy named 'rnd'"),
        (["simulate", "fixed", *COMMON, "--model", "qwen2.5-7b"], "--model is given several times"),
        (["simulate", "fixed", *COMMON, "--model", "a=qwen2.5-7b"], "--model is given with and without NAME="),
        (["simulate", "fixed", *COMMON, "--ttft", "1"], "tbt_s"),
        (["simulate", "fixed", *COMMON, "--out", "/dev/null/run"], "/dev/null is not a folder"),
        (["simulate", "fixed", *COMMON[:-1], "deepseek-v3"], "experts"),
        (
            ["capacity", "serverlessllm@aegaeon", *COMMON, *PROMISE],
            "System 'serverlessllm@aegaeon' is a pool of models",
        ),
        (["simulate", "allcache", *COMMON, "--set", "tick=1"], "field 'System.tick': is not a known field"),
        (["simulate", "allcache", *COMMON, "--set", "tick_s"], "--set takes NAME=VALUE"),
        (["simulate", "allcache", *COMMON, "--set", "tick_s=x"], "tick_s"),
        (["simulate", "allcache", *COMMON, "--instances", "4"], "--instances takes LEAST:MOST, as in 1:8, got '4'"),
        (["simulate", "allcache", *COMMON, "--instances", "1:²"], "--instances takes LEAST:MOST, as in 1:8, got '1:²'"),
        (["simulate", "blitzscale", *COMMON, "--set", "promise_s=-1"], "field 'System.promise_s': is '-1'"),
        (["simulate", "allcache", *COMMON, "--instances", "4:1"], "more at least than at most"),
        (["simulate", "nccl", *COMMON], "reads weights from SSD where it finds them nowhere else, but dgx-h100 states"),
        (["simulate", "ideal", *COMMON, "--policy", "autoscaler=cue"], "There is no autoscaling rule named 'cue'"),
        (["capacity", "fixed", *COMMON], "A promise is needed"),
        (["capacity", "fixed", *COMMON, *PROMISE, "--attainment", 1.5], "field 'attainment': is 1.5"),
        (["plan", *COMMON, *PROMISE, "--system", "aegaeon"], "System 'aegaeon' is a pool of models"),
        (["plan", *COMMON, *PROMISE, "--fail", "instance:0@5"], "--fail instance:0@5 counts instances of one size"),
        (["plan", *COMMON, *PROMISE, "--tp", "1", "--fail", "host:2@5"], "--fail host:2@5 names host 2, but dgx-h100"),
        (["plan", *COMMON, *PROMISE, "--tp", "1", "--fail", "instance:16@5"], "--fail: names instance 16, but there"),
        (["plan", *COMMON, *PROMISE, "--update", "5"], "--update: updates need a pool"),
        (
            ["plan", *COMMON[:2], "--cluster", "aegaeon-a10", "--model", "llama-3-70b", *PROMISE],
            "GB of weights / TP 4 = 35.28 GB each, but",
        ),
        (["plan", "--trace", "no.csv", *COMMON[2:], *PROMISE], "no.csv"),
        (
            ["plan", *COMMON, *PROMISE, "--system", "blitzscale", "--instances", "9:9", "--tp", 1],
            "instances for prompts and 9 that",
        ),
        (["simulate", "fixed", *COMMON, "--fail", "gpu:1@5"], "--fail takes WHAT:N@FROM or WHAT:N@FROM-TO"),
        (["simulate", "fixed", *COMMON, "--fail", "link:1@5"], "write link:1@5-SECONDS"),
        (["simulate", "fixed", *COMMON, "--fail", "instance:1@5-4"], "--fail instance:1@5-4 ends before it begins"),
        (["simulate", "fixed", *COMMON, "--fail", "host:9@5"], "--fail host:9@5 names host 9"),
        (["simulate", "fixed", *COMMON, "--fail", "instance:99@5"], "--fail: names instance 99, but there are 0 to 15"),
        (["simulate", "fixed@half", *COMMON, "--fail", "host:1@5"], "host:1@5 names a host on which nothing runs"),
        (["simulate", "fixed", *COMMON, "--fail", "host:0@5", "--fail", "instance:2@7"], "--fail: lets instance 2 "),
        (["simulate", "allcache", *COMMON, "--update", "5", "--update", "5"], "--update: gives model 'default' new"),
        (["simulate", "fixed", *COMMON, "--fail", "link:0@5-6"], "--fail: has failures of links, but no network"),
        (["simulate", "fixed", *COMMON, "--update", "5"], "--update: updates need a pool"),
        (["simulate", "fixed", *COMMON, "--update", "chat"], "--update takes NAME@SECONDS, as in chat@60, got 'chat'"),
        (["simulate", "aegaeon", *COMMON, "--fail", "instance:0@5"], "--fail: names instances that fail"),
        (["capacity", "allcache", *COMMON, *PROMISE, "--update", "x@5"], "--update: updates name 'x'"),
        (["simulate", "distserve-full", *COMMON], "a deployment with prefill=(least, most)"),
    ],
)
def test_what_the_user_can_mend_is_one_sentence_and_exit_code_2(capsys, arguments, sentence):
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("workbench: ")
    assert sentence in err
    assert err.count("\n") == 1


def test_what_could_not_be_written_is_refused_before_any_work(capsys, tmp_path, monkeypatch):
    """A folder where a file should be, a foreign folder, a name that is too long: exit code 2, and nothing has run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    long = "y" * 300
    for name, why in (("full", "full"), (long, "too long"), ("full/mine.txt/x", "full/mine.txt is not a folder")):
        for command in (
            ["simulate", "fixed", *COMMON, "--out", name], ["simulate", "fixed", *COMMON, "--chrome-trace", name],
            ["sweep", "lambdascale/fig5", "--grid", "nodes=4,8", "--out", name],
            ["trace", "convert", "azure-code-2023-like", name],
            ["trace", "fit", "azure-code-2023-like", "--draw", name],
        ):  # fmt: skip
            code, out, err = run(capsys, *command)
            assert (code, out, err.count("\n")) == (2, "", 1), (command, err)
            assert why in err
    for command in (
        ["grade", long],
        ["grade", tmp_path, "--out", long],
        ["trace", "info", long],
        ["compare", long, long],
    ):
        code, out, err = run(capsys, *command)
        assert (code, out) == (2, "")
        assert "too long for a path" in err
    assert (tmp_path / "full" / "mine.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
