"""Dispatch to the fastest free server (JFFC of the server-chain paper, its Algorithm 3)."""

from workbench.jit import kernel


def fastest_first(rates_per_s) -> list[int]:
    """Order of server classes for dispatch: by falling rate, equal rates by index.

    >>> fastest_first([1.0, 3.0, 1.0])
    [1, 0, 2]
    """
    return sorted(range(len(rates_per_s)), key=lambda k: -rates_per_s[k])


@kernel
def pick_fastest_free(now_s, free_from_s):
    """The first class with a free slot at `now_s`, or -1 if there is none.

    Parameters:
        now_s: the present instant.
        free_from_s: float64[K], classes in the order of `fastest_first`: when a slot of each is next free.
    """
    for place in range(free_from_s.size):
        if free_from_s[place] <= now_s:
            return place
    return -1
