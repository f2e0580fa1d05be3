"""One step of an engine: who takes part, with how many tokens, and how long it takes."""

from workbench.serving.simulated.request import Request


class Step:
    """Decodes that make one token each, and prefills with the chunk that each stores."""

    __slots__ = ("chunks", "decodes", "seconds")

    def __init__(self, running: list[Request], budget: int, chunk: int, prefill_apart: bool, form: list[list[float]]):
        """Share out a budget of tokens: decodes first, then prefills, each kind in the order of admission.

        Parameters:
            running: the requests in the order of admission.
            budget: most tokens of the step.
            chunk: most prefill tokens of one request.
            prefill_apart: whether decodes sit out a step in which anything is left to prefill.
            form: two rows of five coefficients, see `_row_seconds`; the slower one (compute or memory) counts.
        """
        self.decodes = [request for request in running if not request.prefilling]
        self.chunks: list[tuple[Request, int]] = []
        if len(self.decodes) < len(running) and prefill_apart:
            self.decodes = []
        elif len(self.decodes) > budget:
            del self.decodes[budget:]
        if len(self.decodes) < len(running):
            self._share_out(running, budget - len(self.decodes), chunk)
        self.seconds = self._seconds(form)

    @property
    def prompt_tokens(self) -> int:
        """Of all chunks."""
        return sum(tokens for _, tokens in self.chunks)

    @property
    def tokens(self) -> int:
        """Of chunks, and one of each that decodes."""
        return self.prompt_tokens + len(self.decodes)

    def _share_out(self, running: list[Request], budget: int, chunk: int) -> None:
        for request in running:
            if request.prefilling and budget:
                tokens = min(chunk, request.need - request.stored, budget)
                self.chunks.append((request, tokens))
                budget -= tokens

    def _seconds(self, form: list[list[float]]) -> float:
        new = squares = 0
        for request, tokens in self.chunks:
            new += tokens
            squares += (request.stored + tokens) ** 2 - request.stored**2
        stored = sum([request.stored for request in self.decodes])
        members = len(self.decodes) + len(self.chunks)
        compute, memory = form
        return max(
            _row_seconds(compute, new, squares, stored, members), _row_seconds(memory, new, squares, stored, members)
        )


def _row_seconds(row: list[float], new: int, squares: int, stored: int, members: int) -> float:
    """One bound of a step's time, its parts added in this order.

    Parameters:
        row: constant (s), then per prefill token, per squared token of prefill, per token read, per request.
        new: prefill tokens; squares: by how much the squares of the prefills' lengths grow (token²).
        stored: tokens that the decodes read; members: requests that take part.
    """
    constant, per_new, per_square, per_stored, per_member = row
    return constant + per_new * new + per_square * squares + per_stored * stored + per_member * members
