"""nki.isa: every instruction of the core's descriptor table, dst first."""

from frontier_nki import isa as _isa

globals().update(_isa.public())
