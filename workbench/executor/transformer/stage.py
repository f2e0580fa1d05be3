"""A range of layers that are loaded: they run on activations, for one request or many."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.errors import InputError
from workbench.executor.needs import require_torch
from workbench.executor.transformer import arithmetic as ops
from workbench.executor.transformer.arithmetic import Arithmetic, check_arithmetic
from workbench.executor.transformer.cache import KvCache, MixedVersions
from workbench.executor.transformer.placing import Places, place_for
from workbench.executor.transformer.shape import Shape, check_range, layer_of

EMBEDDING, NORM, HEAD = "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"


class Stage:
    """The layers of one model that one worker has loaded, in any number of pieces.

    Weights are used where they lie, without a copy, on a CPU; on a GPU they are copied by a stream of their own, and a
    layer waits for its own copy only.

    Parameters:
        shape: of the model.
        arithmetic: see `workbench.executor.transformer.arithmetic`.
        device: "cpu" or a CUDA device.
        places: where weights go; by default where they lie on a CPU, and to memory of their own on a GPU.

    Attributes:
        version: the weights that are loaded, "" while there are none.

    Errors: `MissingExtra` without torch.
    """

    def __init__(
        self, shape: Shape, arithmetic: Arithmetic = "invariant", device: str = "cpu", places: Places | None = None
    ):
        require_torch("The transformer")
        check_arithmetic(arithmetic)
        self.shape, self.arithmetic, self.device, self.version = shape, arithmetic, device, ""
        self._places: Places = places or place_for(device)
        self._weights: dict[str, Any] = {}
        self._layers: list[int] = []
        self._angles = ops.angles(shape.head_width, shape.longest, shape.rope_base, device)

    def load(self, tensors: Mapping[str, np.ndarray], version: str) -> None:
        """Take weights in: whole layers, whichever and in whatever order.

        Parameters:
            tensors: float32 by checkpoint name; on a CPU their memory is used as it lies, so it must stay.
            version: whose they are.

        Errors: `MixedVersions` while other weights are loaded; `InputError` for a tensor that is missing from its
            layer, has another shape or is not float32, or an unknown one.
        """
        if self.version not in ("", version):
            raise MixedVersions("A block", version, self.version)
        every = self.shape.tensors(0, self.shape.layers)
        for name, values in tensors.items():
            if name not in every:
                raise InputError("is no tensor of this model", "give the blocks of this model", field=name)
            if values.shape != every[name] or values.dtype != np.float32:
                remedy = f"give float32 {every[name]}"
                raise InputError(f"is {values.dtype} {values.shape}", remedy, field=name)
        for layer in sorted({layer for name in tensors if (layer := layer_of(name)) is not None}):
            for name in self.shape.tensors(layer, 1):
                if name not in tensors:
                    raise InputError("is missing", "give whole layers", field=name)
        self.version = version
        self._weights |= {name: self._places.place(values) for name, values in tensors.items()}
        self._list_layers()

    def free(self, first: int, count: int) -> None:
        """Forget some layers, with the embedding and the head where those go with them."""
        for name in self.shape.tensors(first, count):
            self._weights.pop(name, None)
        self._list_layers()
        if not self._weights:
            self.version = ""

    def layers(self) -> list[int]:
        """The layers that can run now, in order."""
        return list(self._layers)

    def weight(self, name: str) -> Any:
        """A loaded tensor, once it is there."""
        try:
            return self._places.ready(self._weights[name])
        except KeyError:
            raise InputError("is not loaded here", "load its block first", field=name) from None

    def embed(self, tokens: Sequence[Sequence[int]]) -> list[Any]:
        """Activations of the tokens of each request, (tokens, hidden) each; needs the first block."""
        import torch

        table = self.weight(EMBEDDING)
        return [table[torch.tensor(list(one), dtype=torch.long, device=self.device)] for one in tokens]

    def run(self, first: int, count: int, hidden: Sequence[Any], caches: Sequence[KvCache]) -> list[Any]:
        """Run some layers on the activations of each request and return theirs.

        Parameters:
            first, count: the layers; all must be loaded.
            hidden: for each request the activations of its new tokens, (tokens, hidden).
            caches: for each request its cache, which grows by these tokens in these layers.

        Errors: `MixedVersions` for a cache that other weights made; `InputError` for a layer that is not loaded, or a
            request longer than its cache.
        """
        import torch

        check_range(self.shape, first, count)
        missing = sorted(set(range(first, first + count)) - set(self._layers))
        if missing:
            raise InputError(f"is {missing[0]}, which is not loaded here", "load its block first", field="layer")
        for cache in caches:
            cache.belong_to(self.version)
        sizes = [len(one) for one in hidden]
        rows = ops.padded(torch.cat(list(hidden)), self.arithmetic)
        for layer in range(first, first + count):
            rows = self._layer(layer, rows, sizes, caches)
        return list(rows[: sum(sizes)].split(sizes))

    def logits(self, hidden: Sequence[Any]) -> Any:
        """Logits after the last token of each request, (requests, vocabulary); needs the last block."""
        import torch

        return self.all_logits(torch.stack([one[-1] for one in hidden]))

    def all_logits(self, rows: Any) -> Any:
        """Logits after every token, (tokens, vocabulary); needs the last block."""
        import torch

        normed = ops.norm(ops.padded(rows, self.arithmetic), self.weight(NORM), self.shape.epsilon)
        return torch.nn.functional.linear(normed, self.weight(HEAD))[: len(rows)]

    def _list_layers(self) -> None:
        self._layers = sorted({layer for name in self._weights if (layer := layer_of(name)) is not None})

    def _layer(self, layer: int, rows: Any, sizes: Sequence[int], caches: Sequence[KvCache]) -> Any:
        import torch

        def project(name: str, given: Any) -> Any:
            return torch.nn.functional.linear(given, self.weight(f"model.layers.{layer}.{name}.weight"))

        def normed(name: str) -> Any:
            return ops.norm(rows, self.weight(f"model.layers.{layer}.{name}.weight"), self.shape.epsilon)

        def heads(name: str, count: int) -> Any:
            return project(name, inside)[: sum(sizes)].view(-1, count, self.shape.head_width).split(sizes)

        shape, inside, mixed = self.shape, normed("input_layernorm"), []
        query = heads("self_attn.q_proj", shape.heads)
        keys, values = heads("self_attn.k_proj", shape.kv_heads), heads("self_attn.v_proj", shape.kv_heads)
        for asked, new_keys, new_values, cache in zip(query, keys, values, caches, strict=True):
            start = cache.length(layer)
            place = slice(start, start + len(asked))
            turns = self._angles[0][place], self._angles[1][place]
            every = cache.add(layer, ops.rotate(new_keys, *turns), new_values)
            mixed.append(ops.attend(ops.rotate(asked, *turns), *every, self.arithmetic))
        rows = rows + project("self_attn.o_proj", ops.padded(torch.cat(mixed), self.arithmetic))
        inside = normed("post_attention_layernorm")
        gate = torch.nn.functional.silu(project("mlp.gate_proj", inside))
        return rows + project("mlp.down_proj", gate * project("mlp.up_proj", inside))
