"""nki.typing: annotations only; nothing is checked by them."""

from frontier_nki import _core


class _Annotation:
    """tensor[128, 512] is the same annotation."""

    def __getitem__(self, shape):
        return _core.Tile

    def __call__(self, *args, **kwargs):
        return _core.Tile


tensor = mutable_tensor = _Annotation()
