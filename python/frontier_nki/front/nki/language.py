"""nki.language."""

from frontier_nki import language as _language

globals().update(_language.public())
