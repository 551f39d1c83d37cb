"""NKI kernels inside a torch training loop: autograd(forward, backward) makes a differentiable function.

The kernels run on the simulated core with the tensors' own dtypes (float32, bfloat16, float16); torch records the
call, and its backward pass runs the second kernel. Nothing else of a model changes, so a kernel can stand where a
torch function stood while the loss is watched, before it ever sees a chip.
"""

try:
    import torch
except ImportError as missing:
    raise ImportError(
        "frontier_nki.torch needs torch, which this Python has not: python3 -m pip install torch"
    ) from missing

from . import _core

__all__ = ["autograd"]


def _is_tensor(value):
    return isinstance(value, torch.Tensor)


def _many(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


class _Registered:
    """A pair of kernels and how they fit together."""

    def __init__(self, forward, backward, outputs, gradients):
        self.forward, self.backward, self.outputs, self.gradients = forward, backward, outputs, gradients
        self.name = getattr(forward, "__name__", "kernel")

    def places(self, arguments):
        """Which arguments the results of backward belong to, in order."""
        if self.gradients is not None:
            return self.gradients
        return [i for i, a in enumerate(arguments) if _is_tensor(a) and a.is_floating_point()]

    def spread(self, results, arguments):
        """One gradient (or None) per argument, with the argument's shape, dtype and device."""
        places, found = self.places(arguments), [None] * len(arguments)
        if len(results) != len(places):
            raise _core.UsageError(
                f"{self.name}: the backward kernel returns {len(results)} gradients for arguments "
                f"{', '.join(map(str, places))}; say which with gradients=(...)"
            )
        for place, gradient in zip(places, results):
            x = arguments[place]
            if gradient is None:
                continue
            if tuple(gradient.shape) != tuple(x.shape):
                raise _core.UsageError(
                    f"{self.name}: the gradient of argument {place} has the shape {tuple(gradient.shape)}, "
                    f"the argument {tuple(x.shape)}"
                )
            found[place] = gradient.to(device=x.device, dtype=x.dtype)
        return found


class _Call(torch.autograd.Function):
    """A tensor is saved by torch; what is no tensor waits in ctx."""

    @staticmethod
    def forward(ctx, registered, options, *arguments):
        results = registered.forward(*arguments, **options)
        device = next((a.device for a in arguments if _is_tensor(a)), torch.device("cpu"))
        outputs = tuple(r.to(device) for r in _many(results))
        ctx.registered, ctx.options = registered, options
        ctx.plain = [None if _is_tensor(a) else (a,) for a in arguments]
        ctx.save_for_backward(
            *(a for a in arguments if _is_tensor(a)), *(outputs if registered.outputs else ())
        )
        ctx.mark_non_differentiable(*(r for r in outputs if not r.is_floating_point()))
        return outputs if isinstance(results, (tuple, list)) else outputs[0]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *upstream):
        saved = list(ctx.saved_tensors)
        arguments = [saved.pop(0) if plain is None else plain[0] for plain in ctx.plain]
        upstream = [g for g in upstream if g is not None]
        results = ctx.registered.backward(*arguments, *saved, *upstream, **ctx.options)
        return (None, None, *ctx.registered.spread(_many(results), arguments))


def autograd(forward, backward, *, outputs=False, gradients=None):
    """A function of torch tensors that runs the kernel `forward`, with the kernel `backward` as its gradient.

    forward(*arguments, **options) returns a tensor or a tuple of tensors. backward is called with the same
    arguments, then with outputs=True what forward returned, then the gradient of every output (zeros where the loss
    does not depend on it), then the options. It returns the gradients of all floating-point tensors among the
    arguments in order, or of the arguments with the positions in `gradients`; None where there is none. Either may
    be a kernel (@nki.jit) or a function that calls some. Gradients of gradients are refused, as are kernels that
    write to their arguments.
    """
    registered = _Registered(forward, backward, outputs, gradients)

    def function(*arguments, **options):
        return _Call.apply(registered, options, *arguments)

    function.__name__ = registered.name
    function.__doc__ = getattr(forward, "__doc__", None)
    return function
