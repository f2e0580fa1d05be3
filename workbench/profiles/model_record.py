"""One language model by its shape; every size is computed from the shape."""

import itertools
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from workbench.errors import InputError, UserError
from workbench.profiles.dtypes import BITS, bits_of
from workbench.profiles.quantities import Alternates, Count, Flag, Number, ZeroOrMore, alternate_value, sources_of
from workbench.records import Quantity, Record, Source, Status


def _known(dtype: str) -> str:
    if dtype not in BITS:
        raise ValueError(f"is the number format {dtype!r}; use one of {', '.join(BITS)}")
    return dtype


Dtype = Annotated[str, AfterValidator(_known)]


class Experts(Record):
    """Mixture of experts: routed and shared experts, how many run per token, their width, dense layers in front."""

    routed: Count
    active: Count
    shared: ZeroOrMore = 0
    intermediate: Count
    dense_layers: ZeroOrMore = 0


class LatentAttention(Record):
    """Multi-head latent attention: the cache holds one vector of kv_rank + rope_dim per token and layer."""

    kv_rank: Count
    rope_dim: Count


class Model(Record):
    """A decoder-only language model.

    Attributes:
        name, label, aliases, note: what it is called, and what a reader should know.
        family: architecture, such as "llama" or "opt".
        layers, hidden, intermediate: depth, width of the residual stream, width of the feed-forward network.
        heads, kv_heads, head_dim: query heads, key/value heads, width of each.
        vocab: rows of the embedding, padding included.
        max_context: tokens the published model was trained or configured for.
        tied_embeddings: whether the output head is the embedding.
        gated_ffn: three matrices (SwiGLU) instead of two.
        qkv_bias, output_bias, ffn_bias: biases of the projections.
        norm, norms_per_layer: kind of normalisation and how many a layer has.
        qk_norm: an RMS norm of head_dim on queries and on keys.
        embedding_norm: a norm right behind the embedding (BLOOM).
        learned_positions: rows of a learned position table, 0 for rotary or ALiBi.
        weight_dtype, kv_dtype: number formats, see `dtypes.BITS`.
        experts, latent_attention: for MoE and MLA models, whose totals are the published ones.
        published_parameters, published_active_parameters: totals somebody published.
        overrides: figures of single papers that differ from what the shape gives.
        status, source: where the shape comes from.
    """

    name: str = Field(min_length=1)
    label: str = ""
    aliases: tuple[str, ...] = ()
    family: str
    layers: Count
    hidden: Count
    intermediate: Count
    heads: Count
    kv_heads: Count
    head_dim: Count
    vocab: Count
    max_context: Count
    tied_embeddings: Flag = False
    gated_ffn: Flag = True
    qkv_bias: Flag = False
    output_bias: Flag = False
    ffn_bias: Flag = False
    norm: Literal["rmsnorm", "layernorm"] = "rmsnorm"
    norms_per_layer: Count = 2
    qk_norm: Flag = False
    embedding_norm: Flag = False
    learned_positions: ZeroOrMore = 0
    weight_dtype: Dtype = "bf16"
    kv_dtype: Dtype = "bf16"
    experts: Experts | None = None
    latent_attention: LatentAttention | None = None
    published_parameters: Number | None = None
    published_active_parameters: Number | None = None
    overrides: Alternates = ()
    status: Status
    source: str = Field(min_length=1)
    note: str = ""

    @model_validator(mode="after")
    def _is_consistent(self):
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} heads do not divide among {self.kv_heads} kv_heads; correct one")
        if (self.experts or self.latent_attention) and self.published_parameters is None:
            raise ValueError("an MoE or MLA model needs published_parameters; add it")
        return self

    @property
    def dense(self) -> bool:
        """Whether the shape alone gives every size (no experts, no latent attention)."""
        return self.experts is None and self.latent_attention is None

    @property
    def layer_parameters(self) -> int:
        """Parameters of one transformer layer.

        Raises:
            UserError: an MoE or MLA model, whose layers this workbench does not take apart.
        """
        self._require_dense("parameters of a layer")
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = self.hidden * (2 * queries + 2 * keys)
        ffn = (3 if self.gated_ffn else 2) * self.hidden * self.intermediate
        biases = self.qkv_bias * (queries + 2 * keys) + self.output_bias * self.hidden
        biases += self.ffn_bias * ((2 if self.gated_ffn else 1) * self.intermediate + self.hidden)
        return (
            attention + ffn + biases + self.norms_per_layer * self._norm_parameters + self.qk_norm * 2 * self.head_dim
        )

    @property
    def embedding_parameters(self) -> int:
        """Parameters in front of the first layer: token table, learned positions, embedding norm."""
        rows = self.vocab + self.learned_positions
        return rows * self.hidden + self.embedding_norm * self._norm_parameters

    @property
    def head_parameters(self) -> int:
        """Parameters behind the last layer: final norm, and the output matrix unless it is the embedding."""
        return self._norm_parameters + (0 if self.tied_embeddings else self.vocab * self.hidden)

    @property
    def parameters(self) -> int:
        """All parameters: computed from the shape; for MoE and MLA models the published total."""
        if not self.dense:
            return round(self.published_parameters.value)
        return self.layers * self.layer_parameters + self.embedding_parameters + self.head_parameters

    @property
    def active_parameters(self) -> int:
        """Parameters that take part in one token."""
        if self.published_active_parameters is not None and not self.dense:
            return round(self.published_active_parameters.value)
        return self.parameters

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights."""
        return self._bytes(self.parameters)

    @property
    def layer_bytes(self) -> int:
        """Bytes of one layer's weights."""
        return self._bytes(self.layer_parameters)

    @property
    def embedding_bytes(self) -> int:
        """Bytes in front of the first layer."""
        return self._bytes(self.embedding_parameters)

    @property
    def kv_bytes_per_token_per_layer(self) -> float:
        """Bytes one token adds to the KV cache of one layer."""
        if self.latent_attention is not None:
            numbers = self.latent_attention.kv_rank + self.latent_attention.rope_dim
        else:
            numbers = 2 * self.kv_heads * self.head_dim
        return numbers * bits_of(self.kv_dtype) / 8

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes one token adds to the KV cache of all layers."""
        return round(self.layers * self.kv_bytes_per_token_per_layer)

    @property
    def activation_bytes_per_token(self) -> int:
        """Bytes of one token's hidden state at a cut between layers: 16 bits a number, 32 where the weights have 32."""
        return self.hidden * (4 if self.weight_dtype == "fp32" else 2)

    def block_layers(self, blocks: int) -> tuple[int, ...]:
        """Layers in each of `blocks` contiguous blocks, as even as possible, the larger ones first."""
        if isinstance(blocks, bool) or not isinstance(blocks, int) or not 1 <= blocks <= self.layers:
            raise InputError(
                f"{self.name} cannot be cut into {blocks} blocks of whole layers", f"choose 1 to {self.layers} blocks"
            )
        share, rest = divmod(self.layers, blocks)
        return (share + 1,) * rest + (share,) * (blocks - rest)

    def block_bytes(self, blocks: int) -> tuple[int, ...]:
        """Bytes of each of `blocks` execution blocks of contiguous layers; they add up to `weight_bytes`.

        The embedding rides in the first block, final norm and output matrix in the last (λScale §4.2). A tied output
        matrix is counted once, in the first block: a last stage on another machine needs `embedding_bytes` more.

        Parameters:
            blocks: number of blocks, 1 to the number of layers.
        """
        counts = self.block_layers(blocks)
        per_layer, ends = self.layer_parameters, []
        reached = self.embedding_parameters
        for count in counts:
            reached += count * per_layer
            ends.append(reached)
        ends[-1] += self.head_parameters
        # Differences of rounded running totals: also formats of a fraction of a byte add up to the whole.
        totals = [0, *(self._bytes(end) for end in ends)]
        return tuple(after - before for before, after in itertools.pairwise(totals))

    def with_dtype(self, weights: str | None = None, kv: str | None = None) -> "Model":
        """The same model in other number formats.

        Parameters:
            weights, kv: formats of weights and KV cache; None leaves one as it is.
        """
        update = {}
        for field, dtype in (("weight_dtype", weights), ("kv_dtype", kv)):
            if dtype is not None:
                bits_of(dtype)
                update[field] = dtype
        return self.model_copy(update=update)

    def override(self, preset: str, quantity: str) -> Quantity:
        """What one paper or artifact says instead of the computed number."""
        return alternate_value(f"model {self.name}", self.overrides, preset, quantity)

    def sources(self, alternates: bool = False) -> list[Source]:
        """The shape and every further number with where it comes from; on request also the overrides."""
        shape = f"{self.layers} layers x {self.hidden}, {self.heads}/{self.kv_heads} heads of {self.head_dim}"
        return [
            Source(quantity="shape", value=shape, status=self.status, source=self.source),
            *sources_of(self, alternates),
        ]

    @property
    def _norm_parameters(self) -> int:
        return self.hidden * (2 if self.norm == "layernorm" else 1)

    def _bytes(self, parameters: int) -> int:
        return round(parameters * bits_of(self.weight_dtype) / 8)

    def _require_dense(self, what: str) -> None:
        if not self.dense:
            kind = "mixture-of-experts" if self.experts else "latent-attention"
            raise UserError(
                f"The {what} of {self.name} cannot be computed: it is a {kind} model, "
                "of which only the published totals are known here; choose a dense model."
            )
