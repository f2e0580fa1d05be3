"""Seconds of steps and blocks of tokens, in plain Python."""

from workbench.pooling.model.lowered import Models, Rules


class Steps:
    """How long steps of the models take."""

    def __init__(self, models: Models, rules: Rules):
        self._prefill, self._decode = models.prefill.tolist(), models.decode.tolist()
        self._block_tokens = rules.block_tokens

    def prompt_s(self, model: int, tokens: int) -> float:
        """Seconds of one prompt."""
        constant, per_token, per_square, least = self._prefill[model]
        return constant + max(least, tokens * per_token) + float(tokens) * float(tokens) * per_square

    def step_s(self, model: int, context: int, requests: int) -> float:
        """Seconds of one decode step."""
        constant, per_context, per_request = self._decode[model]
        return constant + context * per_context + requests * per_request

    def blocks(self, tokens: int) -> int:
        """KV blocks of so many tokens."""
        return -(-tokens // self._block_tokens)
