"""neuronxcc.nki.isa: every instruction of the core's descriptor table, returning its result."""

from frontier_nki.old import isa as _isa

globals().update(_isa.public())
