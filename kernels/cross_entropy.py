"""Cross entropy of soft-capped logits, forward and backward: z = c tanh(x / c), nats = log sum exp(z) - z[target], 0 where the target
is -1. z is at most c, so no maximum is taken; c is 30 at most, as the table of log ends at 2**64.

Layout: tokens on partitions, their vocabulary along them: a transfer brings CHUNK logits of 128 tokens. What depends on targets is one
number a token: a transfer with a list of rows picks those logits out of HBM, and none of the sweeps over the
vocabulary looks at a target.
Tiling: SEGMENT logits of 128 tokens stay in SBUF as tanh(x / c) in float32, so that Scalar changes its table (1.3 us) twice a segment and
not twice a chunk. Forward: Scalar takes tanh of the chunks as they come, then exp, which sums itself.
Backward: dx = g (p - [v = target]) (1 - tanh**2) with p = exp(z - lse): Scalar takes tanh and exp again, GpSimd rounds tanh to bf16, Vector
does the rest at two and four elements a cycle, and the targets' own elements are written over at the end. In
float32 Scalar squares as well and hands p over in PSUM.
Bound: Scalar, which passes over every logit twice.
"""

import nki
import nki.isa as nisa
import nki.language as nl

P = 128
CHUNK = 4096  # logits of a token in one transfer
SEGMENT = 32768  # logits of a token in SBUF
WIDE = 8192  # logits of a token in one exp of the forward pass
NARROW = 2048  # and in one step of the backward pass


def blocks_of(tokens):
    return (tokens + P - 1) // P


