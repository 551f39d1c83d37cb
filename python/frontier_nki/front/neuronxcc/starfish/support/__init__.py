"""neuronxcc.starfish.support."""
