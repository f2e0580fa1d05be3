"""Tensor files: read as the format's own library writes them, refused where they are broken; weights from seeds."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from workbench.errors import InputError
from workbench.executor.transformer import Shape, make_weights, pack, read_block, unpack, write_model

# what safetensors 0.8.0 writes for the three tensors of `test_reads_what_the_library_writes`
GOLDEN = bytes.fromhex(
    "e0000000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226e70222c2276657273696f6e223a22736565642d31"
    "227d2c2263223a7b226474797065223a22463634222c227368617065223a5b312c312c315d2c22646174615f6f666673657473223a5b302c"
    "385d7d2c2262223a7b226474797065223a22463332222c227368617065223a5b322c335d2c22646174615f6f666673657473223a5b382c33"
    "325d7d2c2261223a7b226474797065223a22463136222c227368617065223a5b325d2c22646174615f6f666673657473223a5b33322c3336"
    "5d7d7d20202020209a9999999999b93f000000000000803e0000003f0000403f0000803f0000a03f003e00c0"
)
SMALL = Shape(layers=4, hidden=32, heads=4, kv_heads=2, ffn=48, vocabulary=40, longest=64)


def memory(content: bytes) -> np.ndarray:
    return np.frombuffer(bytearray(content), dtype=np.uint8)


def test_reads_what_the_library_writes():
    found = unpack(memory(GOLDEN), "golden")
    assert found.notes == {"version": "seed-1", "format": "np"}
    assert found.tensors["a"].tolist() == [1.5, -2.0]
    assert found.tensors["b"].tolist() == [[0.0, 0.25, 0.5], [0.75, 1.0, 1.25]]
    assert found.tensors["c"].tolist() == [[[0.1]]]
    assert {name: str(tensor.dtype) for name, tensor in found.tensors.items()} == {
        "a": "float16", "b": "float32", "c": "float64",
    }  # fmt: skip


@given(
    st.dictionaries(
        st.text(max_size=8).filter(lambda name: name != "__metadata__"),
        arrays.arrays(
            st.sampled_from([np.float16, np.float32, np.float64]),
            arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        ),
        max_size=4,
    ),
    st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=3),
)
def test_what_is_packed_comes_out_again(tensors, notes):
    content = pack(tensors, notes)
    found = unpack(memory(content), "packed")
    assert found.notes == notes
    assert list(found.tensors) == [*tensors] or {len(tensor.tobytes()) for tensor in tensors.values()} & {0}
    for name, tensor in tensors.items():
        assert found.tensors[name].shape == tensor.shape
        assert found.tensors[name].tobytes() == tensor.tobytes()
    length = int.from_bytes(content[:8], "little")
    assert (8 + length) % 64 == 0


def test_tensors_are_views_of_the_memory():
    where = memory(GOLDEN)
    unpack(where, "golden").tensors["a"][0] = 3
    assert unpack(where, "golden").tensors["a"][0] == 3


def broken(change, header=None):
    """The golden file with a change to its header, or to its bytes."""
    length = int.from_bytes(GOLDEN[:8], "little")
    if header is None:
        return change(GOLDEN)
    entries = json.loads(GOLDEN[8 : 8 + length])
    header(entries)
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text + GOLDEN[8 + length :]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (GOLDEN[:5], "too few"),
        (GOLDEN[:100], "header would have"),
        ((2**63).to_bytes(8, "little") + GOLDEN[8:], "header would have"),
        (GOLDEN[:-1], "does not lie"),
        (GOLDEN + b"\0", "1 bytes at its end"),
        (GOLDEN.replace(b'"c":', b'"b":'), "no list of"),  # a name twice
        (GOLDEN.replace(b"F16", b"I64"), "no list of"),
        (GOLDEN.replace(b"{", b"[", 1), "no list of"),
        ((12).to_bytes(8, "little") + b"[" * 12, "no list of"),
        (broken(None, lambda found: found["b"].update(data_offsets=[0, 24])), "does not lie"),
        (broken(None, lambda found: found["b"].update(data_offsets=[8, 36])), "does not lie"),
        (broken(None, lambda found: found["a"].update(data_offsets=[33, 37])), "does not lie"),
        (broken(None, lambda found: found["a"].update(data_offsets=[-4, 0])), "whole numbers"),
        (broken(None, lambda found: found["a"].update(shape=[2.0])), "whole numbers"),
        (broken(None, lambda found: found["a"].update(shape=[2**40, 2**40])), "does not lie"),
        (broken(None, lambda found: found["__metadata__"].update(version=1)), "tensors and texts"),
        (broken(None, lambda found: found.update(a=1)), "no list of"),
    ],
)
def test_a_broken_file_is_refused(content, words):
    with pytest.raises(InputError, match=words) as caught:
        unpack(memory(content), "some.safetensors")
    assert "some.safetensors" in str(caught.value)


def test_weights_come_from_the_seed_alone(tmp_path):
    """A layer is the same whichever others are made beside it, and whichever block it lies in."""
    whole = make_weights(SMALL, 3, 0, 4)
    assert list(whole) == list(SMALL.tensors(0, 4))
    for first, count in ((0, 1), (1, 2), (3, 1)):
        for name, values in make_weights(SMALL, 3, first, count).items():
            assert np.array_equal(values, whole[name])
    assert not np.array_equal(make_weights(SMALL, 4, 0, 1)["lm_head.weight" if False else "model.embed_tokens.weight"],
                              whole["model.embed_tokens.weight"])  # fmt: skip
    files = write_model(tmp_path, SMALL, 3, 3, "three")
    assert [(block.first, block.count) for block in files.blocks] == [(0, 2), (2, 1), (3, 1)]
    read = [read_block(block.path) for block in files.blocks]
    assert [found.notes for found in read] == [{"version": "three"}] * 3
    together = {name: values for found in read for name, values in found.tensors.items()}
    assert {name: values.tobytes() for name, values in together.items()} == {
        name: values.tobytes() for name, values in whole.items()
    }
    assert files.bytes == sum((tmp_path / f"block-{number:02d}.safetensors").stat().st_size for number in range(3))


def test_the_embedding_goes_with_the_first_block_and_the_head_with_the_last():
    assert "model.embed_tokens.weight" in SMALL.tensors(0, 1)
    assert "lm_head.weight" not in SMALL.tensors(0, 3)
    assert {"model.norm.weight", "lm_head.weight"} <= set(SMALL.tensors(3, 1))
    assert all(name.startswith("model.layers.2.") for name in SMALL.tensors(2, 1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"heads": 3}, "hidden is 256; give a multiple of twice the 3 heads"),
        ({"kv_heads": 3}, "kv_heads is 3; give a divisor of the 8 heads"),
        ({"layers": 0}, "layers"),
        ({"rope_base": -1.0}, "rope_base"),
    ],
)
def test_impossible_shapes_are_refused(change, words):
    with pytest.raises(InputError, match=words):
        Shape(**change)


def test_layers_that_are_not_there_are_refused():
    for first, count in ((4, 1), (0, 5), (-1, 1), (0, 0)):
        with pytest.raises(InputError):
            SMALL.tensors(first, count)
    with pytest.raises(InputError, match="count"):
        SMALL.blocks(5)
