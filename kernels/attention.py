"""Causal attention with a sliding window and grouped heads: `attention`, its gradient `attention_backward`, and
`attention_of_normed`, twice as fast as the first, for scores of bounded size: |<q, k>| / sqrt(head width) below 36.
QK norm of gain 1.2 bounds it by 16.3 for heads of 128.

Layout: q, k, v and o are tokens x (heads x head width), rows of T tokens one after the other, heads at most 128 wide.
What a product wants transposed is transposed by DMA on its way in (in float32 by the PE). Keys and values of a row
stay in SBUF.
Tiling of attention_of_normed: no maximum is taken and nothing is ever rescaled. Scores are made transposed, keys on
partitions, which is how the second product wants its left operand. A tile is 512 queries of all heads, a unit 128
keys by a tile's queries of one head. The PE makes a unit's scores in one bank of PSUM, Scalar the exponentials in
SBUF in bf16, the PE the products of each 128 queries with the values, summed over units in PSUM; behind the values
stands a column of ones, so these sum the weights too. Units nobody sees do not exist; those on the diagonal and on
the edge of the window lose the columns that see nothing, and Vector masks the rest. Bound: the PE; Scalar for heads
of 64.
Tiling of attention: queries on partitions. Vector masks the scores of 128 queries and finds the largest of each,
Scalar takes exponentials and their sums, the PE turns the weights for the second product. Bound: Vector and Scalar.
Tiling of attention_backward: a tile is 512 keys, a unit 128 queries by a tile's keys. The PE makes scores and d
weights in PSUM, Scalar the weights from the saved log-sum-exp, Vector d scores; the PE adds to d v and d k in PSUM
and, with d scores turned, makes the unit's part of d q, which Vector sums in SBUF. Bound: PE and Vector.
In all three the scores of some units are made before the products of one, so that no engine waits for another.
"""

import nki
import nki.isa as nisa
import nki.language as nl

P = 128  # keys of a unit; queries of a block
WIDE = 4  # blocks of a tile
AHEAD = 8  # units whose scores are made before the products of one
AHEAD_BACKWARD = 4  # the same of the backward pass
AHEAD_GENERAL = 3  # query blocks
PREFETCH = 4  # units before which their queries, keys and values are asked for

# ---- rows of tokens as blocks of 128 ----


def blocks_of(tokens):
    return (tokens + P - 1) // P


