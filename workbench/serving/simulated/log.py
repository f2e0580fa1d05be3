"""What an engine writes down: when every step ended, and in which steps every request made its tokens."""

import numpy as np

from workbench.serving.simulated.request import Request


class Iteration:
    """A step that came to its end: the how-manieth of which instance, and when."""

    __slots__ = ("end_s", "index", "instance")

    def __init__(self, instance: int, index: int, end_s: float):
        self.instance, self.index, self.end_s = instance, index, end_s


class Log:
    """End times by instance, and runs of tokens made in consecutive steps by request."""

    def __init__(self, instances: int):
        self.end_s: list[list[float]] = [[] for _ in range(instances)]
        self.runs: list[tuple[int, int, int, int]] = []

    def iteration(self, instance: int, end_s: float) -> Iteration:
        """The next iteration of an instance, which ends now."""
        ends = self.end_s[instance]
        ends.append(end_s)
        return Iteration(instance, len(ends) - 1, end_s)

    def tokens(self, requests: list[Request], iteration: Iteration, before: Iteration) -> None:
        """Each makes its next token in `iteration`, which follows `before` on the same instance."""
        for request in requests:
            if request.last is not before:
                self.runs.append((request.index, request.made, iteration.instance, iteration.index))
                if not request.made:
                    request.first_token_s = iteration.end_s
            request.last = iteration
            request.made += 1

    def void(self, request: Request) -> None:
        """All tokens of a request so far are void."""
        self.runs = [run for run in self.runs if run[0] != request.index]

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """End times of all instances, one after the other, and where those of each begin (and the last end)."""
        offsets = np.cumsum([0] + [len(ends) for ends in self.end_s])
        return np.array([time_s for ends in self.end_s for time_s in ends], dtype=float), offsets

    def segments(self, made: np.ndarray) -> np.ndarray:
        """Rows (request, first token, tokens, instance, first iteration), in the order of the first two."""
        runs = np.array(sorted(self.runs), dtype=np.int64).reshape(-1, 4)
        request, first = runs[:, 0], runs[:, 1]
        stops = made[request]  # a run stops where the request's next one begins
        same = request[:-1] == request[1:]
        stops[:-1][same] = first[1:][same]
        return np.column_stack([request, first, stops - first, runs[:, 2:]])
