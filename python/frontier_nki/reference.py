"""frontier_nki.reference.NAME(arrays): the trainer's own C operators, forward and backward, on arrays.

They are the reference kernels the trainer's fast kernels are tested against: plain C, computed in double, in one
fixed order. `operators()` lists them. `NAME_backward(inputs..., dy, options)` gives the gradients of the
inputs, in their order, for the gradient dy of the output: one array, or a tuple where there are several.

Arrays are numpy arrays, torch tensors or anything numpy takes; bf16 and fp16 are widened. Results are new
float32 arrays, or float64 where an input is float64. The last dimension is the channels; all before it are
tokens: (tokens, channels) is one sequence, (batch, tokens, channels) is `batch` sequences. Where positions
matter `length` cuts (tokens, channels) into sequences of that many. Heads are side by side in the channels:
head h of d channels is columns h*d .. h*d+d-1. Weights are (out, in). Losses are in nats.
"""

import math

import numpy as np

from . import _core, arrays

EPS = 1.1920929e-07  # the fp32 machine epsilon, the trainer's default

__all__ = ["operators"]
_table = {}  # name: (what of the trainer it calls, first line of its documentation)


def _listed(trainer):
    """Puts a function into operators() and __all__."""

    def put(function):
        _table[function.__name__] = (trainer, (function.__doc__ or "").strip().splitlines()[0])
        __all__.append(function.__name__)
        return function

    return put


def operators():
    """[{name, backward, trainer, about}]: every operator here; `backward` is None where there is no gradient."""
    return [
        {
            "name": name,
            "backward": f"{name}_backward" if f"{name}_backward" in _table else None,
            "trainer": trainer,
            "about": about,
        }
        for name, (trainer, about) in sorted(_table.items())
        if not name.endswith("_backward")
    ]


# ---- arrays in and out ----


def _float(value):
    """A float32 or float64 array of C order."""
    if arrays.is_torch(value):
        value = value.detach().cpu()
        value = (value.double() if str(value.dtype) == "torch.float64" else value.float()).numpy()
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    if array.dtype != np.float64 or getattr(value, "nki_dtype", None):
        array = array.astype(np.float32)
    return np.ascontiguousarray(array)


def _ids(value):
    if arrays.is_torch(value):
        value = value.detach().cpu().numpy()
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        raise _core.UsageError(f"ids are integers, not {array.dtype}")
    if array.size and (array.max() > 2**31 - 1 or array.min() < -(2**31)):
        raise _core.UsageError("an id that 32 bits do not hold")
    return np.ascontiguousarray(array.reshape(-1), dtype=np.int32)


def _matrix(array):
    return array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)


class _Call:
    """The inputs of one operator as rows and columns; None stands for an optional input that is left out."""

    def __init__(self, operator, inputs, options=None, length=None):
        self.operator, self.options, self.names = operator, options or {}, list(inputs)
        given = {name: _float(value) for name, value in inputs.items() if value is not None and name != "ids"}
        wide = any(a.dtype == np.float64 for a in given.values())
        self.dtype = np.dtype(np.float64 if wide else np.float32)
        self.shapes = {name: a.shape for name, a in given.items()}
        self.leading = next((a.shape for a in given.values() if a.ndim > 2), None)
        self.inputs = []
        for name, value in inputs.items():
            if value is None:
                self.inputs.append(None)
            elif name == "ids":
                rows = _ids(value)
                self.inputs.append((name, rows, len(rows), 1, "i"))
            else:
                rows = np.ascontiguousarray(_matrix(given[name]), dtype=self.dtype)
                self.inputs.append((name, rows, *rows.shape, self.dtype.char))
        while self.inputs and self.inputs[-1] is None:
            self.inputs.pop()
        self.length = length or (self.leading[-2] if self.leading else 0)

    def _array(self, result):
        rows, columns, code, data = result
        return np.frombuffer(data, dtype=code).reshape(rows, columns)

    def forward(self, output=0):
        results = _core.reference(self.operator, self.length, self.options, self.inputs, None, [])
        return self._array(results[output])

    def backward(self, dy=None, into=()):
        """Gradients of the inputs that have one, in the inputs' shapes."""
        if dy is not None:
            dy = np.ascontiguousarray(_float(dy), dtype=self.dtype)
        into = [None if a is None else np.ascontiguousarray(_float(a), dtype=self.dtype) for a in into]
        results = _core.reference(self.operator, self.length, self.options, self.inputs, [dy], into)
        found = [
            self._array(r).reshape(self.shapes[name]) for name, r in zip(self.names, results) if r is not None
        ]
        return found[0] if len(found) == 1 else tuple(found)


