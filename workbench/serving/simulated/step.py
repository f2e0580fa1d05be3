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
            form: two rows of five coefficients, see `seconds_of`.
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

    def _share_out(self, running: list[Request], budget: int, chunk: int) -> None:
        for request in running:
            if request.prefilling and budget:
                tokens = min(chunk, request.need - request.stored, budget)
                self.chunks.append((request, tokens))
                budget -= tokens

    def _seconds(self, form: list[list[float]]) -> float:
        new = squares = stored = 0
        for request, tokens in self.chunks:
            new += tokens
            squares += (request.stored + tokens) ** 2 - request.stored**2
        for request in self.decodes:
            stored += request.stored
        return seconds_of(form, new, squares, stored, len(self.decodes) + len(self.chunks))


def seconds_of(form: list[list[float]], new: int, squares: int, stored: int, members: int) -> float:
    """Seconds of a step: the larger of two sums, each c0 + c1 new + c2 squares + c3 stored + c4 members, in that order.

    Parameters:
        form: the coefficients (s, s/token, s/token², s/token, s/request), one row for compute and one for memory.
        new: prefill tokens; squares: by how much the squares of the prefills' lengths grow (token²).
        stored: tokens that the decodes read; members: requests that take part.
    """
    first, second = (c[0] + c[1] * new + c[2] * squares + c[3] * stored + c[4] * members for c in form)
    return first if first > second else second
