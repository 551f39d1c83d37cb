"""Serves `nki` and `neuronxcc` to this process: a finder in front of sys.meta_path.

AWS's own package is not touched and not hidden from other processes. When it is installed, installed() says
where.
"""

import importlib.util
import os
import sys

_FRONT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "front")
_ROOTS = ("nki", "neuronxcc")


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.split(".", 1)[0] not in _ROOTS:
            return None
        base = os.path.join(_FRONT, *name.split("."))
        if os.path.isdir(base):
            return importlib.util.spec_from_file_location(
                name, os.path.join(base, "__init__.py"), submodule_search_locations=[base]
            )
        if os.path.exists(base + ".py"):
            return importlib.util.spec_from_file_location(name, base + ".py")
        return None


def aws_package():
    """Path of AWS's own nki or neuronxcc, or None."""
    for finder in sys.meta_path:
        if finder is Finder or not hasattr(finder, "find_spec"):
            continue
        for root in _ROOTS:
            spec = finder.find_spec(root, None)
            if spec is not None:
                return spec.origin or next(iter(spec.submodule_search_locations or []), root)
    return None


def install():
    """From now on `import nki` and `import neuronxcc.nki` in this process mean the simulator's."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)


def remove():
    if Finder in sys.meta_path:
        sys.meta_path.remove(Finder)
    for name in [m for m in sys.modules if m.split(".", 1)[0] in _ROOTS]:
        del sys.modules[name]
