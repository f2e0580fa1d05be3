"""Three models share one real process by turns: what each says is what it says alone, and α tells the pace."""

from importlib.util import find_spec

import numpy as np
import polars as pl
import pytest

from workbench.errors import InputError
from workbench.executor.faults import RunStopped
from workbench.executor.processes import Pool
from workbench.executor.transformer import NotIdentical, Shape
from workbench.pooling.real import ByChance, ByQuota, Kind, Prompt, measure_starts, require_same, run_turns

real = [
    pytest.mark.torch,
    pytest.mark.real,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: real runs need it"),
]
SHAPES = (
    Shape(layers=3, hidden=128, heads=4, kv_heads=4, ffn=344, longest=96),
    Shape(layers=4, hidden=192, heads=6, kv_heads=2, ffn=512, longest=96),
    Shape(layers=5, hidden=256, heads=8, kv_heads=1, ffn=688, longest=96),
)
KINDS = [Kind(shape, 3 + number) for number, shape in enumerate(SHAPES)]
CHANCE = ByChance(most=9, seed=5)


def prompts(each: int, least: int = 16, most: int = 32) -> list[Prompt]:
    random = np.random.default_rng(each)

    def one(model: int) -> Prompt:
        tokens = random.integers(0, 512, random.integers(20, 48)).tolist()
        return Prompt(model, tuple(tokens), int(random.integers(least, most)))

    return [one(model) for _ in range(each) for model in range(len(KINDS))]


@pytest.fixture(scope="module")
def pool():
    with Pool(1) as processes:
        yield processes


@pytest.fixture(scope="module")
def by_chance(pool):
    return run_turns(KINDS, prompts(20), CHANCE, pool=pool)


@pytest.fixture(scope="module")
def by_quota(pool):
    kinds = [Kind(shape.model_copy(update={"longest": 512}), seed) for shape, seed in KINDS]
    given = [Prompt(model, tuple(range(5, 15)), 500) for model in range(3) for _ in range(2)]
    turns = ByQuota(0.75, 0.25, 0.5, rounds=4)
    return run_turns(kinds, given, turns, prefetch=False, clock="processor", keep=False, pool=pool)


