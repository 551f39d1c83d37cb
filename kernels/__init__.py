"""Our own NKI kernels of the training workload; README.md lists them with predicted times."""
