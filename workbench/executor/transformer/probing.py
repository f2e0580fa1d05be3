"""Whether this machine keeps the bits in invariant arithmetic, asked of the machine itself."""

import functools

from workbench.executor.transformer.cache import KvCache
from workbench.executor.transformer.decoding import forward
from workbench.executor.transformer.shape import Shape
from workbench.executor.transformer.stage import Stage
from workbench.executor.transformer.weights import make_weights

TOKENS = 48
CHUNKS = (1, 5, 17, 32)


@functools.cache
def keeps_bits(shape: Shape, device: str = "cpu") -> bool:
    """Whether a prompt gives the same bits however it is cut into chunks, with this process's threads.

    It is a property of the processor, of the library's build and of the widths of the model: one layer of them is run.
    Where it fails, outputs are compared within a tolerance instead, see `identity`.
    """
    import torch

    small = shape.model_copy(update={"layers": 1, "longest": max(TOKENS, shape.longest)})
    stage = Stage(small, "invariant", device)
    stage.load(make_weights(small, 0, 0, 1), "probe")
    prompt = [(7 * place + 3) % small.vocabulary for place in range(TOKENS)]

    def logits(chunk: int):
        cache = KvCache(small, TOKENS, device)
        parts = [forward([stage], [prompt[start : start + chunk]], [cache])[0] for start in range(0, TOKENS, chunk)]
        return torch.cat([stage.all_logits(part) for part in parts])

    with torch.inference_mode():
        whole = logits(TOKENS)
        return all(torch.equal(logits(chunk), whole) for chunk in CHUNKS)
