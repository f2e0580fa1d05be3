"""A user's dispatch function as plain Python, asked by the SimPy engine."""

from collections.abc import Callable

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
    from workbench.serving.simulated.run import simulate

    def choose(places, outstanding, tokens, draw, turn):
        try:
            k = function(places, outstanding, tokens, draw, turn)
            position = int(k) if 0 <= k < places.size and int(k) == k else None
        except Exception as error:
            text = " ".join(str(error).split()) or "no message"
            raise UserError(f"The dispatch function failed with {type(error).__name__}: {text}; correct it.") from error
        if position is None:
            raise UserError(
                f"The dispatch function returned {k!r:.40}, no position in the {places.size} places it was offered; "
                "return 0 to places.size - 1."
            )
        return position

    return simulate(lowered, choose)
