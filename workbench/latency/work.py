"""What a step computes and moves on one accelerator of a tensor-parallel group, from the model's shape alone."""

from workbench.errors import UserError
from workbench.profiles import model as find_model
from workbench.profiles.dtypes import bits_of
from workbench.profiles.model_record import Model
from workbench.records import Record, whole

ACTIVATION_BYTES = 2
"""Activations are 16 bits wide whatever the weights are stored in."""


class Matrix(Record):
    """One weight matrix as one accelerator holds it.

    Attributes:
        name: what it projects.
        rows: width of its input, k.
        columns: width of its output, n.
        bits: stored bits a weight.
    """

    name: str
    rows: int
    columns: int
    bits: float

    @property
    def weight_bytes(self) -> float:
        """Bytes of its weights."""
        return self.rows * self.columns * self.bits / 8

    @property
    def flops_per_token(self) -> float:
        """One multiplication and one addition a weight."""
        return 2.0 * self.rows * self.columns

    @property
    def activation_bytes_per_token(self) -> float:
        """Its input read and its output written."""
        return float(ACTIVATION_BYTES * (self.rows + self.columns))


class Work(Record):
    """What one accelerator of the group does.

    Attributes:
        layers: how many.
        matrices: the four of a layer.
        head: the output matrix, applied to the last token of a prompt and to every decoding request.
        pair_flops: scores and weighted sum of one (query, key) pair in all layers: 4 x heads x head width a layer.
        context_bytes: keys and values of one cached token, all layers; with grouped queries only the KV heads count.
        query_bytes_per_token: a layer's queries read and attention outputs written.
        elementwise_bytes_per_token: a layer's norms, residual sums, rotary embedding and activation function, read and
            written; norms and sums are done on every accelerator, the rest on its share.
        kv_heads: on one accelerator.
        message_bytes_per_token: a layer's two all-reduces of the hidden state, 0 without tensor parallelism.
    """

    layers: int
    matrices: tuple[Matrix, ...]
    head: Matrix
    pair_flops: float
    context_bytes: float
    query_bytes_per_token: float
    elementwise_bytes_per_token: float
    kv_heads: int
    message_bytes_per_token: float

    @property
    def weight_bytes(self) -> float:
        """Bytes of all matrices; the embedding is looked up, not read."""
        return self.layers * sum(matrix.weight_bytes for matrix in self.matrices) + self.head.weight_bytes

    @property
    def flops_per_token(self) -> float:
        """Arithmetic of all layers' matrices for one token."""
        return self.layers * sum(matrix.flops_per_token for matrix in self.matrices)


def work_of(model: Model, tp: int = 1) -> Work:
    """The work of a step on one of `tp` accelerators.

    Parameters:
        model: a dense model in the number formats it is run in.
        tp: accelerators that share every layer (Megatron-style: two all-reduces a layer).

    Raises:
        UserError: an MoE or MLA model, or a TP that does not divide heads, KV heads or the feed-forward width.

    >>> from workbench.profiles import model
    >>> work = work_of(model("llama-3-8b"))
    >>> work.context_bytes, [(m.rows, m.columns) for m in work.matrices]
    (131072.0, [(4096, 6144), (4096, 4096), (4096, 28672), (14336, 4096)])
    """
    model = find_model(model)
    _check(model, tp)
    bits = bits_of(model.weight_dtype)
    queries, keys = model.heads * model.head_dim, model.kv_heads * model.head_dim
    into = 2 * model.intermediate if model.gated_ffn else model.intermediate
    shapes = (
        ("query, key, value", model.hidden, (queries + 2 * keys) // tp),
        ("attention output", queries // tp, model.hidden),
        ("feed-forward in", model.hidden, into // tp),
        ("feed-forward out", model.intermediate // tp, model.hidden),
    )
    # A norm reads and writes, a residual sum reads two and writes one; there are two of each.
    touched = model.norms_per_layer * 2 * model.hidden + 2 * 3 * model.hidden
    touched += (2 * (queries + keys) + into + model.intermediate) / tp
    return Work(
        layers=model.layers,
        matrices=tuple(Matrix(name=name, rows=rows, columns=columns, bits=bits) for name, rows, columns in shapes),
        head=Matrix(name="output head", rows=model.hidden, columns=-(-model.vocab // tp), bits=bits),
        pair_flops=4.0 * model.layers * queries / tp,
        context_bytes=model.layers * model.kv_bytes_per_token_per_layer / tp,
        query_bytes_per_token=2.0 * ACTIVATION_BYTES * queries / tp,
        elementwise_bytes_per_token=float(ACTIVATION_BYTES * touched),
        kv_heads=model.kv_heads // tp,
        message_bytes_per_token=2.0 * ACTIVATION_BYTES * model.hidden if tp > 1 else 0.0,
    )


def _check(model: Model, tp: int) -> None:
    if not model.dense:
        kind = "mixture-of-experts" if model.experts else "latent-attention"
        raise UserError(
            f"The step time of {model.name} cannot be computed: it is a {kind} model ({model.parameters / 1e9:.0f} "
            f"billion parameters, {model.active_parameters / 1e9:.0f} billion of them active), and only dense models "
            "with ordinary KV heads are modelled; choose a dense model."
        )
    whole(tp, "tp", 1)
    for count, what in (
        (model.heads, "attention heads"),
        (model.kv_heads, "KV heads"),
        (model.intermediate, "feed-forward columns"),
    ):
        if count % tp:
            raise UserError(
                f"{model.name} has {count} {what}, which TP {tp} does not divide "
                f"({count} = {count // tp} x {tp} + {count % tp}); choose a TP that divides {count}."
            )
