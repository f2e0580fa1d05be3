"""The small transformer computes what the papers' formulas say, and the same bits however it is split or batched."""

import itertools
from importlib.util import find_spec

import numpy as np
import numpy_llama
import pytest

from workbench.errors import InputError, UnknownName
from workbench.executor.transformer import (
    KvCache,
    MixedVersions,
    Shape,
    Stage,
    compare,
    forward,
    greedy,
    keeps_bits,
    make_weights,
    teacher_forced,
)

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: real runs need it"),
]
SHAPE = Shape(layers=8, hidden=128, heads=8, kv_heads=4, ffn=344, vocabulary=320, longest=256)
COUNT = 24


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Equal thread counts are part of the rule; workers of real runs have one."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def weights():
    return make_weights(SHAPE, 11, 0, SHAPE.layers)


@pytest.fixture(scope="module")
def prompts():
    random = np.random.default_rng(5)
    return [random.integers(0, SHAPE.vocabulary, length).tolist() for length in (5, 16, 33, 40, 57)]


@pytest.fixture(scope="module")
def reference(weights, prompts):
    """Each prompt alone, whole, on one stage."""
    stage = loaded(weights)
    return [greedy([stage], [prompt], COUNT)[0] for prompt in prompts]


def loaded(weights, *ranges, arithmetic="invariant"):
    """One stage a range of layers; a single stage with everything by default."""
    stages = []
    for first, count in ranges or [(0, SHAPE.layers)]:
        stages.append(Stage(SHAPE, arithmetic))
        names = SHAPE.tensors(first, count)
        stages[-1].load({name: weights[name] for name in names}, "v1")
    return stages if ranges else stages[0]


def exactly(reference, found):
    identity = compare(reference, found, same_order=True)
    assert identity.holds, identity.fault
    assert identity.difference == 0
    assert identity.distinct >= 8
    assert identity.gap > 0


class TestNumbers:
    @pytest.mark.parametrize("arithmetic", ["invariant", "plain"])
    def test_logits_are_those_of_the_formulas(self, weights, prompts, arithmetic):
        """Against an independent pass in double precision; single precision rounds to about 1e-6 of the largest."""
        stage = loaded(weights, arithmetic=arithmetic)
        for prompt in prompts:
            right = numpy_llama.logits(weights, prompt, layers=8, heads=8, kv_heads=4)
            found = teacher_forced([stage], prompt[:1], prompt[1:]).logits
            assert np.abs(found - right[:-1]).max() < 1e-5 * np.abs(right).max()

    def test_greedy_tokens_are_those_of_the_formulas(self, weights, prompts, reference):
        text = list(prompts[0])
        for token, logits in zip(reference[0].tokens, reference[0].logits, strict=True):
            right = numpy_llama.logits(weights, text, layers=8, heads=8, kv_heads=4)[-1]
            assert token == right.argmax()
            assert np.abs(logits - right).max() < 1e-5 * np.abs(right).max()
            text.append(int(token))

    def test_without_grouped_queries_and_with_other_constants(self):
        shape = Shape(
            layers=2, hidden=64, heads=4, kv_heads=4, ffn=96, vocabulary=64, longest=64, rope_base=500.0, epsilon=1e-3
        )
        weights = make_weights(shape, 2, 0, 2)
        stage = Stage(shape)
        stage.load(weights, "v1")
        prompt = list(range(3, 40))
        right = numpy_llama.logits(weights, prompt, layers=2, heads=4, kv_heads=4, base=500.0, epsilon=1e-3)
        found = teacher_forced([stage], prompt[:1], prompt[1:]).logits
        assert np.abs(found - right[:-1]).max() < 1e-5 * np.abs(right).max()