def _like(rows, x):
    """Rows of tokens in the leading dimensions of x."""
    return rows.reshape(*np.shape(x)[:-1], rows.shape[-1])


# ---- activations ----


@_listed("relu_squared")
def relu_squared(x):
    """max(x, 0) ** 2, element by element."""
    return _like(_Call("relu_squared", {"x": x}).forward(), x)


@_listed("relu_squared")
def relu_squared_backward(x, dy):
    """dx = 2 max(x, 0) dy"""
    return _Call("relu_squared", {"x": x}).backward(dy)


@_listed("leaky_relu_squared")
def leaky_relu_squared(x, slope=0.5):
    """max(x, slope x) ** 2, element by element; 0 <= slope < 1."""
    return _like(_Call("leaky_relu_squared", {"x": x}, {"slope": slope}).forward(), x)


@_listed("leaky_relu_squared")
def leaky_relu_squared_backward(x, dy, slope=0.5):
    """dx = 2 max(x, slope**2 x) dy"""
    return _Call("leaky_relu_squared", {"x": x}, {"slope": slope}).backward(dy)


@_listed("gelu")
def gelu(x):
    """The tanh form of GELU, element by element."""
    return _like(_Call("gelu", {"x": x}).forward(), x)


@_listed("gelu")
def gelu_backward(x, dy):
    """dx"""
    return _Call("gelu", {"x": x}).backward(dy)


@_listed("swiglu")
def swiglu(gate, up):
    """silu(gate) * up, element by element."""
    return _like(_Call("swiglu", {"gate": gate, "up": up}).forward(), gate)


@_listed("swiglu")
def swiglu_backward(gate, up, dy):
    """(dgate, dup)"""
    return _Call("swiglu", {"gate": gate, "up": up}).backward(dy)


# ---- norms ----


@_listed("rms_norm")
def rms_norm(x, gain=None, eps=EPS):
    """gain * x / sqrt(mean(x**2) + eps) over the channels; gain (channels) is optional."""
    return _like(_Call("rms_norm", {"x": x, "gain": gain}, {"eps": eps}).forward(), x)


@_listed("rms_norm")
def rms_norm_backward(x, dy, gain=None, eps=EPS):
    """dx, or (dx, dgain) with a gain"""
    return _Call("rms_norm", {"x": x, "gain": gain}, {"eps": eps}).backward(dy)


@_listed("layer_norm")
def layer_norm(x, gain=None, bias=None, eps=EPS):
    """gain * (x - mean) / sqrt(variance + eps) + bias over the channels; gain and bias (channels) are optional."""
    return _like(_Call("layer_norm", {"x": x, "gain": gain, "bias": bias}, {"eps": eps}).forward(), x)


@_listed("layer_norm")
def layer_norm_backward(x, dy, gain=None, bias=None, eps=EPS):
    """dx, then dgain and dbias where given"""
    return _Call("layer_norm", {"x": x, "gain": gain, "bias": bias}, {"eps": eps}).backward(dy)


def _rotary(x, heads, base, interleaved, norm, gain, eps, length):
    options = {
        "heads": heads,
        "base": base,
        "interleaved": interleaved,
        "norm": norm,
        "gain": gain,
        "eps": eps,
    }
    return _Call("rotary", {"x": x}, options, length)


@_listed("rotary")
def rotary(x, heads, base=100000.0, interleaved=False, norm=False, gain=1.0, eps=EPS, length=None):
    """Rotary positions per head, then with norm=True QK norm: gain * z / sqrt(mean(z**2) + eps) per head.

    Position t turns pair m of a head of d channels by t * base**(-2m/d): halves pair channels (m, m + d/2) by minus
    that angle, interleaved pairs (2m, 2m + 1) by plus. Angles are in radians; positions count from 0 in each sequence.
    """
    return _like(_rotary(x, heads, base, interleaved, norm, gain, eps, length).forward(), x)


@_listed("rotary")
def rotary_backward(
    x, dy, heads, base=100000.0, interleaved=False, norm=False, gain=1.0, eps=EPS, length=None
):
    """dx"""
    return _rotary(x, heads, base, interleaved, norm, gain, eps, length).backward(dy)


# ---- attention ----


