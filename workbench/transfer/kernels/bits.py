"""Bit arithmetic on vertex numbers."""

from workbench.jit import kernel


@kernel
def ones(number):
    """How many bits of a non-negative integer are set."""
    count = 0
    while number:
        number &= number - 1
        count += 1
    return count


@kernel
def highest(number):
    """Position of the highest set bit of a positive integer."""
    place = 0
    while number > 1:
        number >>= 1
        place += 1
    return place


@kernel
def distance_to_next(number, bit, width):
    """Cyclic distance (1..width) from a position upward to the next set bit of a positive number of `width` bits."""
    for distance in range(1, width + 1):
        if (number >> ((bit + distance) % width)) & 1:
            return distance
    return width