class TestSameBits:
    """Orders of work that must not change a bit. Where the machine does not keep them, the tolerance of 1e-5 rules."""

    @pytest.fixture(autouse=True)
    def _keeps(self):
        if not keeps_bits(SHAPE):
            pytest.skip("this machine's library does not keep the bits of rows; see the tests of the tolerance")

    @pytest.mark.parametrize("cut", [[4], [1, 5], [2, 4, 6], [1, 2, 3, 4, 5, 6, 7]])
    def test_split_over_stages(self, weights, prompts, reference, cut):
        edges = [0, *cut, SHAPE.layers]
        stages = loaded(weights, *((a, b - a) for a, b in itertools.pairwise(edges)))
        exactly(reference, [greedy(stages, [prompt], COUNT)[0] for prompt in prompts])

    def test_together_in_one_batch(self, weights, prompts, reference):
        exactly(reference, greedy([loaded(weights)], prompts, COUNT))

    @pytest.mark.parametrize("chunk", [1, 7, 16, 30])
    def test_prompts_in_chunks(self, weights, prompts, reference, chunk):
        exactly(reference, greedy([loaded(weights)], prompts, COUNT, chunk))

    def test_cache_computed_anew_over_prompt_and_output(self, weights, prompts, reference):
        """One prefill over what was said so far, then on: what a request goes through when its pipeline dissolves."""
        stage = loaded(weights)
        for prompt, right in zip(prompts, reference, strict=True):
            text = [*prompt, *right.tokens[:10].tolist()]
            again = greedy([stage], [text], COUNT - 10)[0]
            assert np.array_equal(again.logits, right.logits[10:])

    def test_cache_moved_between_stages_in_two_parts(self, weights, prompts, reference):
        """Layers 0-2 and 3-7 of the cache leave one worker and come to another, which decodes on."""
        import torch

        here, there = loaded(weights), loaded(weights)
        prompt, right = prompts[3], reference[3]
        before = KvCache(SHAPE)
        with torch.inference_mode():
            forward([here], [[*prompt, *right.tokens[:4].tolist()]], [before])
            after = KvCache(SHAPE, capacity=80)
            after.insert(before.export(3, 5))
            after.insert(before.export(0, 3))
            for place in range(4, COUNT):
                hidden = forward([there], [[int(right.tokens[place])]], [after])
                if place + 1 < COUNT:
                    assert np.array_equal(there.logits(hidden)[0].numpy(), right.logits[place + 1])

    def test_a_shared_prefix(self, weights, prompts):
        """Two texts begin alike: the second takes the first tokens of the first one's cache and computes the rest."""
        import torch

        stage, text = loaded(weights), prompts[3]
        first, second = KvCache(SHAPE), KvCache(SHAPE)
        with torch.inference_mode():
            forward([stage], [text], [first])
            second.insert(first.export(0, SHAPE.layers, tokens=20))
            other = [*text[:20], 1, 2, 3]
            hidden = forward([stage], [other[20:]], [second])
            whole = forward([stage], [other], [KvCache(SHAPE)])
            assert torch.equal(hidden[0], whole[0][20:])


class TestFaults:
    """Each of these leaves most or all tokens as they were, and must be found all the same."""

    def bfloat16(self, stage):
        import torch

        matrix = stage.weight("model.layers.3.mlp.up_proj.weight")
        matrix.copy_(matrix.to(torch.bfloat16))

    def one_weight(self, stage):
        stage.weight("model.layers.5.self_attn.q_proj.weight")[3, 7] += 0.1

    def swapped(self, stage):
        for name in SHAPE.tensors(2, 1):
            mine, other = stage.weight(name), stage.weight(name.replace(".2.", ".6."))
            kept = mine.clone()
            mine.copy_(other)
            other.copy_(kept)

    def other_version(self, stage):
        for name, values in make_weights(SHAPE, 12, 7, 1).items():
            if name.startswith("model.layers.7."):
                stage.weight(name).numpy()[...] = values

    @pytest.mark.parametrize("fault", ["bfloat16", "one_weight", "swapped", "other_version"])
    @pytest.mark.parametrize("same_order", [True, False])
    def test_wrong_weights_are_found(self, weights, prompts, reference, fault, same_order):
        stage = loaded({name: values.copy() for name, values in weights.items()})
        getattr(self, fault)(stage)
        found = [
            teacher_forced([stage], prompt, right.tokens) for prompt, right in zip(prompts, reference, strict=True)
        ]
        identity = compare(reference, found, same_order=same_order)
        assert not identity.holds
        assert "logits differ by" in identity.fault

    def test_a_lost_page_of_the_cache_is_found(self, weights, prompts, reference):
        """Sixteen tokens of one layer read zero after a move."""
        import torch

        stage, prompt, right = loaded(weights), prompts[4], reference[4]
        with torch.inference_mode():
            cache = KvCache(SHAPE)
            forward([stage], [prompt], [cache])
            part = cache.export(4, 1)
            part.rows[:, :, :, 16:32] = 0
            cache.drop(4, 1)
            cache.insert(part)
            logits = [right.logits[0]]
            for token in right.tokens[:-1].tolist():
                logits.append(stage.logits(forward([stage], [[token]], [cache]))[0].numpy())
        found = right._replace(logits=np.array(logits))
        for same_order in (True, False):
            assert "logits differ by" in compare([right], [found], same_order=same_order).fault

    def test_the_fault_alone_is_the_difference(self, weights, prompts, reference):
        """The same teacher-forced pass without a fault holds, in both forms of arithmetic."""
        for arithmetic in ("invariant", "plain"):
            stage = loaded(weights, arithmetic=arithmetic)
            found = [
                teacher_forced([stage], prompt, right.tokens) for prompt, right in zip(prompts, reference, strict=True)
            ]
            assert compare(reference, found, same_order=False).holds


