"""Prints how fast the compiled serving engine is; run with `pytest -s tests/benchmarks`.

W2 is 10,000 requests of 512 prompt and 128 output tokens, 40 a second at constant gaps, on 4 instances of an 8B-class
model; W1 is 1,000 of them, 10 a second, on one. DynoSim 1.3.1 (NVIDIA Dynamo's replay, a Rust core) is measured beside
where WORKBENCH_DYNOSIM names the Python of an environment that has it:

    python3.11 -m venv dynosim
    dynosim/bin/pip install --no-deps ai-dynamo-runtime==1.3.1 ai-dynamo==1.3.1
    dynosim/bin/pip install msgspec pydantic uvloop transformers
    WORKBENCH_DYNOSIM=$PWD/dynosim/bin/python make benchmark

Both sides batch continuously with prompts in chunks and paged KV, and give their inner time: requests in memory to
results in memory. DynoSim takes step times from polynomials, hashes prefixes and reports statistics beside. This engine
takes them from two linear rows and keeps the end of every step; percentiles of gaps are timed with it where said.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from scaling_cases import growing, row
from serving_cases import asked
from timing import median_s

from workbench.serving.kernels.serving import serve as serve_arrays
from workbench.serving.model import Group, Lowered, Requests, Scenario, StepForm, engine_named, lower, run_compiled
from workbench.serving.model.checking import checked
from workbench.serving.model.lowered import DONE, Network
from workbench.serving.model.run import gaps
from workbench.serving.model.scaled import EMPTY, UP
from workbench.serving.policy import ROUTES, chooser
from workbench.serving.policy.scalers import CONCURRENCY, NONE
from workbench.workloads import trace

DYNOSIM_REQUESTS_PER_S = 15_700
"""On W2, two cores, measured once; the tests below quote it."""
STEP = StepForm(compute=(6e-3, 40e-6, 0.0, 30e-9, 20e-6))


def load(count, rate_per_s, instances, dispatch="least-outstanding", gaps_s=None, slots=256) -> Lowered:
    group = Group(
        model="8b",
        count=instances,
        step=STEP,
        kv_tokens=320_000,
        engine=engine_named("continuous", chunk=512, slots=slots),
    )
    nobody = pl.DataFrame(schema=dict.fromkeys(("model", "arrival_s", "prompt_tokens", "output_tokens"), pl.Int64))
    lowered = lower(Scenario(groups=(group,), dispatch=dispatch), nobody)
    arrival_s = np.arange(count) / rate_per_s if gaps_s is None else np.cumsum(gaps_s) - gaps_s[0]
    draw = np.random.default_rng(1).random((count, 2))
    requests = Requests(arrival_s, np.full(count, 512), np.full(count, 128), np.zeros(count, int), draw)
    return checked(lowered._replace(requests=requests))


def event_loop(lowered: Lowered):
    """Arrays in, arrays out: what the budgets are for."""
    return serve_arrays(*lowered, models=1)


def test_w2(budget):
    """Budgets: 300,000 requests/s and 30 times DynoSim; with TBT P95 and maximum of every request 235,000 and 15."""
    lowered = load(10_000, 40, 4)
    out = run_compiled(lowered)
    assert (out.status == DONE).all()
    bare = 10_000 / median_s(lambda: event_loop(lowered))
    whole = 10_000 / median_s(lambda: gaps(event_loop(lowered), [0.95]))
    poisson = load(10_000, 40, 4, gaps_s=np.random.default_rng(1).exponential(1 / 40, 10_000))
    lifelike = 10_000 / median_s(lambda: event_loop(poisson))
    steps = out.iteration_at[-1] / 10_000
    for what, rate in (("", bare), (" with TBT P95 and maximum", whole), (" at Poisson arrivals", lifelike)):
        print(f"\nW2{what}: {rate:,.0f} requests/s ({rate / DYNOSIM_REQUESTS_PER_S:.0f}x DynoSim as quoted)", end="")
    print(f"; {steps:.1f} steps a request")
    budget("W2", bare)
    budget("W2, DynoSim", bare / DYNOSIM_REQUESTS_PER_S, f"DynoSim at {DYNOSIM_REQUESTS_PER_S:,} requests/s, quoted")
    budget("W2, DynoSim, TBT", whole / DYNOSIM_REQUESTS_PER_S, "DynoSim as quoted")


@pytest.fixture
def dynosim() -> str:
    """The Python of DynoSim's environment."""
    if not (python := os.environ.get("WORKBENCH_DYNOSIM")):
        pytest.skip("WORKBENCH_DYNOSIM is not set: it names the Python of an environment with ai-dynamo 1.3.1")
    return python