def parts(tokens):
    """(rows, first block, last block + 1) of the whole blocks of 128 tokens, and of the rest."""
    found = []
    if tokens >= P:
        found.append((P, 0, tokens // P))
    if tokens % P > 0:
        found.append((tokens % P, tokens // P, tokens // P + 1))
    return found


def column(x, rows, low, high):
    """Tokens of some blocks of x, tokens x 1 in HBM, a block a column: [rows, high - low]."""
    return x.ap(pattern=[[1, rows], [P, high - low]], offset=low * P)


def load_column(x, tokens):
    a = nl.ndarray((P, blocks_of(tokens)), dtype=x.dtype, buffer=nl.sbuf)
    for part in parts(tokens):
        rows, low, high = part
        nisa.dma_copy(dst=a[0:rows, low:high], src=column(x, rows, low, high))
    return a


def target_rows(targets, tokens, vocabulary):
    """(whether a token has a target, the number of its logit among all: of its first one when it has none)."""
    wanted = load_column(targets, tokens)
    valid = nl.ndarray(wanted.shape, dtype=nl.float32, buffer=nl.sbuf)
    places = nl.ndarray(wanted.shape, dtype=nl.int32, buffer=nl.sbuf)
    nisa.iota(
        dst=places,
        pattern=[[P * vocabulary, wanted.shape[1]]],
        offset=0,
        channel_multiplier=vocabulary,
    )
    for part in parts(tokens):
        rows, low, high = part
        some = wanted[0:rows, low:high]
        nisa.tensor_scalar(dst=valid[0:rows, low:high], data=some, op0=nl.greater_equal, operand0=0.0)
        nisa.tensor_scalar(dst=some, data=some, op0=nl.maximum, operand0=0.0)
        place = places[0:rows, low:high]
        nisa.tensor_tensor(dst=place, data1=place, data2=some, op=nl.add, engine=nisa.engine.gpsimd)
    return valid, places


def rows_at(x, places, rows, block):
    """The logits of x that a block of tokens points at, as rows of one number."""
    flat = x.reshape((x.shape[0] * x.shape[1], 1))
    return flat.ap(
        pattern=[[1, rows], [1, 1]],
        offset=0,
        vector_offset=places[0:rows, block : block + 1],
        indirect_dim=0,
    )


def target_tanh(logits, places, softcap):
    """tanh(x / c) of every token's target."""
    tokens = logits.shape[0]
    picked = nl.ndarray(places.shape, dtype=logits.dtype, buffer=nl.sbuf)
    tanh = nl.ndarray(places.shape, dtype=nl.float32, buffer=nl.sbuf)
    for part in parts(tokens):
        rows, low, high = part
        for block in range(low, high):
            nisa.dma_copy(dst=picked[0:rows, block : block + 1], src=rows_at(logits, places, rows, block))
        nisa.activation(
            dst=tanh[0:rows, low:high], op=nl.tanh, data=picked[0:rows, low:high], scale=1.0 / softcap
        )
    return tanh


def load_tanh(logits, start, rows, first, size, softcap):
    """tanh(x / c) of logits [first, first + size) of a block of tokens, in float32."""
    tanh = nl.ndarray((rows, size), dtype=nl.float32, buffer=nl.sbuf)
    for at in range(0, size, CHUNK):
        some = nl.ds(at, min(CHUNK, size - at))
        x = nl.ndarray((rows, min(CHUNK, size - at)), dtype=logits.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x, src=logits[nl.ds(start, rows), nl.ds(first + at, min(CHUNK, size - at))])
        nisa.activation(dst=tanh[:, some], op=nl.tanh, data=x, scale=1.0 / softcap)
    return tanh


@nki.jit
def cross_entropy(logits, targets, softcap=15.0):
    """(nats, lse), tokens x 1 in float32, of logits tokens x vocabulary; targets tokens x 1 int32"""
    tokens, vocabulary = logits.shape
    nats = nl.ndarray((tokens, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    lse = nl.ndarray((tokens, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    valid, places = target_rows(targets, tokens, vocabulary)
    tanh_wanted = target_tanh(logits, places, softcap)
    sums = nl.ndarray((P, blocks_of(tokens)), dtype=nl.float32, buffer=nl.sbuf)
    steps = (vocabulary + WIDE - 1) // WIDE
    for block in range(blocks_of(tokens)):
        rows = min(P, tokens - block * P)
        step_sums = nl.ndarray((rows, steps), dtype=nl.float32, buffer=nl.sbuf)
        for first in range(0, vocabulary, SEGMENT):
            size = min(SEGMENT, vocabulary - first)
            tanh = load_tanh(logits, block * P, rows, first, size, softcap)
            for at in range(0, size, WIDE):
                some = tanh[:, at : min(at + WIDE, size)]
                step = (first + at) // WIDE
                nisa.activation_reduce(
                    dst=some,
                    op=nl.exp,
                    data=some,
                    scale=softcap,
                    reduce_op=nl.add,
                    reduce_res=step_sums[:, step : step + 1],
                )
        nisa.tensor_reduce(dst=sums[0:rows, block : block + 1], op=nl.add, data=step_sums, axis=1)
    logs = nl.ndarray(sums.shape, dtype=nl.float32, buffer=nl.sbuf)
    losses = nl.ndarray(sums.shape, dtype=nl.float32, buffer=nl.sbuf)
    for part in parts(tokens):
        rows, low, high = part
        some = losses[0:rows, low:high]
        nisa.activation(dst=logs[0:rows, low:high], op=nl.log, data=sums[0:rows, low:high])
        nisa.scalar_tensor_tensor(
            dst=some,
            data=tanh_wanted[0:rows, low:high],
            op0=nl.multiply,
            operand0=-softcap,
            op1=nl.add,
            operand1=logs[0:rows, low:high],
        )
        nisa.tensor_tensor(dst=some, data1=some, data2=valid[0:rows, low:high], op=nl.multiply)
        nisa.dma_copy(dst=column(lse, rows, low, high), src=logs[0:rows, low:high])
        nisa.dma_copy(dst=column(nats, rows, low, high), src=some)
    return nats, lse


# ---- backward ----


def target_gradients(tanh, minus_lse, weights, dtype, softcap, tokens):
    """g (p - 1) (1 - tanh**2) of every token's target, in the dtype of the gradient."""
    found = nl.ndarray(tanh.shape, dtype=dtype, buffer=nl.sbuf)
    for part in parts(tokens):
        rows, low, high = part
        t = tanh[0:rows, low:high]
        p = nl.ndarray((rows, high - low), dtype=nl.float32, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(
            dst=p, data=t, op0=nl.multiply, operand0=softcap, op1=nl.add, operand1=minus_lse[0:rows, low:high]
        )
        nisa.activation(dst=p, op=nl.exp, data=p)
        nisa.scalar_tensor_tensor(
            dst=p, data=p, op0=nl.subtract, operand0=1.0, op1=nl.multiply, operand1=weights[0:rows, low:high]
        )
        nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.multiply)
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=-1.0, op1=nl.add, operand1=1.0)
        nisa.tensor_tensor(dst=found[0:rows, low:high], data1=p, data2=t, op=nl.multiply)
    return found


@nki.jit
def cross_entropy_backward(logits, targets, lse, dnats, softcap=15.0):
    """d logits; lse of the forward pass and the gradient of nats, tokens x 1 in float32"""
    tokens, vocabulary = logits.shape
    dlogits = nl.ndarray(logits.shape, dtype=logits.dtype, buffer=nl.shared_hbm)
    valid, places = target_rows(targets, tokens, vocabulary)
    tanh_wanted = target_tanh(logits, places, softcap)
    minus_lse = load_column(lse, tokens)
    weights = load_column(dnats, tokens)
    minus_weights = nl.ndarray(weights.shape, dtype=nl.float32, buffer=nl.sbuf)
    for part in parts(tokens):
        rows, low, high = part
        some = weights[0:rows, low:high]
        nisa.tensor_tensor(dst=some, data1=some, data2=valid[0:rows, low:high], op=nl.multiply)
        nisa.tensor_scalar(dst=minus_weights[0:rows, low:high], data=some, op0=nl.multiply, operand0=-1.0)
        some = minus_lse[0:rows, low:high]
        nisa.tensor_scalar(dst=some, data=some, op0=nl.multiply, operand0=-1.0)
    wanted = target_gradients(tanh_wanted, minus_lse, weights, logits.dtype, softcap, tokens)
    for block in range(blocks_of(tokens)):
        rows = min(P, tokens - block * P)
        for first in range(0, vocabulary, SEGMENT):
            size = min(SEGMENT, vocabulary - first)
            tanh = load_tanh(logits, block * P, rows, first, size, softcap)
            for at in range(0, size, NARROW):
                many = min(NARROW, size - at)
                t = tanh[:, nl.ds(at, many)]
                if logits.dtype == nl.float32:
                    p = nl.ndarray((rows, many), dtype=nl.float32, buffer=nl.psum)
                else:
                    p = nl.ndarray((rows, many), dtype=nl.bfloat16, buffer=nl.sbuf)
                nisa.activation(
                    dst=p, op=nl.exp, data=t, scale=softcap, bias=minus_lse[0:rows, block : block + 1]
                )
                weight = weights[0:rows, block : block + 1]
                minus_weight = minus_weights[0:rows, block : block + 1]
                if logits.dtype == nl.float32:
                    slope = t
                    nisa.activation(dst=slope, op=nl.square, data=t)
                else:
                    slope = nl.ndarray((rows, many), dtype=nl.bfloat16, buffer=nl.sbuf)
                    nisa.tensor_copy(dst=slope, src=t, engine=nisa.engine.gpsimd)
                    nisa.tensor_tensor(dst=slope, data1=slope, data2=slope, op=nl.multiply)
                nisa.tensor_scalar(
                    dst=slope,
                    data=slope,
                    op0=nl.multiply,
                    operand0=minus_weight,
                    op1=nl.add,
                    operand1=weight,
                )
                nisa.tensor_tensor(dst=slope, data1=p, data2=slope, op=nl.multiply)
                nisa.dma_copy(dst=dlogits[nl.ds(block * P, rows), nl.ds(first + at, many)], src=slope)
        nisa.dma_copy(dst=rows_at(dlogits, places, rows, block), src=wanted[0:rows, block : block + 1])
    return dlogits
