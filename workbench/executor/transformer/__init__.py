"""A small transformer for real runs: loaded block by block, run by ranges of layers, equal bits however it is split."""

from workbench.executor.transformer.cache import KvCache, KvPart, MixedVersions
from workbench.executor.transformer.decoding import Output, forward, greedy, prefill, teacher_forced
from workbench.executor.transformer.identity import Identity, NotIdentical, compare
from workbench.executor.transformer.probing import keeps_bits
from workbench.executor.transformer.shape import Shape
from workbench.executor.transformer.stage import Stage
from workbench.executor.transformer.tensor_files import TensorFile, pack, unpack
from workbench.executor.transformer.weights import (
    BlockFile,
    ModelFiles,
    make_weights,
    read_block,
    write_block,
    write_model,
)

__all__ = [
    "BlockFile",
    "Identity",
    "KvCache",
    "KvPart",
    "MixedVersions",
    "ModelFiles",
    "NotIdentical",
    "Output",
    "Shape",
    "Stage",
    "TensorFile",
    "compare",
    "forward",
    "greedy",
    "keeps_bits",
    "make_weights",
    "pack",
    "prefill",
    "read_block",
    "teacher_forced",
    "unpack",
    "write_block",
    "write_model",
]
