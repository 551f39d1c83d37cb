"""The older style (neuronxcc.nki): values, masks, index tiles, block dimensions, as a thin layer."""
