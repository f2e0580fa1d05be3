"""The requests as a dual scan emits them when both ends take turns to keep the density of all."""

from workbench.jit import kernel


@kernel
def emit(compute, read, emitted):
    """Fill the places of an order as they are taken from its two ends.

    Parameters:
        compute, read: float64[n], tokens that the request at each place computes, and KV tokens that it reads.
        emitted: int64[n].

    The compute-intensive end is next while what was emitted computes less, for what it reads, than all do.
    """
    whole_compute, whole_read = compute.sum(), read.sum()
    left, right = 0, compute.size - 1
    done_compute, done_read = 0.0, 0.0
    for count in range(compute.size):
        if done_compute * whole_read <= done_read * whole_compute:
            place = left
            left += 1
        else:
            place = right
            right -= 1
        emitted[count] = place
        done_compute += compute[place]
        done_read += read[place]