def _attention(q, k, v, heads, kv_heads, window, scale, length):
    kv_heads = kv_heads or heads
    width = np.shape(q)[-1] // max(1, heads)
    options = {
        "heads": heads,
        "kv_heads": kv_heads,
        "window": window or 0,
        "scale": scale or 1 / math.sqrt(max(1, width)),
    }
    return _Call("attention", {"q": q, "k": k, "v": v}, options, length)


@_listed("attention")
def attention(q, k, v, heads, kv_heads=None, window=0, scale=None, length=None, statistics=False):
    """Causal softmax attention within each sequence: q (tokens, heads * d), k and v (tokens, kv_heads * d).

    Query i sees keys j with 0 <= i - j <= window, all before it when window is 0; heads is a multiple of
    kv_heads, head h reads key-value head h // (heads / kv_heads); scale defaults to 1/sqrt(d). With
    statistics=True the answer is (out, log-sum-exp of the scaled scores, (tokens, heads)).
    """
    call = _attention(q, k, v, heads, kv_heads, window, scale, length)
    out = _like(call.forward(), q)
    return (out, _like(call.forward(1), q)) if statistics else out


@_listed("attention")
def attention_backward(q, k, v, dy, heads, kv_heads=None, window=0, scale=None, length=None):
    """(dq, dk, dv)"""
    return _attention(q, k, v, heads, kv_heads, window, scale, length).backward(dy)


# ---- products ----

_ACTIVATIONS = {
    "relu_squared": (relu_squared, relu_squared_backward),
    "gelu": (gelu, gelu_backward),
    "leaky_relu_squared": (leaky_relu_squared, leaky_relu_squared_backward),
}


def _activation(name):
    if name is not None and name not in _ACTIVATIONS:
        raise _core.UsageError(f"activation '{name}': one of {', '.join(sorted(_ACTIVATIONS))}")
    return _ACTIVATIONS.get(name, (lambda x: x, lambda x, dy: dy))


@_listed("linear, add_bias, the activation, add")
def linear(x, weight, bias=None, activation=None, residual=None):
    """activation(x @ weight.T + bias) + residual; weight (out, in), bias (out); all but x and weight are optional.

    activation is the name of one here: "relu_squared", "gelu", ...
    """
    y = _like(_Call("linear", {"x": x, "weight": weight}).forward(), x)
    if bias is not None:
        y = _like(_Call("add_bias", {"x": y, "bias": bias}).forward(), x)
    y = _activation(activation)[0](y)
    return y if residual is None else add(y, residual)


@_listed("linear, add_bias, the activation, add")
def linear_backward(x, weight, dy, bias=None, activation=None, residual=None):
    """(dx, dweight), then dbias and dresidual where given"""
    product, more = _Call("linear", {"x": x, "weight": weight}), []
    dz = dy
    if activation is not None or bias is not None:
        z = _like(product.forward(), x)
        if bias is not None:
            biased = _Call("add_bias", {"x": z, "bias": bias})
            z = _like(biased.forward(), x)
        dz = _activation(activation)[1](z, dz)
        if bias is not None:
            dz, dbias = biased.backward(dz)
            more.append(dbias)
    if residual is not None:
        more.append(np.array(_float(dy)))
    return (*product.backward(dz), *more)


# ---- embedding ----


@_listed("embed")
def embed(table, ids):
    """Row ids[t] of the table (rows, channels) for every token; ids are integers of any shape."""
    rows = _Call("embed", {"table": table, "ids": ids}).forward()
    return rows.reshape(*np.shape(ids), rows.shape[-1])


@_listed("embed")
def embed_backward(table, ids, dy):
    """dtable: row r is the sum of dy[t] over the tokens with ids[t] == r, in the order of tokens; zeros elsewhere."""
    return _Call("embed", {"table": table, "ids": ids}).backward(dy)


@_listed("embed, its gradient added to what is there")
def scatter_add(table, ids, rows):
    """The table with rows[t] added to row ids[t] for every token, in order."""
    return _Call("embed", {"table": table, "ids": ids}).backward(rows, into=[table])


# ---- the loss ----


def _cross_entropy(logits, targets, softcap):
    rows = _float(logits)
    gradient = np.array(_matrix(rows), dtype=np.float64, order="C")
    targets = _ids(targets)
    if len(targets) != len(gradient):
        raise _core.UsageError(f"{len(targets)} targets for {len(gradient)} rows of logits")
    nats = _core.cross_entropy(gradient, targets, gradient.shape[1], softcap)
    return np.array(nats).reshape(rows.shape[:-1]).astype(rows.dtype), gradient, rows


