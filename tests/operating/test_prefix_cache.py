"""An engine that keeps prefixes, through a system: equal prompts are computed once."""

import polars as pl
import pytest
from operating_cases import TICK_S, TICKS, gpus, table

import workbench as wb
from workbench.errors import InputError
from workbench.operating import System
from workbench.serving import Engine
from workbench.workloads import Trace
from workbench.workloads.ledger import SCHEMA
from workbench.workloads.origin import Origin

PROMPT = 1_000_000
BLOCK = 1000


def equal_prompts(count=4):
    """Prompts of a second each, all the same, far apart."""
    rows = [(10.0 * k, PROMPT, 1) for k in range(count)]
    hashes = pl.Series([list(range(PROMPT // BLOCK))] * count)
    return table(*rows, prefix_hashes=hashes, request_id=pl.Series(range(count)), model=pl.lit("m"))


def as_trace(requests, block_tokens=BLOCK):
    origin = Origin(name="by hand", format="generated", source="a test", block_tokens=block_tokens)
    return Trace(requests=requests, defects=pl.DataFrame(schema=SCHEMA), origin=origin)


def engine(**changes):
    much = 2 * PROMPT
    return Engine(**{"budget": much, "chunk": much, "block_tokens": BLOCK, "prefix_cache_tokens": much} | changes)


def served(trace, own, backend="compiled"):
    return wb.simulate(
        own if isinstance(own, System) else System(name="keeping", engine=own), cluster=gpus(1), models="llama-3-8b",
        trace=trace, step=TICKS, kv_tokens=4 * PROMPT, backend=backend,
    )  # fmt: skip


@pytest.mark.parametrize("backend", ["compiled", "simpy"])
def test_equal_prompts_are_computed_once(backend):
    """A prompt token is a microsecond of service. The first prompt takes a second; of the others the last token only
    is computed, since a step makes a token from at least one."""
    requests = served(as_trace(equal_prompts()), engine(), backend).requests
    assert requests["cached_tokens"].to_list() == [0, *[PROMPT - 1] * 3]
    seconds = (requests["first_token_s"] - requests["arrival_s"]).to_list()
    assert seconds == pytest.approx([PROMPT * TICK_S, *[TICK_S] * 3], abs=1e-9)
    whole = served(as_trace(equal_prompts()), engine(prefix_cache_tokens=0), backend)
    assert whole.requests["cached_tokens"].to_list() == [0] * 4
    assert (whole.requests["first_token_s"] - whole.requests["arrival_s"]).to_list() == pytest.approx([1.0] * 4)
    assert any("no prefix cache" in note for note in whole.notes)


def test_a_table_needs_the_tokens_of_a_hash_and_a_trace_states_them():
    with pytest.raises(InputError, match="prefix_block_tokens"):
        served(equal_prompts(), engine())
    told = served(equal_prompts(), engine(prefix_block_tokens=BLOCK))
    assert told.notes == served(as_trace(equal_prompts()), engine()).notes
    assert not any("cache" in note for note in told.notes)
    assert told.requests.equals(served(as_trace(equal_prompts()), engine()).requests)
    with pytest.raises(InputError, match="is 500, but hashes of by hand cover 1000 tokens each"):
        served(as_trace(equal_prompts()), engine(prefix_block_tokens=500))


def test_a_named_system_takes_such_an_engine():
    found = served(as_trace(equal_prompts()), wb.system("fixed", engine=engine()))
    assert found.requests["cached_tokens"].sum() == 3 * (PROMPT - 1)


def test_searches_use_the_cache_too():
    """Every five seconds a prompt of a second must be there in half a second: with a cache all but the first are."""
    given = {"cluster": gpus(1), "models": "llama-3-8b", "step": TICKS, "kv_tokens": 4 * PROMPT}
    promise, trace = wb.slo(ttft_s=0.5, tbt_s=1.0), as_trace(equal_prompts(60))
    system = System(name="keeping", engine=engine())
    (row,) = wb.plan(
        trace, slo=promise, systems=[system], deployments=[wb.deployment()], attainment=0.9, **given
    ).table.to_dicts()  # fmt: skip
    assert (row["instances"], row["attainment"]) == (1, pytest.approx(59 / 60))
    assert wb.capacity(system, trace=trace, slo=promise, attainment=0.9, **given).rate_per_s > 1.0
