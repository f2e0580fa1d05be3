"""Weights made from a seed, and the files that hold a model block by block."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from workbench.executor.transformer.shape import Shape
from workbench.executor.transformer.tensor_files import TensorFile, pack, unpack
from workbench.paths import write_atomic

SHARPNESS = 2.0
"""How far the head spreads the logits: with 1 the best two of random weights often lie within the noise."""

ATTENTION = 2.0
"""How much larger queries and keys are: with 1 attention is so flat that a text soon repeats a few tokens."""


class BlockFile(NamedTuple):
    """One block of a model on disk.

    Attributes:
        path: a safetensors file.
        first, count: its layers.
        size: bytes of the file.
        digest: SHA-256 of the file, hexadecimal.
    """

    path: str
    first: int
    count: int
    size: int
    digest: str


class ModelFiles(NamedTuple):
    """A model on disk: `version` names its weights, and every block's header carries it."""

    shape: Shape
    version: str
    blocks: tuple[BlockFile, ...]

    @property
    def bytes(self) -> int:
        """Bytes of all blocks."""
        return sum(block.size for block in self.blocks)


def make_weights(shape: Shape, seed: int, first: int, count: int) -> dict[str, np.ndarray]:
    """Random weights of some layers: the same for the same seed, whichever other layers are made beside them.

    Matrices keep the size of what passes through them; those that write into the residual stream are smaller the more
    layers there are, and norms lie around 1.

    Parameters:
        shape: of the model.
        seed: what the weights are made from.
        first, count: the layers.
    """
    every = list(shape.tensors(0, shape.layers))
    made = {}
    for name, size in shape.tensors(first, count).items():
        random = np.random.default_rng([seed, every.index(name)])
        values = random.standard_normal(size, dtype=np.float32)
        if len(size) == 1:
            made[name] = 1 + np.float32(0.1) * values
        elif name == "model.embed_tokens.weight":
            made[name] = values
        else:
            spread = size[1] ** -0.5
            if name.endswith(("q_proj.weight", "k_proj.weight")):
                spread *= ATTENTION
            elif name.endswith(("o_proj.weight", "down_proj.weight")):
                spread *= (shape.layers / 2) ** -0.5
            elif name == "lm_head.weight":
                spread *= SHARPNESS
            made[name] = values * np.float32(spread)
    return made


def write_model(folder: Path, shape: Shape, seed: int, blocks: int, version: str) -> ModelFiles:
    """Make a model from a seed and write it block by block.

    Parameters:
        folder: where the files go.
        shape: of the model.
        seed: what the weights are made from.
        blocks: number of blocks, at most the number of layers.
        version: name of these weights.
    """
    files = []
    for number, (first, count) in enumerate(shape.blocks(blocks)):
        tensors = make_weights(shape, seed, first, count)
        files.append(write_block(folder / f"block-{number:02d}.safetensors", tensors, first, count, version))
    return ModelFiles(shape, version, tuple(files))


def write_block(path: Path, tensors: Mapping[str, np.ndarray], first: int, count: int, version: str) -> BlockFile:
    """Write one block; see `BlockFile` and `ModelFiles`."""
    content = pack(tensors, {"version": version})
    write_atomic(path, content)
    return BlockFile(str(path), first, count, len(content), hashlib.sha256(content).hexdigest())


def read_block(path: str | Path) -> TensorFile:
    """The tensors of a block file; `notes["version"]` says whose weights they are."""
    return unpack(np.fromfile(path, dtype=np.uint8), str(path))