def load_transposed(a, at, x, start, size, column):
    """Tokens [start, start + size) of the columns from `column` on into a[:, at:at + size], a column a
    partition."""
    columns = nl.ds(column, a.shape[0])
    if x.dtype == nl.bfloat16:
        nisa.dma_transpose(dst=a[:, nl.ds(at, size)], src=x[nl.ds(start, size), columns], axes=(1, 0))
        return
    for i in range(0, size, P):
        rows = min(P, size - i)
        tile = nl.ndarray((rows, a.shape[0]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[nl.ds(start + i, rows), columns])
        turned = nl.ndarray((a.shape[0], rows), dtype=x.dtype, buffer=nl.psum)
        nisa.nc_transpose(dst=turned, data=tile, engine=nisa.engine.tensor)
        nisa.tensor_copy(dst=a[:, nl.ds(at + i, rows)], src=turned)


def whole_blocks(x, start, count, column, width):
    """Blocks from token `start` on in HBM, partitions x blocks x columns: token t is in partition t % 128."""
    stride = x.shape[1]
    return x.ap(pattern=[[stride, P], [P * stride, count], [1, width]], offset=start * stride + column)


def load_blocks(a, x, start, size, column=0):
    """Tokens [start, start + size) of the columns from `column` on into a, [128, blocks, columns]."""
    width = a.shape[2]
    whole = size // P
    rest = size - whole * P
    if whole > 0:
        nisa.dma_copy(dst=a[:, 0:whole, :], src=whole_blocks(x, start, whole, column, width))
    if rest > 0:
        nisa.dma_copy(dst=a[0:rest, whole, :], src=x[nl.ds(start + whole * P, rest), nl.ds(column, width)])


def store_blocks(x, a, start, size, column=0):
    """The other way, to the columns from `column` on."""
    width = a.shape[2]
    whole = size // P
    rest = size - whole * P
    if whole > 0:
        nisa.dma_copy(dst=whole_blocks(x, start, whole, column, width), src=a[:, 0:whole, :])
    if rest > 0:
        nisa.dma_copy(dst=x[nl.ds(start + whole * P, rest), nl.ds(column, width)], src=a[0:rest, whole, :])


def parts(size):
    """(rows, first block, last block + 1) of the whole blocks and of the rest of a tile."""
    found = []
    if size >= P:
        found.append((P, 0, size // P))
    if size % P > 0:
        found.append((size % P, size // P, size // P + 1))
    return found


# ---- who sees whom ----


def seen(delta, window):
    """Whether any of 128 queries, `delta` tokens after 128 keys, sees any of them."""
    return delta >= 0 and (window <= 0 or delta - P + 1 <= window)


def masked(delta, window):
    """Whether some do not see some."""
    return delta == 0 or (window > 0 and delta + P - 1 > window)


def mask_of(masks, delta, window, dtype):
    """[128, 128] of ones where key <= query <= key + window, keys on partitions; made once for each distance."""
    for known in masks:
        if known[0] == delta:
            return known[1]
    mask = nl.ndarray((P, P), dtype=dtype, buffer=nl.sbuf)
    nisa.memset(dst=mask, value=1.0)
    if delta == 0:
        keep_where(mask, 1, 0)
    if window > 0 and delta + P - 1 > window:
        keep_where(mask, -1, window - delta)
    masks.append((delta, mask))
    return mask


def keep_where(mask, sign, offset):
    """Zeros where sign * (column - partition) + offset < 0."""
    nisa.affine_select(
        dst=mask,
        pattern=[[sign, mask.shape[1]]],
        channel_multiplier=-sign,
        on_true_tile=mask,
        on_false_value=0.0,
        cmp_op=nl.greater_equal,
        offset=offset,
    )


def apply_mask(masks, p, delta, window):
    """p, of at most 128 by 128 weights, where they are seen."""
    if masked(delta, window):
        mask = mask_of(masks, delta, window, p.dtype)
        nisa.tensor_tensor(dst=p, data1=p, data2=mask[0 : p.shape[0], 0 : p.shape[1]], op=nl.multiply)


def among(block, ranges):
    for item in ranges:
        key, low, high = item
        if low <= block and block < high:
            return True
    return False


def units_of(tile, T, window):
    """The units of a tile that begins with block `tile`: (key block, first and last + 1 query block, query
    blocks whose first unit it is, those whose last it is). The diagonal comes first, so that the last
    unit is not one that is masked."""
    end = min(tile + WIDE, blocks_of(T))
    ranges = []
    for key in range(tile, end):
        ranges.append((key, key, end))
    for key in range(tile):
        ranges.append((key, tile, end))
    order = []
    for item in ranges:
        key, low, high = item
        while high > low and not seen((high - 1 - key) * P, window):
            high = high - 1
        if high > low:
            order.append((key, low, high))
    units = []
    for i in range(len(order)):
        key, low, high = order[i]
        begun, ended = [], []
        for block in range(low, high):
            if not among(block, order[0:i]):
                begun.append(block)
            if not among(block, order[i + 1 : len(order)]):
                ended.append(block)
        units.append((key, low, high, begun, ended))
    return units


# ---- forward ----


def load_tile(q, k, v, first, tile, T, heads, kv_heads, before):
    """(queries of a tile for each head, keys and values of the row so far for each key-value head): q and
    k transposed, v [128, blocks, width + 1] with ones behind it. `before` is that of the tile before."""
    width = q.shape[1] // heads
    group = heads // kv_heads
    start = tile * P
    size = min(WIDE * P, T - start)
    if tile == 0:
        kTs, ones = [], []
        for own in range(kv_heads):
            kTs.append(nl.ndarray((width, T), dtype=k.dtype, buffer=nl.sbuf))
            ones.append(nl.ndarray((P, blocks_of(T), width + 1), dtype=v.dtype, buffer=nl.sbuf))
            nisa.memset(dst=ones[own][:, :, width : width + 1], value=1.0, engine=nisa.engine.gpsimd)
    else:
        kTs, ones = before[1], before[2]
    qTs = []
    values = nl.ndarray((P, WIDE, v.shape[1]), dtype=v.dtype, buffer=nl.sbuf)
    for head in range(heads):
        own = head // group
        if head % group == 0:
            load_transposed(kTs[own], start, k, first + start, size, own * width)
        qTs.append(nl.ndarray((width, size), dtype=q.dtype, buffer=nl.sbuf))
        load_transposed(qTs[head], 0, q, first + start, size, head * width)
        if head == 0:
            load_blocks(values, v, first + start, size)
    for own in range(kv_heads):
        for item in parts(size):
            rows, low, high = item
            nisa.tensor_copy(
                dst=ones[own][0:rows, tile + low : tile + high, 0:width],
                src=values[0:rows, low:high, nl.ds(own * width, width)],
                engine=nisa.engine.gpsimd,
            )
    return (qTs, kTs, ones)


def weights(qT, kT, unit, tile, T, scale, window, masks):
    """exp of a unit's scores, keys by queries, where they are seen."""
    key, low, high, begun, ended = unit
    keys = min(P, T - key * P)
    queries = min(T, high * P) - low * P
    scores = nl.ndarray((keys, queries), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(
        dst=scores,
        stationary=kT[:, nl.ds(key * P, keys)],
        moving=qT[:, nl.ds((low - tile) * P, queries)],
        accumulate=False,
    )
    kind = nl.float32 if qT.dtype == nl.float32 else nl.bfloat16  # exponentials that float16 has no room for
    p = nl.ndarray((keys, queries), dtype=kind, buffer=nl.sbuf)
    nisa.activation(dst=p, op=nl.exp, data=scores, scale=scale)
    for block in range(low, high):
        some = p[:, (block - low) * P : min((block - low + 1) * P, queries)]
        apply_mask(masks, some, (block - key) * P, window)
    return p


def products(sums, p, ones, unit, tile, T):
    """Adds a unit's weights times values, and its weights, to the sums of its query blocks."""
    key, low, high, begun, ended = unit
    for block in range(low, high):
        rows = min(P, T - block * P)
        nisa.nc_matmul(
            dst=sums_of(sums, block - tile)[0:rows, :],
            stationary=p[:, nl.ds((block - low) * P, rows)],
            moving=ones[0 : p.shape[0], key, :],
            accumulate=block not in begun,
        )


def new_sums(width):
    """Sums of a tile of one head, [128, banks, blocks of a bank, width + 1]: in PSUM, where no block may
    cross a bank."""
    room = 4
    while room * (width + 1) > nl.tile_size.psum_fmax:
        room = room // 2
    bank = nl.tile_size.psum_fmax // room
    return nl.ndarray((P, WIDE // room, room, bank), dtype=nl.float32, buffer=nl.psum)[:, :, :, 0 : width + 1]


def sums_of(sums, block):
    return sums[:, block // sums.shape[2], block % sums.shape[2], :]


def finish(sums, out, totals, head, size):
    """The sums of a tile divided by those of its weights, which are kept."""
    width = sums.shape[3] - 1
    room = sums.shape[2]
    inverse = nl.ndarray((P, WIDE), dtype=nl.float32, buffer=nl.sbuf)
    for item in parts(size):
        rows, low, high = item
        for at in range(low, high, room):
            end = min(at + room, high)
            if low % room > 0:  # the rest, alone
                total = sums[0:rows, at // room, nl.ds(at % room, 1), width]
            else:
                total = sums[0:rows, at // room, 0 : end - at, width]
            nisa.tensor_copy(dst=totals[0:rows, at:end, head], src=total)
        nisa.reciprocal(dst=inverse[0:rows, low:high], data=totals[0:rows, low:high, head])
        for block in range(low, high):
            nisa.tensor_scalar(
                dst=out[0:rows, block, nl.ds(head * width, width)],
                data=sums_of(sums, block)[0:rows, 0:width],
                op0=nl.multiply,
                operand0=inverse[0:rows, block : block + 1],
            )


def store_tile(o, lse, out, totals, start, size):
    """Outputs and log-sum-exps of a tile of all heads."""
    store_blocks(o, out, start, size)
    logs = nl.ndarray(totals.shape, dtype=nl.float32, buffer=nl.sbuf)
    for item in parts(size):
        rows, low, high = item
        nisa.activation(dst=logs[0:rows, low:high, :], op=nl.log, data=totals[0:rows, low:high, :])
    store_blocks(lse, logs, start, size)


def warm_up():
    """Loads the table of exp and log while the first tokens are on their way."""
    one = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=one, value=1.0)
    nisa.activation(dst=one, op=nl.exp, data=one)


@nki.jit
def attention_of_normed(q, k, v, heads, kv_heads=0, window=0, length=0):
    """(o, lse): o = softmax(q k' / sqrt(head width)) v in each row of `length` tokens (0: all are one),
    where query i sees keys j with 0 <= i - j (<= window, unless that is 0); lse, tokens x heads in
    float32, is the log of the sum of exponentials. kv_heads 0: as many as heads."""
    T = length if length > 0 else q.shape[0]
    kv_heads = kv_heads if kv_heads > 0 else heads
    width = q.shape[1] // heads
    o = nl.ndarray(q.shape, dtype=q.dtype, buffer=nl.shared_hbm)
    lse = nl.ndarray((q.shape[0], heads), dtype=nl.float32, buffer=nl.shared_hbm)
    tiles = []
    todo = []
    for first in range(0, q.shape[0], T):
        for tile in range(0, blocks_of(T), WIDE):
            units = units_of(tile, T, window)
            for head in range(heads):
                for i in range(len(units)):
                    todo.append((len(tiles), head, units[i], i == 0, i + 1 == len(units)))
            tiles.append((first, tile))
    warm_up()
    masks = []
    loaded = [load_tile(q, k, v, 0, 0, T, heads, kv_heads, None)]
    ahead = []
    sums, out, totals = None, None, None
    for i in range(len(todo) + AHEAD):
        if i < len(todo):
            at, head, unit, starts, ends = todo[i]
            first, tile = tiles[at]
            if starts and head == 0 and at + 1 < len(tiles):
                following, next_tile = tiles[at + 1]
                loaded.append(load_tile(q, k, v, following, next_tile, T, heads, kv_heads, loaded[at]))
            qTs, kTs, ones = loaded[at]
            own = head // (heads // kv_heads)
            ahead.append(weights(qTs[head], kTs[own], unit, tile, T, 1.0 / width**0.5, window, masks))
        if i >= AHEAD:
            at, head, unit, starts, ends = todo[i - AHEAD]
            first, tile = tiles[at]
            size = min(WIDE * P, T - tile * P)
            if starts:
                sums = new_sums(width)
                if head == 0:
                    out = nl.ndarray((P, WIDE, q.shape[1]), dtype=q.dtype, buffer=nl.sbuf)
                    totals = nl.ndarray((P, WIDE, heads), dtype=nl.float32, buffer=nl.sbuf)
            products(sums, ahead[i - AHEAD], loaded[at][2][head // (heads // kv_heads)], unit, tile, T)
            if ends:
                finish(sums, out, totals, head, size)
                if head + 1 == heads:
                    store_tile(o, lse, out, totals, first + tile * P, size)
    return o, lse


def turn(ds, dtype):
    """Up to 512 columns of ds, queries by keys, with keys on partitions: [128, blocks of keys, queries],
    by the PE."""
    rows, keys = ds.shape
    turned = nl.ndarray((P, WIDE, P), dtype=dtype, buffer=nl.psum)
    moved = nl.ndarray((P, WIDE, P), dtype=dtype, buffer=nl.sbuf)
    for i in range(blocks_of(keys)):
        size = min(P, keys - i * P)
        nisa.nc_transpose(
            dst=turned[0:size, i, 0:rows], data=ds[:, nl.ds(i * P, size)], engine=nisa.engine.tensor
        )
    for item in parts(keys):
        size, low, high = item
        nisa.tensor_copy(
            dst=moved[0:size, low:high, 0:rows],
            src=turned[0:size, low:high, 0:rows],
            engine=nisa.engine.scalar,
        )
    return moved


# ---- forward for scores of any size ----


def key_ranges(T, window):
    """For every query block the first and last + 1 key block that it sees."""
    ranges = []
    for block in range(blocks_of(T)):
        low = 0
        while not seen((block - low) * P, window):
            low = low + 1
        ranges.append((low, block + 1))
    return ranges


def bounds(block, rows, window):
    """(first, last) key that each query of a block sees, one a partition."""
    first = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    last = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.iota(dst=last, pattern=[[1, 1]], offset=block * P, channel_multiplier=1)
    if window > 0:
        nisa.iota(dst=first, pattern=[[1, 1]], offset=block * P - window, channel_multiplier=1)
    else:
        nisa.memset(dst=first, value=-1.0)
    return first[0:rows, :], last[0:rows, :]


def masked_scores(qT, kT, block, span, T, window):
    """(scores of a query block with the keys of a span of blocks, the least number where it sees none;
    -the largest of each query)."""
    low, high = span
    rows, keys = min(P, T - block * P), min(T, high * P) - low * P
    scores = nl.ndarray((rows, keys), dtype=nl.float32, buffer=nl.sbuf)
    steps = (keys + WIDE * P - 1) // (WIDE * P)
    largest = nl.ndarray((rows, steps), dtype=nl.float32, buffer=nl.sbuf)
    first, last = bounds(block, rows, window)
    for step in range(steps):
        at = step * WIDE * P
        many = min(WIDE * P, keys - at)
        part = nl.ndarray((rows, many), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(
            dst=part,
            stationary=qT[:, nl.ds(block * P, rows)],
            moving=kT[:, nl.ds(low * P + at, many)],
            accumulate=False,
        )
        nisa.range_select(
            dst=scores[:, nl.ds(at, many)],
            on_true_tile=part,
            comp_op0=nl.greater_equal,
            comp_op1=nl.less_equal,
            bound0=first,
            bound1=last,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
            reduce_res=largest[:, step : step + 1],
            reduce_op=nl.maximum,
            range_start=low * P + at,
        )
    most = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=most, op=nl.maximum, data=largest, axis=1, negate=True)
    return scores, most


def soften(scores, minus_most, scale, dtype):
    """(exp of scores less the largest, their sum, scale times -the largest)."""
    rows, keys = scores.shape
    p = nl.ndarray((rows, keys), dtype=dtype, buffer=nl.sbuf)
    sum = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    bias = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=bias, data=minus_most, op0=nl.multiply, operand0=scale)
    nisa.activation_reduce(
        dst=p, op=nl.exp, data=scores, scale=scale, bias=bias, reduce_op=nl.add, reduce_res=sum
    )
    return p, sum, bias


def blend(out, logs, totals, p, sum, bias, values, span, block, head):
    """A query block's weights times values over the sum of weights into out, and what makes its log-sum-exp."""
    low, high = span
    rows, keys = p.shape
    width = values.shape[2]
    mixed = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.psum)
    for tile in range(low, high, WIDE):
        many = min(WIDE * P, keys - (tile - low) * P)
        turned = turn(p[:, nl.ds((tile - low) * P, many)], p.dtype)
        for i in range(blocks_of(many)):
            size = min(P, many - i * P)
            nisa.nc_matmul(
                dst=mixed,
                stationary=turned[0:size, i, 0:rows],
                moving=values[0:size, tile + i, :],
                accumulate=tile + i != low,
            )
    inverse = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.reciprocal(dst=inverse, data=sum)
    nisa.tensor_scalar(dst=out[0:rows, block % WIDE, :], data=mixed, op0=nl.multiply, operand0=inverse)
    nisa.tensor_copy(dst=totals[0:rows, block, head : head + 1], src=sum)
    nisa.tensor_copy(dst=logs[0:rows, block, head : head + 1], src=bias)


@nki.jit
def attention(q, k, v, heads, kv_heads=0, window=0, length=0):
    """(o, lse) as attention_of_normed, for scores of any size: the scores of 128 queries wait in SBUF in
    float32 for the largest of them, which Vector finds while it masks them; the weights are turned by
    the PE"""
    T = length if length > 0 else q.shape[0]
    kv_heads = kv_heads if kv_heads > 0 else heads
    width = q.shape[1] // heads
    group = heads // kv_heads
    o = nl.ndarray(q.shape, dtype=q.dtype, buffer=nl.shared_hbm)
    lse = nl.ndarray((q.shape[0], heads), dtype=nl.float32, buffer=nl.shared_hbm)
    spans = key_ranges(T, window)
    todo = []
    for first in range(0, q.shape[0], T):
        for head in range(heads):
            for block in range(len(spans)):
                todo.append((first, head, block))
    warm_up()
    loaded = []
    made = []
    qT, kT, values = None, None, None
    out, logs, totals = None, None, None
    for i in range(len(todo) + AHEAD_GENERAL):
        if i < len(todo):
            first, head, block = todo[i]
            if block == 0:
                qT = nl.ndarray((width, T), dtype=q.dtype, buffer=nl.sbuf)
                if head % group == 0:
                    kT = nl.ndarray((width, T), dtype=k.dtype, buffer=nl.sbuf)
                    values = nl.ndarray((P, len(spans), width), dtype=v.dtype, buffer=nl.sbuf)
                loaded.append((qT, kT, values))
            if block % WIDE == 0:
                start, size = first + block * P, min(WIDE * P, T - block * P)
                load_transposed(qT, block * P, q, start, size, head * width)
                if head % group == 0:
                    own = head // group * width
                    load_transposed(kT, block * P, k, start, size, own)
                    load_blocks(values[:, nl.ds(block, blocks_of(size)), :], v, start, size, own)
            scores, minus_most = masked_scores(qT, kT, block, spans[block], T, window)
            made.append(soften(scores, minus_most, 1.0 / width**0.5, q.dtype))
        j = i - AHEAD_GENERAL
        if j >= 0:
            first, head, block = todo[j]
            if block % WIDE == 0:
                out = nl.ndarray((P, WIDE, width), dtype=q.dtype, buffer=nl.sbuf)
            if head == 0 and block == 0:
                logs = nl.ndarray((P, len(spans), heads), dtype=nl.float32, buffer=nl.sbuf)
                totals = nl.ndarray((P, len(spans), heads), dtype=nl.float32, buffer=nl.sbuf)
            p, sum, bias = made[j]
            blend(out, logs, totals, p, sum, bias, loaded[j // len(spans)][2], spans[block], block, head)
            if block % WIDE == WIDE - 1 or block + 1 == len(spans):
                at = block // WIDE * WIDE * P
                store_blocks(o, out, first + at, min(WIDE * P, T - at), head * width)
            if head + 1 == heads and block + 1 == len(spans):
                for item in parts(T):
                    rows, low, high = item
                    some = totals[0:rows, low:high, :]
                    nisa.activation(dst=some, op=nl.log, data=some)
                    nisa.tensor_tensor(dst=some, data1=some, data2=logs[0:rows, low:high, :], op=nl.subtract)
                store_blocks(lse, totals, first, T)
    return o, lse


# ---- backward ----


def new_row(q, k, T, heads):
    """What all heads of a row share, as blocks: q, k, d o, and minus lse."""
    count = blocks_of(T)
    q_blocks = nl.ndarray((P, count, q.shape[1]), dtype=q.dtype, buffer=nl.sbuf)
    k_blocks = nl.ndarray((P, count, k.shape[1]), dtype=k.dtype, buffer=nl.sbuf)
    do_blocks = nl.ndarray((P, count, q.shape[1]), dtype=q.dtype, buffer=nl.sbuf)
    minus_lse = nl.ndarray((P, count, heads), dtype=nl.float32, buffer=nl.sbuf)
    return q_blocks, k_blocks, do_blocks, minus_lse


def new_stage(q, k, first, own, T, heads, kv_heads, before):
    """What a key-value head of a row needs: (the row, k and v transposed, q and d o transposed of each
    head of the group, delta = the sum of d o times o). load_queries fills it tile by tile."""
    width = q.shape[1] // heads
    group = heads // kv_heads
    row = before[0] if own > 0 else new_row(q, k, T, heads)
    kT = nl.ndarray((width, T), dtype=k.dtype, buffer=nl.sbuf)
    vT = nl.ndarray((width, T), dtype=k.dtype, buffer=nl.sbuf)
    qTs, doTs = [], []
    for member in range(group):
        qTs.append(nl.ndarray((width, T), dtype=q.dtype, buffer=nl.sbuf))
        doTs.append(nl.ndarray((width, T), dtype=q.dtype, buffer=nl.sbuf))
    delta = nl.ndarray((P, blocks_of(T), group), dtype=nl.float32, buffer=nl.sbuf)
    return row, kT, vT, qTs, doTs, delta


def load_queries(stage, q, k, v, o, do, lse, first, own, member, tile, T, kv_heads):
    """A tile of queries of a head, and what comes with it the first time: the tile's keys and values, the
    row's blocks."""
    row, kT, vT, qTs, doTs, delta = stage
    width = kT.shape[0]
    group = len(qTs)
    head = own * group + member
    at = tile * P
    start = first + at
    size = min(WIDE * P, T - at)
    some = nl.ds(tile, blocks_of(size))
    load_transposed(qTs[member], at, q, start, size, head * width)
    if member == 0:
        load_transposed(kT, at, k, start, size, own * width)
    load_transposed(doTs[member], at, do, start, size, head * width)
    if member == 0:
        load_transposed(vT, at, v, start, size, own * width)
    o_blocks = nl.ndarray((P, WIDE, width), dtype=o.dtype, buffer=nl.sbuf)
    load_blocks(o_blocks, o, start, size, head * width)
    if member == 0 and (own == 0 or own % 2 == 1):
        # the columns of the first head alone, so that it can start; then of two heads at once, in longer pieces
        low, high = own, 1 if own == 0 else min(own + 2, kv_heads)
        wide = nl.ds(low * group * width, (high - low) * group * width)
        narrow = nl.ds(low * width, (high - low) * width)
        load_blocks(row[2][:, some, wide], do, start, size, low * group * width)
        if own == 0:
            load_blocks(row[3][:, some, :], lse, start, size)
        load_blocks(row[0][:, some, wide], q, start, size, low * group * width)
        load_blocks(row[1][:, some, narrow], k, start, size, low * width)
    products = nl.ndarray((P, WIDE, width), dtype=nl.float32, buffer=nl.sbuf)
    for item in parts(size):
        rows, low, high = item
        if head == 0:
            lses = row[3][0:rows, tile + low : tile + high, :]
            nisa.tensor_scalar(dst=lses, data=lses, op0=nl.multiply, operand0=-1.0)
        nisa.tensor_tensor(
            dst=products[0:rows, low:high, :],
            data1=row[2][0:rows, tile + low : tile + high, nl.ds(head * width, width)],
            data2=o_blocks[0:rows, low:high, :],
            op=nl.multiply,
            engine=nisa.engine.gpsimd,
        )
        for block in range(low, high):
            nisa.activation_reduce(
                dst=products[0:rows, block, :],
                op=nl.copy,
                data=products[0:rows, block, :],
                reduce_op=nl.add,
                reduce_res=delta[0:rows, tile + block, member : member + 1],
            )


def backward_units(T, group, window):
    """The units of a key-value head: (first key block of a tile, head of the group, query block, first and
    last + 1 key block), a tile of 512 keys after the other."""
    units = []
    for tile in range(0, blocks_of(T), WIDE):
        for head in range(group):
            for block in range(tile, blocks_of(T)):
                low, high = tile, min(tile + WIDE, block + 1)
                while low < high and not seen((block - low) * P, window):
                    low = low + 1
                if low < high:
                    units.append((tile, head, block, low, high))
    return units


def gradients_of_scores(unit, stage, own, T, scale, window):
    """(p, d scores / scale) of a unit, queries by keys."""
    tile, member, block, low, high = unit
    row, kT, vT, qTs, doTs, delta = stage
    head = own * len(qTs) + member
    rows = min(P, T - block * P)
    keys = min(high * P, T) - low * P
    queries, some = nl.ds(block * P, rows), nl.ds(low * P, keys)
    scores = nl.ndarray((rows, keys), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=scores, stationary=qTs[member][:, queries], moving=kT[:, some], accumulate=False)
    dp = nl.ndarray((rows, keys), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=dp, stationary=doTs[member][:, queries], moving=vT[:, some], accumulate=False)
    p = nl.ndarray((rows, keys), dtype=kT.dtype, buffer=nl.sbuf)
    bias = row[3][0:rows, block, head : head + 1]
    nisa.activation(dst=p, op=nl.exp, data=scores, scale=scale, bias=bias)
    for key in range(low, high):
        hide(p[:, (key - low) * P : min((key - low + 1) * P, keys)], (block - key) * P, window)
    ds = nl.ndarray((rows, keys), dtype=kT.dtype, buffer=nl.sbuf)
    nisa.scalar_tensor_tensor(
        dst=ds,
        data=dp,
        op0=nl.subtract,
        operand0=delta[0:rows, block, member : member + 1],
        op1=nl.multiply,
        operand1=p,
    )
    return p, ds


def hide(p, delta, window):
    """Zeros where a query, on the partitions, does not see a key."""
    if delta == 0:
        keep_where(p, -1, 0)
    if window > 0 and delta + P - 1 > window:
        keep_where(p, 1, window - delta)


def add_keys(dk_sums, dv_sums, p, ds, unit, row, head, width, T):
    """Adds a unit's part of d k / scale and d v, both sums in PSUM."""
    tile, member, block, low, high = unit
    rows = p.shape[0]
    columns = nl.ds(head * width, width)
    for key in range(low, high):
        keys = min(P, T - key * P)
        some = nl.ds((key - low) * P, keys)
        begun = member == 0 and block == key
        nisa.nc_matmul(
            dst=dv_sums[0:keys, key - tile, :],
            stationary=p[:, some],
            moving=row[2][0:rows, block, columns],
            accumulate=not begun,
        )
        nisa.nc_matmul(
            dst=dk_sums[0:keys, key - tile, :],
            stationary=ds[:, some],
            moving=row[0][0:rows, block, columns],
            accumulate=not begun,
        )


def add_queries(dq_sums, dq_out, turned, unit, row, own, width, T, scale, window):
    """Adds a unit's part of d q / scale to the sum in SBUF, or finishes the query block."""
    tile, member, block, low, high = unit
    rows = min(P, T - block * P)
    part = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.psum)
    for key in range(low, high):
        keys = min(P, T - key * P)
        nisa.nc_matmul(
            dst=part,
            stationary=turned[0:keys, key - low, 0:rows],
            moving=row[1][0:keys, key, nl.ds(own * width, width)],
            accumulate=key != low,
        )
    sum = dq_sums[0:rows, block, nl.ds(member * width, width)]
    begun = tile == 0 or not seen((block - tile + 1) * P, window)
    if begun:
        ready = part
    else:
        nisa.tensor_tensor(dst=sum, data1=part, data2=sum, op=nl.add)
        ready = sum
    if block < tile + WIDE:
        nisa.activation(
            dst=dq_out[0:rows, block - tile, nl.ds(member * width, width)],
            op=nl.copy,
            data=ready,
            scale=scale,
        )
    elif begun:
        nisa.activation(dst=sum, op=nl.copy, data=part)


def store_keys(dk, dv, dk_sums, dv_sums, start, size, column, scale):
    """d k and d v of a tile, whose last query has come."""
    width = dk_sums.shape[2]
    dk_out = nl.ndarray((P, WIDE, width), dtype=dk.dtype, buffer=nl.sbuf)
    dv_out = nl.ndarray((P, WIDE, width), dtype=dv.dtype, buffer=nl.sbuf)
    for item in parts(size):
        rows, low, high = item
        nisa.activation(
            dst=dk_out[0:rows, low:high, :], op=nl.copy, data=dk_sums[0:rows, low:high, :], scale=scale
        )
        nisa.activation(dst=dv_out[0:rows, low:high, :], op=nl.copy, data=dv_sums[0:rows, low:high, :])
    store_blocks(dk, dk_out, start, size, column)
    store_blocks(dv, dv_out, start, size, column)


def changes(units, i, part):
    """Whether unit i of a round of units is the first of its tile (part 0) or its last (part 1)."""
    i = i % len(units)
    if part == 0:
        return i == 0 or units[i - 1][0] != units[i][0]
    return i + 1 == len(units) or units[i + 1][0] != units[i][0]


@nki.jit
def attention_backward(q, k, v, o, lse, do, heads, kv_heads=0, window=0, length=0):
    """(dq, dk, dv) of o, lse = attention(q, k, v, ...)"""
    T = length if length > 0 else q.shape[0]
    kv_heads = kv_heads if kv_heads > 0 else heads
    width = q.shape[1] // heads
    group = heads // kv_heads
    scale = 1.0 / width**0.5
    dq = nl.ndarray(q.shape, dtype=q.dtype, buffer=nl.shared_hbm)
    dk = nl.ndarray(k.shape, dtype=k.dtype, buffer=nl.shared_hbm)
    dv = nl.ndarray(v.shape, dtype=v.dtype, buffer=nl.shared_hbm)
    units = backward_units(T, group, window)
    heads_todo = []
    for first in range(0, q.shape[0], T):
        for own in range(kv_heads):
            heads_todo.append((first, own))
    warm_up()
    stages, loaded, made, turned = [], [], [], []
    dk_sums, dv_sums, dq_sums, dq_out = None, None, None, None
    total = len(units) * len(heads_todo)
    for i in range(-PREFETCH, total + AHEAD_BACKWARD + 1):
        fetch = i + PREFETCH
        if fetch < total:
            at = fetch // len(units)
            first, own = heads_todo[at]
            tile, member, block, low, high = units[fetch % len(units)]
            if at == len(stages):
                stages.append(
                    new_stage(q, k, first, own, T, heads, kv_heads, stages[at - 1] if own > 0 else None)
                )
                loaded = []
            if member * blocks_of(T) + block // WIDE not in loaded:
                loaded.append(member * blocks_of(T) + block // WIDE)
                load_queries(
                    stages[at], q, k, v, o, do, lse, first, own, member, block // WIDE * WIDE, T, kv_heads
                )
        if i >= 0 and i < total:
            at = i // len(units)
            made.append(
                gradients_of_scores(units[i % len(units)], stages[at], heads_todo[at][1], T, scale, window)
            )
        j = i - AHEAD_BACKWARD
        if j >= 0 and j < total:
            unit = units[j % len(units)]
            first, own = heads_todo[j // len(units)]
            tile = unit[0]
            if changes(units, j, 0):
                dk_sums = nl.ndarray((P, WIDE, width), dtype=nl.float32, buffer=nl.psum)
                dv_sums = nl.ndarray((P, WIDE, width), dtype=nl.float32, buffer=nl.psum)
            p, ds = made[j]
            row = stages[j // len(units)][0]
            add_keys(dk_sums, dv_sums, p, ds, unit, row, own * group + unit[1], width, T)
            turned.append(turn(ds, q.dtype))
            if changes(units, j, 1):
                size = min(WIDE * P, T - tile * P)
                store_keys(dk, dv, dk_sums, dv_sums, first + tile * P, size, own * width, scale)
        j = j - 1
        if j >= 0:
            unit = units[j % len(units)]
            first, own = heads_todo[j // len(units)]
            tile = unit[0]
            if j % len(units) == 0:
                dq_sums = nl.ndarray((P, blocks_of(T), group * width), dtype=nl.float32, buffer=nl.sbuf)
            if changes(units, j, 0):
                dq_out = nl.ndarray((P, WIDE, group * width), dtype=q.dtype, buffer=nl.sbuf)
            row = stages[j // len(units)][0]
            add_queries(dq_sums, dq_out, turned[j], unit, row, own, width, T, scale, window)
            if changes(units, j, 1):
                size = min(WIDE * P, T - tile * P)
                store_blocks(dq, dq_out, first + tile * P, size, own * group * width)
    return dq, dk, dv
