"""`neuronxcc` as a script sees it: the older style, on the simulated core."""