def dynosim_s(python: str, count: int, rate_per_s: int, instances: int, folder) -> float:
    """The wall time that DynoSim reports for itself; all requests must have been served."""
    report = folder / "report.json"
    command = [
        python, "-m", "dynamo.replay", "--input-tokens", "512", "--output-tokens", "128",
        "--request-count", str(count), "--arrival-interval-ms", str(1000 // rate_per_s),
        "--num-workers", str(instances), "--replay-mode", "offline", "--router-mode", "round_robin",
        "--extra-engine-args", '{"block_size":64}', "--report-json", str(report),
    ]  # fmt: skip
    offline = os.environ | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=offline)
    assert json.loads(report.read_text())["completed_requests"] == count
    return float(re.search(r"Wall Time \(ms\): ([\d.]+)", done.stdout).group(1)) / 1e3


@pytest.mark.parametrize(("name", "count", "rate_per_s", "instances"), [("W1", 1_000, 10, 1), ("W2", 10_000, 40, 4)])
def test_beside_dynosim(dynosim, tmp_path, name, count, rate_per_s, instances, budget):
    """In the same minutes, three rounds in turn; budget on W2: 30 times DynoSim, 15 times with TBT P95 and maximum."""
    lowered = load(count, rate_per_s, instances, "round-robin")
    theirs, bare, whole = [], [], []
    for _ in range(3):
        theirs.append(dynosim_s(dynosim, count, rate_per_s, instances, tmp_path))
        bare.append(median_s(lambda: event_loop(lowered), 5))
        whole.append(median_s(lambda: gaps(event_loop(lowered), [0.95]), 5))
    theirs_s, bare_s, whole_s = (statistics.median(taken) for taken in (theirs, bare, whole))
    print(f"\n{name}: DynoSim 1.3.1 {count / theirs_s:,.0f} requests/s, ours {count / bare_s:,.0f} ", end="")
    print(f"({theirs_s / bare_s:.0f}x), with TBT P95 and maximum {count / whole_s:,.0f} ({theirs_s / whole_s:.0f}x)")
    if name == "W2":
        budget("W2, DynoSim", theirs_s / bare_s, "in the same minutes")
        budget("W2, DynoSim, TBT", theirs_s / whole_s, "in the same minutes")


def test_dispatch_policies_on_w2():
    """No budget: every numbered policy, and one of the user's own through a function pointer."""
    for name in ROUTES:
        lowered = load(10_000, 40, 4, name)
        print(f"\n{name}: {10_000 / median_s(lambda run=lowered: event_loop(run), 5):,.0f} requests/s", end="")
    own = chooser(lambda places, outstanding, tokens, draw, turn: outstanding.argmin())
    lowered = load(10_000, 40, 4)
    taken = median_s(lambda: run_compiled(lowered, own), 5)
    print(f"\none's own: {10_000 / taken:,.0f} requests/s, checks included")
    assert (run_compiled(lowered, own).finish_s == run_compiled(lowered).finish_s).all()


