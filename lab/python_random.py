"""Writes tests/vectors/python_random.json: what CPython's own generator answers, for tests/unit/test_core_random.c.

    python3 lab/python_random.py
"""
import json
import os
import random

OUT = os.path.join(os.path.dirname(__file__), "..", "tests", "vectors", "python_random.json")


def examples(index, count, shots):
    return random.Random(1234 + index).sample([i for i in range(count) if i != index], shots)


def shuffled(seed, count):
    values = list(range(count))
    random.Random(seed).shuffle(values)
    return values


def main():
    seeds = [0, 1, 1234, 1337, 2**31, 2**32 - 1, 2**32, 2**40 + 7, 2**64 - 1]
    sizes = [(1, 1), (5, 5), (21, 3), (22, 3), (21, 5), (22, 5), (85, 10), (86, 10), (31, 10), (1000, 10), (277, 64),
             (278, 64), (30, 30)]
    data = {
        "words": [{"seed": str(s), "values": [random.Random(s).getrandbits(32)] +
                   [r.getrandbits(32) for r in [random.Random(s)] for _ in range(1500)][-3:]} for s in seeds],
        "below": [{"seed": 7, "bound": b, "values": [r._randbelow(b) for r in [random.Random(7)] for _ in range(20)]}
                  for b in (1, 2, 3, 10, 256, 257, 1000003, 2**31 - 1, 2**31)],
        "shuffle": [{"seed": 1337, "count": n, "head": shuffled(1337, n)[:20]} for n in (1, 2, 20, 100, 1838, 20321)],
        "sample": [{"seed": s, "n": n, "k": k, "values": random.Random(s).sample(range(n), k)}
                   for s in (1234, 1300) for n, k in sizes],
        "examples": [{"index": i, "count": n, "shots": k, "values": examples(i, n, k)}
                     for i, n, k in ((0, 32, 10), (31, 32, 10), (5, 230, 3), (229, 230, 3), (0, 2117, 10),
                                     (1999, 2117, 10), (10041, 10042, 10), (3, 86, 10), (3, 87, 10), (1, 22, 3))],
    }
    with open(OUT, "w") as file:
        file.write("{\n" + ",\n".join(f' "{key}": [\n  ' + ",\n  ".join(json.dumps(x) for x in value) + "\n ]"
                                      for key, value in data.items()) + "\n}\n")


main()
