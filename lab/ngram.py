"""ngram.py: an interpolated Kneser-Ney n-gram model over bytes, the yardstick for "is this corpus a toy?".

    python3 lab/ngram.py TRAIN VALID [--order 5]

Counts all n-grams of the training file up to `order` bytes (so a byte is predicted from order-1 earlier ones), with one
absolute discount per order, and prints the validation file's bits per byte. Lower orders use
continuation counts, as Kneser and Ney (1995) proposed; the lowest backs off to a uniform byte. Only the
Python standard library is used; order 5 takes about ten seconds for 5 MB.
"""
import argparse
import math
from collections import defaultdict


def count_top(data, order):
    """Contexts of order-1 bytes -> counts of the byte that follows."""
    counts = defaultdict(lambda: defaultdict(int))
    for i in range(order - 1, len(data)):
        counts[data[i - order + 1:i]][data[i]] += 1
    return counts


def continuation(higher):
    """For each context one byte shorter: in how many longer contexts did a byte follow?"""
    counts = defaultdict(lambda: defaultdict(int))
    for context, followers in higher.items():
        shorter = counts[context[1:]]
        for byte in followers:
            shorter[byte] += 1
    return counts


def discount(counts):
    once = twice = 0
    for followers in counts.values():
        for n in followers.values():
            once += n == 1
            twice += n == 2
    return once / (once + 2 * twice) if once and twice else 0.5


def build(data, order):
    """levels[k] = (contexts of k bytes -> (followers, total), discount), k = 0..order-1."""
    levels = [None] * order
    counts = count_top(data, order)
    for k in range(order - 1, -1, -1):
        table = {c: (dict(f), sum(f.values())) for c, f in counts.items()}
        levels[k] = (table, discount(counts))
        counts = continuation(counts) if k else counts
    return levels


def probability(levels, context, byte):
    p = 1.0 / 256
    for k, (table, d) in enumerate(levels):
        entry = table.get(context[len(context) - k:] if k else b"")
        if entry is None:
            break
        followers, total = entry
        p = (max(followers.get(byte, 0) - d, 0) + d * len(followers) * p) / total
    return p


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("train")
    parser.add_argument("valid")
    parser.add_argument("--order", type=int, default=5, help="bytes of an n-gram, the predicted one included")
    options = parser.parse_args()
    with open(options.train, "rb") as f:
        levels = build(f.read(), options.order)
    with open(options.valid, "rb") as f:
        valid = f.read()
    bits = 0.0
    for i in range(len(valid)):
        bits -= math.log2(probability(levels, valid[max(0, i - options.order + 1):i], valid[i]))
    print(f"order {options.order}: {bits / max(1, len(valid)):.4f} bits per byte on {len(valid)} bytes")


if __name__ == "__main__":
    main()