class TestLoading:
    def test_blocks_come_in_any_order_and_leave_again(self, weights, prompts, reference):
        stage = Stage(SHAPE)
        for first in (6, 0, 2, 4):
            stage.load({name: weights[name] for name in SHAPE.tensors(first, 2)}, "v1")
        assert stage.layers() == list(range(8))
        if keeps_bits(SHAPE):
            exactly([reference[0]], greedy([stage], [prompts[0]], COUNT))
        stage.free(0, 2)
        assert stage.layers() == list(range(2, 8))
        with pytest.raises(InputError, match="load its block first"):
            stage.embed([[1]])
        stage.free(2, 6)
        assert stage.version == ""
        stage.load({name: weights[name] for name in SHAPE.tensors(0, 2)}, "v2")

    def test_layers_that_are_not_loaded_do_not_run(self, weights):
        import torch

        (stage,) = loaded(weights, (2, 2))
        with pytest.raises(InputError, match="is 4, which is not loaded"):
            stage.run(3, 2, [torch.zeros(1, 128)], [KvCache(SHAPE)])

    def test_two_versions_never_mix(self, weights):
        import torch

        stage = loaded(weights)
        with pytest.raises(MixedVersions, match="'v2' where version 'v1' is loaded"):
            stage.load({name: weights[name] for name in SHAPE.tensors(0, 1)}, "v2")
        other = Stage(SHAPE)
        other.load(weights, "v2")
        cache = KvCache(SHAPE)
        with torch.inference_mode():
            forward([stage], [[1, 2, 3]], [cache])
            with pytest.raises(MixedVersions, match="cache of a request is of version 'v1'"):
                forward([other], [[4]], [cache])
            newer = KvCache(SHAPE)
            forward([other], [[1]], [newer])
            with pytest.raises(MixedVersions):
                newer.insert(cache.export(0, 1))

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda found: found.pop("model.layers.1.mlp.up_proj.weight"), "is missing"),
            (
                lambda found: found.update({"model.layers.9.mlp.up_proj.weight": np.ones(1, np.float32)}),
                "no tensor of this",
            ),
            (lambda found: found.update({"model.layers.1.bias": np.ones(1, np.float32)}), "no tensor of this model"),
            (lambda found: found.update({"weights": np.ones(1, np.float32)}), "no tensor of this model"),
            (lambda found: found.update({"model.norm.weight": np.ones(3, np.float32)}), "give float32"),
            (lambda found: found.update({"model.norm.weight": np.ones(128)}), "give float32"),
        ],
    )
    def test_wrong_tensors_are_refused(self, weights, change, words):
        found = {name: weights[name] for name in SHAPE.tensors(1, 1)}
        change(found)
        with pytest.raises(InputError, match=words):
            Stage(SHAPE).load(found, "v1")

    def test_requests_and_caches_have_their_limits(self, weights):
        import torch

        stage = loaded(weights)
        with torch.inference_mode():
            with pytest.raises(InputError, match="is 9 tokens long; stay within 8"):
                forward([stage], [[1] * 9], [KvCache(SHAPE, capacity=8)])
            cache = KvCache(SHAPE)
            forward([stage], [[1, 2, 3]], [cache])
        part = cache.export(0, 2)
        with pytest.raises(InputError, match="layer 0, which is there"):
            cache.insert(part)
        with pytest.raises(InputError, match="has the shape"):
            KvCache(SHAPE).insert(part._replace(rows=part.rows[:, :1]))
        with pytest.raises(InputError, match="capacity"):
            KvCache(SHAPE, capacity=257)
        cache.drop(1, 1)
        with pytest.raises(InputError, match="unequal length"):
            cache.export(0, 2)
        cache.drop(0, 8)
        assert (cache.layers(), cache.version) == ([], "")

    def test_unknown_arithmetic(self):
        with pytest.raises(UnknownName, match="quantum"):
            Stage(SHAPE, "quantum")


class TestCompare:
    def test_too_few_different_tokens_prove_nothing(self, reference):
        dull = reference[0]._replace(tokens=np.full(COUNT, 3))
        assert "fewer than the 8" in compare([dull], [dull], same_order=True).fault

    def test_noise_is_allowed_where_the_order_differs_and_only_there(self, reference):
        noisy = [one._replace(logits=one.logits * np.float32(1 + 3e-6)) for one in reference]
        assert compare(reference, noisy, same_order=False).holds
        assert "bit for bit" in compare(reference, noisy, same_order=True).fault

    def test_a_changed_token_is_found_even_if_logits_agree(self, reference):
        tokens = reference[1].tokens.copy()
        tokens[5] = (tokens[5] + 1) % SHAPE.vocabulary
        found = [reference[0], reference[1]._replace(tokens=tokens)]
        identity = compare(reference[:2], found, same_order=True)
        assert identity.changed == 1
        assert identity.fault == f"1 of {2 * COUNT} tokens differ"

    def test_ties_are_told_and_too_many_are_refused(self, reference):
        """Two best logits that are equal: nobody can say which token is right."""
        logits = reference[0].logits.copy()
        order = np.argsort(logits, axis=1)
        logits[0, order[0, -2]] = logits[0, order[0, -1]]
        tied = reference[0]._replace(logits=logits)
        identity = compare([tied], [tied], same_order=True)
        assert identity.gap == 0
        assert identity.excluded == pytest.approx(1 / COUNT)
        assert "too close to call" in identity.fault

    def test_nan_is_no_identity(self, reference):
        broken = reference[0]._replace(logits=np.full_like(reference[0].logits, np.nan))
        for same_order in (True, False):
            assert not compare([reference[0]], [broken], same_order=same_order).holds

    def test_other_lengths_are_refused(self, reference):
        with pytest.raises(InputError, match="other requests or lengths"):
            compare(reference, reference[1:], same_order=True)
