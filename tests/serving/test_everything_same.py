"""New versions, busy rows that change roles, promised help, failures and short memories, all in one run."""

from collections import Counter

import numpy as np
from everything_cases import everything
from serving_outcomes import differences

from workbench.serving.model.checking import checked
from workbench.serving.model.engine import run_compiled
from workbench.serving.model.lowered import DONE, PREFILL
from workbench.serving.simulated import simulate
from workbench.serving.simulated.decoder import Decoder
from workbench.serving.simulated.fleet import Fleet
from workbench.serving.simulated.helping import Helping


def conserved(lowered, run):
    """Tokens of all requests, and the bytes of what was sent whole."""
    done = run.status == DONE
    assert (run.made[done] == lowered.requests.output[done]).all()
    assert (np.bincount(run.segments[:, 0], run.segments[:, 2], minlength=run.made.size) == run.made).all()
    request, source, target, size = run.flows[:, 2:].T
    per_token = lowered.network.kv_bytes[lowered.requests.model[request.astype(int)]]
    prompt, output = (column[request.astype(int)] for column in lowered.requests[1:3])
    assert ((size >= prompt * per_token) & (size <= (prompt + output) * per_token)).all()
    assert (lowered.instances.role[source.astype(int)] == PREFILL).all()
    model = lowered.instances.model
    assert (model[source.astype(int)] == model[target.astype(int)]).all()
    start_s, end_s, sent = run.chains[:, 0], run.chains[:, 1], run.chains[:, 5]
    whole = lowered.scaling.bytes[model[run.hops[:, 1].astype(int)]]
    assert (sent[run.hops[:, 0].astype(int)] <= whole * (1 + 1e-12)).all()
    assert not (end_s < start_s).any()


def test_all_at_once_ends_the_same(monkeypatch):
    """And everything comes up often enough for that to mean something; every fifth run is step by step."""
    seen, judge, give_up = Counter(), Helping._would_break, Fleet.give_up_role
    take_over = Decoder.take_over

    def judged(self, *given):
        broken = judge(self, *given)
        seen["helped by the promise" if broken else "not helped by the promise"] += 1
        return broken

    def given_up(self, row, requeue, stays):
        seen["rows taken"] += 1
        give_up(self, row, requeue, stays)

    def taken_over(self, requests):
        left = take_over(self, requests)
        seen["KV that stayed"] += len(requests) - len(left)
        return left

    monkeypatch.setattr(Helping, "_would_break", judged)
    monkeypatch.setattr(Fleet, "give_up_role", given_up)
    monkeypatch.setattr(Decoder, "take_over", taken_over)
    for seed in range(120):
        lowered = checked(everything(seed))
        run = simulate(lowered)
        assert differences(run_compiled(lowered, jumps=seed % 5 > 0), run) == [], f"seed {seed}"
        conserved(lowered, run)
        seen["moves"] += run.moves.sum()
        seen["restarts"] += run.restarts.sum()
        seen["cached"] += run.cached.sum()
        seen["evictions"] += run.evictions.sum()
        seen["flows given up"] += np.isnan(run.chains[:, 1]).sum()
        seen["loads of new versions"] += (run.load_version > 0).sum()
    assert {*seen} >= {"helped by the promise", "rows taken"}
    assert not {name: count for name, count in seen.items() if count < 8 and "not helped" not in name}, seen
