"""A user's dispatch function as plain Python, asked by the SimPy engine."""

from collections.abc import Callable

import numpy as np

from workbench.errors import UserError
from workbench.serving.model import Lowered, Outcome


def simulate_asking(lowered: Lowered, function: Callable) -> Outcome:
    """What becomes of every request when a Python function dispatches, by simulation.

    Parameters:
        lowered: the run.
        function: of the signature that `workbench.serving.chooser` states; it need not compile.

    Raises:
        UserError: the function failed, or returned what is no position in the places it was offered.
    """
    from workbench.serving.simulated.run import Cluster

    cluster = Cluster(lowered)
    router = cluster.router

    def choose(request, places, free):
        outstanding = np.array([places[number].outstanding for number in free], dtype=np.int64)
        tokens = np.array([places[number].tokens_left for number in free], dtype=np.int64)
        offered, turn = np.array(free, dtype=np.int64), router.turns[request.model]
        try:
            k = function(offered, outstanding, tokens, np.array(request.draws), turn)
            position = int(k) if 0 <= k < len(free) and int(k) == k else None
        except Exception as error:
            text = " ".join(str(error).split()) or "no message"
            raise UserError(f"The dispatch function failed with {type(error).__name__}: {text}; correct it.") from error
        if position is None:
            raise UserError(
                f"The dispatch function returned {k!r:.40}, no position in the {len(free)} places it was offered; "
                "return 0 to places.size - 1."
            )
        chosen = free[position]
        router.turns[request.model] = (chosen + 1) % len(places)
        return chosen

    router._choose = choose  # the one decision of this router that is the user's
    cluster.run(lowered.until_s)
    return cluster.outcome()
