"""Whether a block that arrived is the one that was asked for."""

import hashlib

import numpy as np

from workbench.executor.transformer.cache import MixedVersions
from workbench.executor.transformer.tensor_files import unpack
from workbench.executor.transformer.weights import ModelFiles


def what_is_wrong(payload: np.ndarray, block: int, model: ModelFiles) -> str:
    """Why a block is not to be used, "" where nothing speaks against it.

    Parameters:
        payload: uint8 (size,), the bytes that came.
        block: its number.
        model: whose it should be.
    """
    if hashlib.sha256(payload).hexdigest() == model.blocks[block].digest:
        return ""
    try:
        version = unpack(payload, f"block {block}").notes.get("version", "")
    except Exception:  # whatever it is, it is no block of another version
        version = model.version
    if version != model.version:
        return str(MixedVersions(f"Block {block}", version, model.version))
    return f"Block {block} has other bytes than the source's: its SHA-256 differs; nothing was computed with it."
