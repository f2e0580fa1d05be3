"""How large a small transformer is, and how its layers are cut into blocks."""

from pydantic import model_validator

from workbench.records import Asked, AtLeastOne, Positive, whole

FLOAT_BYTES = 4


class Shape(Asked):
    """A Llama-shaped transformer: RMSNorm, rotary positions, grouped-query attention, SwiGLU, single precision.

    Attributes:
        layers: number of layers.
        hidden: width of an activation.
        heads, kv_heads: heads of the queries, and of keys and values; the second divides the first.
        ffn: width inside the feed-forward part.
        vocabulary: number of tokens.
        longest: most tokens of a request, prompt and output together.
        rope_base: base of the rotary angles.
        epsilon: added to the mean square in RMSNorm.
    """

    layers: AtLeastOne = 8
    hidden: AtLeastOne = 256
    heads: AtLeastOne = 8
    kv_heads: AtLeastOne = 4
    ffn: AtLeastOne = 688
    vocabulary: AtLeastOne = 512
    longest: AtLeastOne = 512
    rope_base: Positive = 10_000.0
    epsilon: Positive = 1e-5

    @model_validator(mode="after")
    def _fits(self) -> "Shape":
        if self.hidden % (2 * self.heads):
            raise ValueError(f"hidden is {self.hidden}; give a multiple of twice the {self.heads} heads")
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads is {self.kv_heads}; give a divisor of the {self.heads} heads")
        return self

    @property
    def head_width(self) -> int:
        """Width of one head."""
        return self.hidden // self.heads

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes that keys and values of one token take in all layers."""
        return 2 * self.layers * self.kv_heads * self.head_width * FLOAT_BYTES

    def tensors(self, first: int, count: int) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the weights of some layers; the first layer brings the embedding, the last the head.

        Names are those of Llama checkpoints as the field publishes them.

        Parameters:
            first, count: the layers.
        """
        check_range(self, first, count)
        kv, found = self.kv_heads * self.head_width, {}
        if first == 0:
            found["model.embed_tokens.weight"] = (self.vocabulary, self.hidden)
        for layer in range(first, first + count):
            sizes = {
                "input_layernorm": (self.hidden,),
                "self_attn.q_proj": (self.hidden, self.hidden),
                "self_attn.k_proj": (kv, self.hidden),
                "self_attn.v_proj": (kv, self.hidden),
                "self_attn.o_proj": (self.hidden, self.hidden),
                "post_attention_layernorm": (self.hidden,),
                "mlp.gate_proj": (self.ffn, self.hidden),
                "mlp.up_proj": (self.ffn, self.hidden),
                "mlp.down_proj": (self.hidden, self.ffn),
            }
            found |= {f"model.layers.{layer}.{name}.weight": size for name, size in sizes.items()}
        if first + count == self.layers:
            found["model.norm.weight"] = (self.hidden,)
            found["lm_head.weight"] = (self.vocabulary, self.hidden)
        return found

    def blocks(self, count: int) -> list[tuple[int, int]]:
        """The layers cut into so many neighbouring blocks of (first layer, number of layers), the larger ones first.

        >>> Shape(layers=8).blocks(3)
        [(0, 3), (3, 3), (6, 2)]
        """
        small, larger = divmod(self.layers, whole(count, "count", 1, self.layers))
        cut, first = [], 0
        for block in range(count):
            length = small + (block < larger)
            cut.append((first, length))
            first += length
        return cut


def check_range(shape: Shape, first: int, count: int) -> None:
    """Refuse layers that the model does not have."""
    first = whole(first, "first", 0, shape.layers - 1)
    whole(count, "count", 1, shape.layers - first)


def layer_of(name: str) -> int | None:
    """The layer that a tensor belongs to by its name; None for embedding, final norm and head."""
    parts = name.split(".")
    return int(parts[2]) if parts[1] == "layers" else None
