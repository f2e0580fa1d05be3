"""Whether a request fits: the most KV that those in flight will hold at any time, if nobody else came."""

from workbench.jit import kernel

FINISH, SINCE = 0, 1
"""Columns of a row in flight: the step after which it is expected to be done, and the step at which it would have held
nothing, so that it holds `step - SINCE` private tokens."""


@kernel
def predicted_peak(rows, count, now, finish, since):
    """Most private KV tokens that the rows and one more will hold together at any step from now on.

    Parameters:
        rows: int64[n, 2], columns FINISH and SINCE, by descending FINISH.
        count: how many rows there are.
        now: the present step.
        finish, since: of the one more; a finish of -1 for none.

    Everyone grows by a token a step until its finish. When the k-th last one finishes, the k last ones hold
    Σ (finish_k - since_i); the largest of these sums is the peak. Who should be done already is taken to keep what it
    has, as long as the others run.
    """
    total, alive, overdue, peak = 0, 0, 0, 0
    placed = finish < 0
    place = 0
    while place < count or not placed:
        if not placed and (place == count or finish >= rows[place, FINISH]):
            end, start = finish, since
            placed = True
        else:
            end, start = rows[place, FINISH], rows[place, SINCE]
            place += 1
        if end <= now:
            overdue += now - start
            continue
        alive += 1
        total += start
        peak = max(peak, alive * end - total)
    return peak + overdue
