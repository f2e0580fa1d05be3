"""How long a step takes whose compute and memory operations run side by side."""

import numpy as np

from workbench.jit import kernel

SEQUENTIAL, INTERFERENCE, IDEAL = "sequential", "interference", "ideal"
SLOPES = {SEQUENTIAL: (1.0, 1.0), INTERFERENCE: (1 / 2, 1 / 3), IDEAL: (0.0, 0.0)}
"""Named pairs of slopes: one after the other (the sum), NanoFlow's measured interference, none (the maximum)."""


@kernel
def overlapped_s(compute_s, memory_s, memory_slope, compute_slope):
    """Seconds of compute and memory work that overlap: max(T_c + a T_m, T_m + b T_c); scalars or arrays.

    Parameters:
        compute_s, memory_s: what each kind of work takes alone, in seconds.
        memory_slope: a, what a second of memory work adds where compute is the longer part; 0 to 1.
        compute_slope: b, what a second of compute adds where memory is the longer part; 0 to 1.

    With (1, 1) it is the sum, with (0, 0) the maximum.
    """
    return np.maximum(compute_s + memory_slope * memory_s, memory_s + compute_slope * compute_s)


@kernel
def with_network_s(overlapped, network_s, hidden):
    """Seconds of a step with collectives of tensor parallelism: behind the rest, or hidden beneath it.

    Parameters:
        overlapped: compute and memory work of the step, in seconds.
        network_s: collectives of the step alone, in seconds.
        hidden: whether collectives run beside the rest (the step then takes the longer of the two).
    """
    return np.maximum(overlapped, network_s) if hidden else overlapped + network_s