class TestTurns:
    pytestmark = real

    def test_three_models_and_twenty_prompts_each_say_what_they_say_alone(self, by_chance):
        """Every logit, teacher-forced on the same text, and every token; continuations that tell something."""
        assert [identity.requests for identity in by_chance.identity] == [20, 20, 20]
        for identity in by_chance.identity:
            assert identity.fault == ""
            assert identity.changed == 0
            assert identity.distinct >= 8
            assert identity.gap > 0
        require_same(by_chance)
        asked = prompts(20)
        assert [output.tokens.size for output in by_chance.outputs] == [prompt.output for prompt in asked]

    def test_turns_were_as_long_as_chance_had_them(self, by_chance):
        """The same draws here: a number of steps for each batch of a round, cut where its longest request ends."""
        random, left = np.random.default_rng(CHANCE.seed), [0, 0, 0]
        asked = prompts(20)
        for model in range(3):
            left[model] = max(prompt.output for prompt in asked if prompt.model == model) - 1
        expected = []
        while any(left):
            batches = [model for model in range(3) if left[model]]
            for model, drawn in zip(batches, random.integers(1, CHANCE.most + 1, len(batches)).tolist(), strict=True):
                expected.append((model, min(drawn, left[model])))
                left[model] -= expected[-1][1]
        assert by_chance.turns.select("model", "steps").rows() == expected

    def test_nothing_stays_in_the_host_and_slabs_were_shared(self, by_chance):
        assert by_chance.left_bytes == 0
        assert by_chance.slabs["block_bytes"].to_list() == sorted(16 * shape.kv_bytes_per_token for shape in SHAPES)
        assert (by_chance.slabs["used_bytes"] <= by_chance.slabs["slab_bytes"]).all()

    def test_the_next_model_of_a_round_was_fetched_beside(self, by_chance):
        """The first turn of a round never finds its model there, unless nobody else had one in between."""
        for _, part in by_chance.turns.filter(pl.col("load_s") > 0).group_by("round"):
            assert part["fetched"].to_list() == [False] + [True] * (len(part) - 1)

    @pytest.mark.parametrize(("fault", "model"), [("weights", 0), ("page", 0), ("rounded", 0)])
    def test_planted_faults_are_found(self, pool, fault, model):
        """Two blocks swapped once after a switch, one KV block lost on its way back, one matrix rounded to bfloat16."""
        run = run_turns(KINDS, prompts(3), CHANCE, fault=fault, pool=pool)
        assert [identity.fault != "" for identity in run.identity] == [number == model for number in range(3)]
        with pytest.raises(NotIdentical, match="model 0"):
            require_same(run)

    def test_the_pace_of_a_round_is_eq_3_of_what_was_measured_before_it(self, by_quota):
        """α = Σ t/d + c max t / (d Q), t and c from the last two turns of each model, worked out here again."""
        turns = by_quota.turns.with_columns(
            step_s=(pl.col("end_s") - pl.col("ready_s")) / pl.col("steps"),
            switch_s=pl.col("ready_s") - pl.col("left_s"),
        )
        assert sorted(turns["round"].unique()) == [-1, 0, 1, 2, 3]
        for number in range(4):
            before = turns.filter(pl.col("round") < number).group_by("model", maintain_order=True).tail(2)
            means = before.group_by("model").agg(pl.col("step_s").mean(), pl.col("switch_s").mean())
            step_s, switch_s, d = means["step_s"].to_numpy(), means["switch_s"].sum(), by_quota.tbt_s
            pace = max(0.5, (step_s / d).sum() + switch_s * step_s.max() / d / by_quota.quota_s)
            found = turns.filter(pl.col("round") == number)
            np.testing.assert_allclose(found["pace"].to_numpy(), pace, rtol=1e-9)
            if number == 0:
                assert pace == pytest.approx(1.0, rel=1e-9)  # 0.75 for steps and 0.25 for switches

    def test_a_turn_ends_with_the_step_in_which_its_quota_ends(self, by_quota):
        """Less what the model's turns before it were too long."""
        for model in range(3):
            over_s = 0.0
            for turn in by_quota.turns.filter((pl.col("round") >= 0) & (pl.col("model") == model)).to_dicts():
                left_s = turn["quota_s"] - over_s
                said = by_quota.tokens.filter((pl.col("model") == model) & (pl.col("time_s") > turn["ready_s"]))
                steps_s = said.filter(pl.col("time_s") <= turn["end_s"])["time_s"].unique().sort() - turn["ready_s"]
                assert len(steps_s) == turn["steps"]
                assert steps_s[-1] >= left_s
                assert (steps_s[:-1] < left_s).all()
                over_s += turn["end_s"] - turn["ready_s"] - turn["quota_s"]

    def test_the_pace_follows_from_the_times_of_tokens_and_alpha_tells_it(self, by_quota):
        """A round lasts from the last token before it to its own last one. What is recorded lies within 10 %; here, on
        a machine that may be busy, few rounds with few steps lie within more."""
        times = by_quota.tokens["time_s"].unique().sort().to_list()
        whole_s, tokens = 0.0, np.zeros(3)
        for (_,), part in by_quota.turns.filter(pl.col("round") >= 0).group_by("round", maintain_order=True):
            begin_s, end_s = part["left_s"].min(), part["end_s"].max()
            assert begin_s in times
            assert end_s in times
            said = by_quota.tokens.filter((pl.col("time_s") > begin_s) & (pl.col("time_s") <= end_s))
            whole_s += end_s - begin_s
            tokens += [said.filter(pl.col("model") == model).height / 2 for model in range(3)]  # two requests a model
        for row in by_quota.paces.to_dicts():
            assert row["rounds"] == 4
            assert row["measured"] == pytest.approx(whole_s / tokens[row["model"]] / by_quota.tbt_s)
            assert 0.5 < row["over_alpha"] < 2.0
        assert not by_quota.turns["fetched"].any()

    def test_it_stops_on_request(self, pool):
        with pytest.raises(RunStopped):
            run_turns(KINDS, prompts(3), CHANCE, pool=pool, stop=lambda: True)

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ([], "at least one"),
            ([Prompt(3, (1,), 1)], "model"),
            ([Prompt(0, (1,), 0)], "output"),
            ([Prompt(0, (), 1)], "within the 96"),
            ([Prompt(0, (1,) * 90, 7)], "within the 96"),
        ],
    )
    def test_impossible_requests_are_refused(self, given, words):
        with pytest.raises(InputError, match=words):
            run_turns(KINDS, given, CHANCE)


class TestStarts:
    pytestmark = real

    def test_reuse_removes_more_than_80_percent_of_a_start(self):
        run = measure_starts(SHAPES[2], 3)
        assert run.parts.filter(pl.col("way") == "first")["part"].to_list() == [
            "executor", "weights", "caches", "profiling", "other",
        ]  # fmt: skip
        assert (run.parts["seconds"] >= 0).all()
        assert run.removed > 0.8
        assert run.removed_within > 0.5
        assert run.removed == pytest.approx(1 - run.total_s("reused") / run.total_s("first"))
        assert run.copies["way"].str.starts_with("pageable").all()  # pinned copies are a GPU's
        assert len(run.copies) == 3
        np.testing.assert_allclose(run.copies["bytes_per_s"] * run.copies["seconds"], run.weight_bytes)

    def test_no_repeats_are_refused(self):
        with pytest.raises(InputError, match="repeats"):
            measure_starts(SHAPES[0], repeats=0)