def test_features_on_w2():
    """No budget: ranks, prefix caches, and two instances that prefill for four that decode, over links of 10 GB/s."""
    plain, rng = load(10_000, 40, 4), np.random.default_rng(1)
    requests = plain.requests._replace(rank=rng.integers(3, size=10_000))
    ranked = plain._replace(requests=requests)
    # Each prompt begins with eight blocks of 32 tokens that one of 200 groups has in common; eight are its own.
    shared, own = rng.integers(200, size=10_000)[:, None] * 8 + np.arange(8), 1600 + np.arange(80_000).reshape(-1, 8)
    requests = requests._replace(
        prefix_at=16 * np.arange(10_001), prefix=np.hstack([shared, own]).ravel(), prefix_tokens=32
    )
    cached = ranked._replace(requests=requests, instances=ranked.instances._replace(cache=np.full(4, 4000)))
    six = load(10_000, 40, 6)
    role, rates = np.array([1, 1, 2, 2, 2, 2]), np.full(6, 10e9)
    network = Network(rates, rates, 1e-3, np.array([131_072.0]))
    apart = six._replace(instances=six.instances._replace(role=role), network=network)
    for what, lowered in {"nothing": plain, "ranks": ranked, "and prefixes": cached, "roles": apart}.items():
        given = checked(lowered)
        print(f"\n{what}: {10_000 / median_s(lambda given=given: event_loop(given), 5):,.0f} requests/s", end="")


def test_groups_that_scale_by_role_on_w2():
    """No budget: the fourth loop on two instances that prefill for four that decode, beside the loops without scaling.

    A cluster that stays as it is serves every request at the same times as one that cannot change; the other one
    begins with one instance of each role and grows with the load.
    """
    six, role, rates = load(10_000, 40, 6), [1, 1, 2, 2, 2, 2], np.full(6, 10e9)
    network = Network(rates, rates, 1e-3, np.array([131_072.0]))
    apart = checked(six._replace(instances=six.instances._replace(role=np.array(role)), network=network))

    def scaled(up, **scaler):
        rows = [row(p, p, start_state=UP if p in up else EMPTY, role=role[p]) for p in range(6)]
        scaling = growing([asked(0, 4, 2)], rows, control_s=0.1, fixed_s=0.5, **scaler).scaling
        return checked(apart._replace(scaling=scaling))

    runs = {
        "colocated": load(10_000, 40, 4),
        "with roles": apart,
        "with roles that may scale": scaled(range(6), kind=NONE, min_rows=[2, 4]),
        "with roles that scale": scaled((0, 2), kind=CONCURRENCY, par=[16.0], min_rows=1, max_rows=[2, 4]),
    }
    outcomes = [run_compiled(lowered) for lowered in runs.values()]
    assert all((out.status == DONE).all() for out in outcomes)
    assert (outcomes[1].finish_s == outcomes[2].finish_s).all()
    assert len(outcomes[3].loads) > 0
    seconds = {what: median_s(lambda lowered=lowered: event_loop(lowered), 5) for what, lowered in runs.items()}
    for what, taken in seconds.items():
        rate, share = 10_000 / taken, seconds["colocated"] / taken
        print(f"\n{what}: {rate:,.0f} requests/s, {share:.2f} of colocated ", end="")
        print(f"({rate / DYNOSIM_REQUESTS_PER_S:.0f}x DynoSim as quoted)", end="")


@pytest.mark.parametrize("instances", [1, 4, 16, 64])
def test_an_hour_of_azure_conversation(shared_data, instances, budget):
    """Budget: 0.15 s on 16 instances, for 19,366 requests."""
    requests = trace(shared_data / "traces" / "AzureLLMInferenceTrace_conv.csv").requests
    group = Group(model=requests["model"][0], count=instances, step=STEP, kv_tokens=320_000)
    lowered = lower(Scenario(groups=(group,)), requests)
    seconds = median_s(lambda: event_loop(lowered))
    whole = median_s(lambda: gaps(event_loop(lowered), [0.95]))
    print(
        f"\n{len(requests):,} requests on {instances} instances: {seconds * 1e3:.0f} ms, "
        f"{whole * 1e3:.0f} ms with TBT percentiles"
    )
    if instances == 16:
        budget("hour", seconds)


MILLION = """
import sys, time
sys.path[:0] = {path!r}
from peak_memory import peak_bytes
from test_serving_speed import event_loop, gaps, load
event_loop(load(1000, 160, 16))
lowered = load(1_000_000, 160, 16)
start = time.perf_counter()
out = event_loop(lowered)
alone = time.perf_counter() - start
peak = peak_bytes()
start = time.perf_counter()
gaps(out, [0.95])
print(alone, time.perf_counter() - start, peak)
"""


