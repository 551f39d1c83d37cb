"""neuronxcc.starfish: what tests of public kernels import of it."""