@_listed("head_loss, from the logits on")
def softcap_cross_entropy(logits, targets, softcap=15.0, statistics=False):
    """Nats per token: log-sum-exp of z minus z[target], z = softcap * tanh(logits / softcap); softcap 0 is off.

    logits (tokens, vocabulary); targets integers below the vocabulary, -1 for a token without loss (0 nats). With
    statistics=True the answer is (nats, log-sum-exp of z).
    """
    nats = _cross_entropy(logits, targets, softcap)[0]
    if not statistics:
        return nats
    first = _float(logits)[..., 0].astype(np.float64)
    above = _cross_entropy(logits, np.zeros(nats.size, np.int32), softcap)[0]
    return nats, (above + (softcap * np.tanh(first / softcap) if softcap else first)).astype(nats.dtype)


@_listed("head_loss, from the logits on")
def softcap_cross_entropy_backward(logits, targets, dy=1.0, softcap=15.0):
    """dlogits, for dy (tokens) or one number for all tokens, as 1 / tokens is for a mean"""
    _, gradient, rows = _cross_entropy(logits, targets, softcap)
    each = np.broadcast_to(np.asarray(dy, dtype=np.float64).reshape(-1, 1), (len(gradient), 1))
    return (gradient * each).reshape(rows.shape).astype(rows.dtype)


def _head(x, head, targets, softcap, vocab, scale):
    inputs = {"x": x, "head": head}
    options = {"vocab": vocab or np.shape(head)[0], "softcap": softcap}
    if targets is None:
        return _Call("head_logits", inputs, options)
    options["weight"] = 1.0
    return _Call(
        "head_loss", {**inputs, "ids": targets, "scale": np.full((1, 1), scale, np.float32)}, options
    )


@_listed("head_logits")
def head_logits(x, head, softcap=15.0, vocab=None):
    """softcap * tanh(x @ head.T / softcap) for the first `vocab` rows of head (rows, channels)."""
    return _like(_head(x, head, None, softcap, vocab, 1).forward(), x)


@_listed("head_logits")
def head_logits_backward(x, head, dy, softcap=15.0, vocab=None):
    """(dx, dhead)"""
    return _head(x, head, None, softcap, vocab, 1).backward(dy)


@_listed("head_loss")
def head_loss(x, head, targets, softcap=15.0, vocab=None):
    """Nats per token of softcap_cross_entropy(x @ head.T), without the logits ever being whole."""
    return _head(x, head, targets, softcap, vocab, 1).forward().reshape(np.shape(x)[:-1])


@_listed("head_loss")
def head_loss_backward(x, head, targets, scale=1.0, softcap=15.0, vocab=None):
    """(dx, dhead) of scale * (sum of nats)"""
    return _head(x, head, targets, softcap, vocab, scale).backward()


# ---- mixing ----


def _scalar(value):
    return _float(value).reshape(1, 1) if np.size(value) == 1 else value


@_listed("add")
def add(x, y):
    """x + y"""
    return _like(_Call("add", {"x": x, "y": y}).forward(), x)


@_listed("blend")
def blend(a, x, b, y):
    """a x + b y, a and b numbers."""
    return _like(_Call("blend", {"a": _scalar(a), "x": x, "b": _scalar(b), "y": y}).forward(), x)


@_listed("blend")
def blend_backward(a, x, b, y, dy):
    """(da, dx, db, dy's share), da and db of shape (1, 1)"""
    return _Call("blend", {"a": _scalar(a), "x": x, "b": _scalar(b), "y": y}).backward(dy)


@_listed("blend with decay and 1 - decay; the trainer keeps no average of weights itself")
def ema_blend(average, value, decay):
    """decay * average + (1 - decay) * value"""
    return blend(float(decay), average, 1 - float(decay), value)


@_listed("blend with decay and 1 - decay")
def ema_blend_backward(average, value, decay, dy):
    """(daverage, dvalue)"""
    _, daverage, _, dvalue = blend_backward(float(decay), average, 1 - float(decay), value, dy)
    return daverage, dvalue


def _smear(x, gate, factor, length):
    return _Call("smear", {"x": x, "gate": gate, "lambda": _scalar(factor)}, {}, length)


@_listed("smear")
def smear(x, gate, factor, length=None):
    """Two taps, gated: x[t] + factor * sigmoid(x[t, :len(gate)] @ gate) * x[t-1]; the first of a sequence unchanged."""
    return _like(_smear(x, gate, factor, length).forward(), x)


