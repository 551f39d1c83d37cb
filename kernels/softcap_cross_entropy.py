"""Cross entropy of soft-capped logits, forward and backward: z = c tanh(x / c), nats = log sum exp(z) - z[target], 0
where the target is -1. z is at most c, so no maximum is taken; c is 30 at most, as the table of log ends at 2**64.

Layout: tokens on partitions, their vocabulary along them: a transfer brings CHUNK logits of 128 tokens. What depends
on targets is one number a token: a transfer with a list of rows picks those logits out of HBM, and none of the sweeps
over the vocabulary looks at a target.
Tiling: a segment of the vocabulary stays in SBUF as tanh(x / c) in float32, so that Scalar changes its table (1.3 us)
twice a segment and not twice a chunk. Forward: Scalar takes tanh of the chunks as they come, then exp, which sums
itself.
Backward: dx = g (p - [v = target]) (1 - tanh**2) with p = exp(z - lse): Scalar takes tanh and exp again, GpSimd
squares, Vector multiplies, and the targets' own elements are written over at the end. In float32 Scalar squares as
well and hands p over in PSUM. Where the gradient of nats is known beforehand, as in training, one kernel does both in
little more time than one: exp(z) (1 - tanh**2) of a block of tokens waits in SBUF for its sum.
Bound: Scalar, which passes over every logit twice, with GpSimd and Vector close behind in the backward pass.
"""

import nki
import nki.isa as nisa
import nki.language as nl

P = 128
CHUNK = 4096  # logits of a token in one transfer
SEGMENT = (
    32768  # logits of a token in SBUF; half of it and less where two segments or other things are there too
)
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
    """Tokens of some blocks of x, a number a token in HBM, a block a column: [rows, high - low]."""
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


def load_chunks(logits, start, rows, first, size):
    """Logits [first, first + size) of a block of tokens, in chunks."""
    chunks = []
    for at in range(0, size, CHUNK):
        many = min(CHUNK, size - at)
        x = nl.ndarray((rows, many), dtype=logits.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x, src=logits[nl.ds(start, rows), nl.ds(first + at, many)])
        chunks.append(x)
    return chunks


def take_tanh(tanh, chunk, at, softcap):
    """tanh(x / c) of a chunk into its columns, from `at` on, of a segment."""
    nisa.activation(dst=tanh[:, nl.ds(at, chunk.shape[1])], op=nl.tanh, data=chunk, scale=1.0 / softcap)


def load_tanh(logits, start, rows, first, size, softcap):
    """tanh(x / c) of logits [first, first + size) of a block of tokens, in float32."""
    tanh = nl.ndarray((rows, size), dtype=nl.float32, buffer=nl.sbuf)
    for at in range(0, size, CHUNK):
        chunks = load_chunks(logits, start, rows, first + at, min(CHUNK, size - at))
        take_tanh(tanh, chunks[0], at, softcap)
    return tanh


def store_losses(nats, lse, sums, tanh_wanted, valid, softcap, tokens):
    """lse = log of the sums of exp, nats = lse - z[target], 0 without a target."""
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


@nki.jit
def softcap_cross_entropy(logits, targets, softcap=15.0):
    """(nats, lse), a number a token in float32, of logits tokens x vocabulary; targets int32, -1 for none"""
    tokens, vocabulary = logits.shape
    nats = nl.ndarray((tokens,), dtype=nl.float32, buffer=nl.shared_hbm)
    lse = nl.ndarray((tokens,), dtype=nl.float32, buffer=nl.shared_hbm)
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
    store_losses(nats, lse, sums, tanh_wanted, valid, softcap, tokens)
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


def new_weights(rows, columns, dtype):
    """Where exp puts a step: in bf16 where Vector reads two numbers a cycle; in float32 in PSUM, where it
    reads one and not half of one."""
    if dtype == nl.float32:
        return nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.psum)
    return nl.ndarray((rows, columns), dtype=nl.bfloat16, buffer=nl.sbuf)


def slope_of(tanh, dtype, factor, offset):
    """factor tanh**2 + offset of a step, in the dtype it is multiplied in. The square is in float32:
    rounded before 1 is there to take it from, nothing would be left of the slope near the cap."""
    if dtype == nl.float32:
        nisa.activation(dst=tanh, op=nl.square, data=tanh)
        slope = tanh
    else:
        nisa.tensor_tensor(dst=tanh, data1=tanh, data2=tanh, op=nl.multiply, engine=nisa.engine.gpsimd)
        slope = nl.ndarray(tanh.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=slope, data=tanh, op0=nl.multiply, operand0=factor, op1=nl.add, operand1=offset)
    return slope