def test_a_million_requests(budget):
    """Budgets: 5 s and 1 GiB for 1,000,000 requests of 128 outputs on 16 instances, in a process of their own."""
    program = MILLION.format(path=[path for path in sys.path if path] + [__file__.rpartition("/")[0]])
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(3)
    ]
    seconds, percentiles, memory = (statistics.median(float(run[k]) for run in runs) for k in range(3))
    print(
        f"\n1,000,000 requests on 16 instances: {seconds:.2f} s, {memory / 1e6:.0f} MB; percentiles {percentiles:.2f} s"
    )
    budget("million", seconds)
    budget("million, memory", memory)


def test_time_grows_in_proportion(budget):
    """Budget: a log-log slope of at most 1.1 from 3,000 to 1,000,000 requests."""
    sizes = [3000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
    taken = []
    for size in sizes:
        lowered = load(size, 160, 16)
        taken.append(median_s(lambda run=lowered: event_loop(run), 3))
    slope = np.polyfit(np.log(sizes), np.log(taken), 1)[0]
    rates = ", ".join(f"{size / seconds:,.0f}" for size, seconds in zip(sizes, taken, strict=True))
    print(f"\nrequests/s {rates}")
    budget("slope", slope, "3,000 to 1,000,000 requests")


def test_a_saturated_instance_beside_the_simpy_twin(budget):
    """Budget: 100 times the SimPy engine, which does one event a step, on 60 requests/s for one instance."""
    from workbench.serving.simulated import simulate

    lowered = load(2000, 60, 1)
    compiled = median_s(lambda: event_loop(lowered))
    start = time.perf_counter()
    twin = simulate(lowered)
    taken = time.perf_counter() - start
    assert (twin.finish_s == run_compiled(lowered).finish_s).all()
    w2 = load(10_000, 40, 4)
    start = time.perf_counter()
    simulate(w2)
    simpy_rate = 10_000 / (time.perf_counter() - start)
    print(
        f"\nsaturated: {2000 / compiled:,.0f} requests/s, SimPy {2000 / taken:,.0f} ({taken / compiled:.0f}x); "
        f"SimPy on W2 {simpy_rate:,.0f}"
    )
    budget("saturated", taken / compiled)
    budget("SimPy", simpy_rate)


COMPILE = """
import sys, time
sys.path[:0] = {path!r}
import numba
import numpy as np
from scaled_role_cases import doubled
from scaling_cases import growing, row
from serving_cases import asked, migrating, place
from test_serving_speed import Network, checked, event_loop, gaps, load
lowered = {loop}
start = time.perf_counter(), time.process_time()
gaps(event_loop(lowered), [0.95])
print(time.perf_counter() - start[0], time.process_time() - start[1])
"""


LOOPS = {
    "instances that are there from the start": "load(100, 40, 4)",
    "instances that come and go": "checked(growing([asked(0, 4, 2)], [row(0)]))",
    "instances with roles": "checked(migrating([asked(0, 4, 2)], [place(role=1), place(role=2)]))",
    "instances with roles that come and go": """checked(doubled(
        growing([asked(0, 4, 2)], [row(0), row(1)]), np.array([True]), np.array([0, 1]),
        Network(np.ones(4), np.ones(4), 0.0, np.ones(1)),
    ))""",
}


@pytest.mark.parametrize("what", LOOPS)
def test_compiling_once(tmp_path, what, budget):
    """Budget: 20 s of processor time from an empty cache, half a second from a full one."""
    path = [path for path in sys.path if path] + [__file__.rpartition("/")[0]]
    program = COMPILE.format(path=path, loop=LOOPS[what])
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "PATH": ""}
    cold, warm = (
        [float(part) for part in subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
        ).stdout.split()]
        for _ in range(2)
    )  # fmt: skip
    print(f"\n{what}: compiled in {cold[0]:.1f} s ({cold[1]:.1f} s of processor time), found in {warm[0]:.2f} s")
    budget("compile", cold[1], what)
    assert warm[1] <= 0.5
