"""The older style (neuronxcc.nki): values, masks, index tiles, block dimensions; a thin layer over the core."""