@nki.jit
def softcap_cross_entropy_backward(logits, targets, lse, dnats, softcap=15.0):
    """d logits, from the lse of the forward pass and the gradient of nats"""
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
        for first in range(0, vocabulary, SEGMENT // 2):  # two at once: GpSimd is behind Scalar
            size = min(SEGMENT // 2, vocabulary - first)
            tanh = load_tanh(logits, block * P, rows, first, size, softcap)
            for at in range(0, size, NARROW):
                many = min(NARROW, size - at)
                t = tanh[:, nl.ds(at, many)]
                p = new_weights(rows, many, logits.dtype)
                nisa.activation(
                    dst=p, op=nl.exp, data=t, scale=softcap, bias=minus_lse[0:rows, block : block + 1]
                )
                slope = slope_of(
                    t,
                    logits.dtype,
                    minus_weights[0:rows, block : block + 1],
                    weights[0:rows, block : block + 1],
                )
                nisa.tensor_tensor(dst=slope, data1=p, data2=slope, op=nl.multiply)
                nisa.dma_copy(dst=dlogits[nl.ds(block * P, rows), nl.ds(first + at, many)], src=slope)
        nisa.dma_copy(dst=rows_at(dlogits, places, rows, block), src=wanted[0:rows, block : block + 1])
    return dlogits


# ---- both at once ----


def target_parts(tanh, weights, valid, softcap, tokens):
    """(exp z, g (1 - tanh**2)) of every token's target, where weights become g, 0 without a target."""
    exps = nl.ndarray(tanh.shape, dtype=nl.float32, buffer=nl.sbuf)
    slopes = nl.ndarray(tanh.shape, dtype=nl.float32, buffer=nl.sbuf)
    for part in parts(tokens):
        rows, low, high = part
        weight, slope = weights[0:rows, low:high], slopes[0:rows, low:high]
        nisa.tensor_tensor(dst=weight, data1=weight, data2=valid[0:rows, low:high], op=nl.multiply)
        t = tanh[0:rows, low:high]
        nisa.activation(dst=exps[0:rows, low:high], op=nl.exp, data=t, scale=softcap)
        nisa.tensor_tensor(dst=slope, data1=t, data2=t, op=nl.multiply)
        nisa.tensor_scalar(dst=slope, data=slope, op0=nl.multiply, operand0=-1.0, op1=nl.add, operand1=1.0)
        nisa.tensor_tensor(dst=slope, data1=slope, data2=weight, op=nl.multiply)
    return exps, slopes


def take_products(product, sum, t, dtype, softcap):
    """exp z (1 - tanh**2) of a step, and the sum of exp z."""
    p = new_weights(t.shape[0], t.shape[1], dtype)
    nisa.activation_reduce(dst=p, op=nl.exp, data=t, scale=softcap, reduce_op=nl.add, reduce_res=sum)
    slope = slope_of(t, dtype, -1.0, 1.0)
    nisa.tensor_tensor(dst=product, data1=p, data2=slope, op=nl.multiply)


def finish(dlogits, pending, done, count):
    """Divides and stores the next `count` of the products that wait; returns how many are done."""
    for i in range(done, min(done + count, len(pending))):
        product, factor, start, first = pending[i]
        rows, size = product.shape
        nisa.tensor_scalar(dst=product, data=product, op0=nl.multiply, operand0=factor)
        nisa.dma_copy(dst=dlogits[nl.ds(start, rows), nl.ds(first, size)], src=product)
    return min(done + count, len(pending))


def target_gradient(exp_wanted, slope_wanted, inverse, dtype):
    """g (p - 1) (1 - tanh**2) of a block's targets."""
    rows = inverse.shape[0]
    less = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    wanted = nl.ndarray((rows, 1), dtype=dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(
        dst=less, data=exp_wanted, op0=nl.multiply, operand0=inverse, op1=nl.subtract, operand1=1.0
    )
    nisa.tensor_tensor(dst=wanted, data1=less, data2=slope_wanted, op=nl.multiply)
    return wanted


@nki.jit
def softcap_cross_entropy_training(logits, targets, dnats, softcap=15.0):
    """(dlogits, nats, lse) in one sweep, for a gradient of nats known beforehand: exp z (1 - tanh**2)
    waits in SBUF for the sum it is divided by, and leaves while the next block of tokens comes"""
    tokens, vocabulary = logits.shape
    dlogits = nl.ndarray(logits.shape, dtype=logits.dtype, buffer=nl.shared_hbm)
    nats = nl.ndarray((tokens,), dtype=nl.float32, buffer=nl.shared_hbm)
    lse = nl.ndarray((tokens,), dtype=nl.float32, buffer=nl.shared_hbm)
    narrow = logits.dtype != nl.float32
    steps = (vocabulary + NARROW - 1) // NARROW
    most = 18 if narrow else 16
    assert steps <= most, "the products of a token do not fit: use the forward and the backward kernel"
    valid, places = target_rows(targets, tokens, vocabulary)
    tanh_wanted = target_tanh(logits, places, softcap)
    weights = load_column(dnats, tokens)
    exp_wanted, slope_wanted = target_parts(tanh_wanted, weights, valid, softcap, tokens)
    sums = nl.ndarray(weights.shape, dtype=nl.float32, buffer=nl.sbuf)
    held = []
    for i in range(min(most, steps * blocks_of(tokens))):
        held.append(nl.ndarray((P, min(NARROW, vocabulary)), dtype=logits.dtype, buffer=nl.sbuf))
    segment = min(vocabulary, SEGMENT // 4 if narrow else SEGMENT // 8)
    tanhs = nl.ndarray((P, 2, segment), dtype=nl.float32, buffer=nl.sbuf)
    todo = []
    for block in range(blocks_of(tokens)):
        for first in range(0, vocabulary, segment):
            todo.append((block, first, min(segment, vocabulary - first), min(P, tokens - block * P)))
    pending = []  # products that wait for their sum
    done = 0
    stores = (len(held) * CHUNK + vocabulary - 1) // vocabulary
    block, first, size, rows = todo[0]
    chunks = load_chunks(logits, 0, rows, 0, size)
    step_sums = None
    for i in range(len(todo)):
        block, first, size, rows = todo[i]
        tanh = tanhs[0:rows, i % 2, 0:size]
        if first == 0:
            step_sums = nl.ndarray((rows, steps), dtype=nl.float32, buffer=nl.sbuf)
        for j in range(len(chunks)):
            take_tanh(tanh, chunks[j], j * CHUNK, softcap)
            done = finish(dlogits, pending, done, stores)
        if i + 1 < len(todo):
            following, next_first, next_size, next_rows = todo[i + 1]
            chunks = load_chunks(logits, following * P, next_rows, next_first, next_size)
        for at in range(0, size, NARROW):
            step = (first + at) // NARROW
            many = min(NARROW, size - at)
            product = held[(block * steps + step) % len(held)][0:rows, 0:many]
            take_products(
                product, step_sums[:, step : step + 1], tanh[:, nl.ds(at, many)], logits.dtype, softcap
            )
        if first + size == vocabulary:
            own = sums[0:rows, block : block + 1]
            inverse = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
            factor = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_reduce(dst=own, op=nl.add, data=step_sums, axis=1)
            nisa.reciprocal(dst=inverse, data=own)
            weight = weights[0:rows, block : block + 1]
            nisa.tensor_tensor(dst=factor, data1=inverse, data2=weight, op=nl.multiply)
            for step in range(steps):
                many = min(NARROW, vocabulary - step * NARROW)
                product = held[(block * steps + step) % len(held)][0:rows, 0:many]
                pending.append((product, factor, block * P, step * NARROW))
    done = finish(dlogits, pending, done, len(pending))
    for block in range(blocks_of(tokens)):
        rows = min(P, tokens - block * P)
        own = slice_of(sums, rows, block)
        inverse = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=inverse, data=own)
        wanted = target_gradient(
            slice_of(exp_wanted, rows, block), slice_of(slope_wanted, rows, block), inverse, logits.dtype
        )
        nisa.dma_copy(dst=rows_at(dlogits, places, rows, block), src=wanted)
    store_losses(nats, lse, sums, tanh_wanted, valid, softcap, tokens)
    return dlogits, nats, lse


def slice_of(column, rows, block):
    return column[0:rows, block : block + 1]