@_listed("smear")
def smear_backward(x, gate, factor, dy, length=None):
    """(dx, dgate, dfactor), dfactor of shape (1, 1)"""
    return _smear(x, gate, factor, length).backward(dy)


@_listed("two_tap")
def two_tap(x, taps, length=None):
    """taps[0] * x[t] + taps[1] * x[t-1], channel by channel; zeros before a sequence; taps (2, channels)."""
    return _like(_Call("two_tap", {"x": x, "taps": taps}, {}, length).forward(), x)


@_listed("two_tap")
def two_tap_backward(x, taps, dy, length=None):
    """(dx, dtaps)"""
    return _Call("two_tap", {"x": x, "taps": taps}, {}, length).backward(dy)


@_listed("value_gate")
def value_gate(v, e, h, gate, scale=3.0):
    """v + scale * sigmoid(gate @ h[:channels of gate]) * e per key-value head; gate (kv_heads, channels)."""
    return _like(_Call("value_gate", {"v": v, "e": e, "h": h, "gate": gate}, {"range": scale}).forward(), v)


@_listed("value_gate")
def value_gate_backward(v, e, h, gate, dy, scale=3.0):
    """(dv, de, dh, dgate)"""
    return _Call("value_gate", {"v": v, "e": e, "h": h, "gate": gate}, {"range": scale}).backward(dy)


# ---- optimizer ----


def _copies(*values):
    """Flat float32 copies that may be changed in place."""
    return [np.array(_float(v), dtype=np.float32).reshape(-1) for v in values]


@_listed("fr_muon_update with momentum, decay and second moment off")
def muon_orthogonalize(gradient, equalize=False, plus=False, bf16=False):
    """The orthogonal factor of a matrix by five Polar Express steps, after division by 1.01 * its norm + 1e-6.

    float32 (rows, columns). equalize gives rows one norm first, plus restores the norm of an orthogonal matrix
    after, bf16 rounds the iterate and its products to bf16 as the trainer does in bf16.
    """
    matrix = np.array(_float(gradient), dtype=np.float32)
    rows, columns = matrix.shape
    weight, momentum = np.zeros((2, rows * columns), np.float32)
    second = np.ones(max(rows, columns), np.float32)
    _core.muon(
        weight,
        matrix,
        momentum,
        second,
        rows,
        columns,
        1.0,
        0.0,
        0.0,
        1.0,
        bool(equalize),
        bool(plus),
        bool(bf16),
    )
    return -weight.reshape(rows, columns)


@_listed("fr_muon_update")
def muon_step(
    weight,
    gradient,
    momentum_buffer,
    second_moment,
    lr,
    decay=0.0,
    momentum=0.95,
    beta2=0.95,
    equalize=False,
    plus=False,
    bf16=False,
):
    """(weight, momentum_buffer, second_moment) after one Muon step of a float32 matrix (rows, columns).

    Nesterov momentum, orthogonalisation, NorMuon (second_moment has max(rows, columns) numbers), cautious decay.
    lr includes the factor max(1, rows / columns) ** 0.5.
    """
    rows, columns = np.shape(weight)
    state = _copies(weight, gradient, momentum_buffer, second_moment)
    options = (float(lr), float(decay), float(momentum), float(beta2), bool(equalize), bool(plus), bool(bf16))
    _core.muon(*state, rows, columns, *options)
    return state[0].reshape(rows, columns), state[2].reshape(rows, columns), state[3]


@_listed("fr_adamw_update")
def adamw_step(
    weight, gradient, first_moment, second_moment, step, lr, decay=0.0, beta1=0.8, beta2=0.95, eps=1e-10
):
    """(weight, first_moment, second_moment) after one AdamW step, float32 of any shape; step counts from 1.

    Decay is decoupled (weight * (1 - lr * decay)) and comes first; both moments are bias-corrected.
    """
    state = _copies(weight, gradient, first_moment, second_moment)
    _core.adamw(*state, float(lr), float(decay), float(beta1), float(beta2), float(eps), int(step))
    shape = np.shape(weight)
    return tuple(state[i].reshape(shape) for i in (0, 2, 3))


@_listed("fr_vector_sum_squares")
def gradient_norm(*gradients):
    """sqrt of the sum of the squares of all numbers of all arrays, summed in double: a Python float."""
    return math.sqrt(sum(_core.sum_squares(values) for values in _copies(*gradients)))
