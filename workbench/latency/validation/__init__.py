"""Step times beside other people's measurements: kernels, layers, whole servers."""
