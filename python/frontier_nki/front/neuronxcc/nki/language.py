"""neuronxcc.nki.language."""

from frontier_nki.old import language as _language

globals().update(_language.public())
