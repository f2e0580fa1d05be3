"""Records in, results out: costs and densities, the prefix tree and its plan, workloads, runs and bounds."""
