"""An independent CORE: the fact sheet's section 7 in Python, held against `frontier eval core --items`.

Nothing is shared with the C code but the files of a run and of a bundle: Python's own random module, the `tokenizers`
package reading tokenizer.json, PyYAML and csv for the bundle, and a forward pass of the model in numpy and
fp32 (kit and nanochat families), which runs what an item's options share once.

    python3 -m pip install numpy safetensors tokenizers pyyaml tomli
    frontier eval core RUN --bundle B --numerics fp32 --max-per-task 200 --items items.jsonl
    python3 lab/core_reference.py RUN B items.jsonl --max-per-task 200 [--tasks a,b]

A prediction may differ only where the two best losses (or logits) differ by less than 1e-5. Exit code 1 otherwise.
"""
import argparse
import csv
import json
import math
import os
import random
import sys
import time

import numpy as np
import yaml
from safetensors.numpy import load_file
from tokenizers import Tokenizer

try:
    import tomllib
except ImportError:
    import tomli as tomllib

BLOCK = 256


def rms(x):
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + np.float32(1.1920929e-07))


class Model:
    def __init__(self, run):
        with open(os.path.join(run, "recipe.toml"), "rb") as file:
            m = tomllib.load(file)["model"]
        assert m["position"] == "rotary" and m["norm"] == "rms" and m["activation"] == "relu2" and m["qk_norm"]
        assert not m["tied"]
        self.m = m
        self.p = load_file(os.path.join(run, "model.safetensors"))
        self.depth, self.T, self.softcap = m["depth"], m["context"], m["softcap"]
        self.width = m["width"] or math.ceil(m["depth"] * m["aspect"] / m["head_dim"]) * m["head_dim"]
        self.d, self.base, self.gain = m["head_dim"], m["rope_base"], m["qk_gain"]
        self.heads = self.width // self.d
        self.kv = m["kv_heads"] or self.heads
        short = m["short_window"] or 128 * math.ceil(math.ceil(self.T / 4) / 128)
        kinds = [m["windows"][i % len(m["windows"])] for i in range(self.depth)]
        self.windows = [short if kind == "S" and i < self.depth - 1 else self.T for i, kind in enumerate(kinds)]

    def rotate(self, x, first):
        angle = np.arange(first, first + len(x))[:, None] * self.base ** (-2.0 * np.arange(self.d // 2)[None] / self.d)
        cos, sin = np.cos(angle)[:, None].astype(np.float32), np.sin(angle)[:, None].astype(np.float32)
        a, b = x[..., :self.d // 2], x[..., self.d // 2:]
        return np.concatenate([a * cos + b * sin, -a * sin + b * cos], -1)

    def attend(self, q, k, v, first, window):
        """Queries at first.., keys and values from position 0."""
        out = np.empty_like(q)
        for at in range(0, len(q), BLOCK):
            i = np.arange(at, min(at + BLOCK, len(q)))
            low = max(0, first + i[0] - window)
            j = np.arange(low, first + i[-1] + 1)
            gap = (first + i)[:, None] - j[None]
            hidden = (gap < 0) | (gap > window)
            for h in range(self.heads):
                g = h * self.kv // self.heads
                s = q[i, h] @ k[j[0]:j[-1] + 1, g].T / np.float32(math.sqrt(self.d))
                s[hidden] = -np.inf
                s = np.exp(s - s.max(-1, keepdims=True))
                out[i, h] = (s / s.sum(-1, keepdims=True)) @ v[j[0]:j[-1] + 1, g]
        return out

    def forward(self, ids, cache=None):
        """Final hidden states of `ids`, which follow the cached positions; and the cache with them."""
        p, m, first = self.p, self.m, 0 if cache is None else len(cache[0][0])
        x = embedded = rms(p["transformer.wte.weight"][ids])
        if m["smear"]:
            before = np.zeros_like(x[:1]) if cache is None else cache[-1]
            gate = x[:, :m["smear_channels"]] @ p["smear_gate.weight"].ravel()
            gate = p["smear_lambda"].ravel()[0] / (1 + np.exp(-gate))
            x = x + gate[:, None] * np.concatenate([before, x[:-1]])
        x0, grown = x, []
        for i in range(self.depth):
            n = f"transformer.h.{i}."
            if n + "resid_lambda" in p:
                x = p[n + "resid_lambda"].ravel()[0] * x
            if n + "x0_lambda" in p:
                x = x + p[n + "x0_lambda"].ravel()[0] * x0
            h = rms(x)
            q, k, v = ((h @ p[n + f"attn.c_{w}.weight"].T).reshape(len(ids), -1, self.d) for w in "qkv")
            if n + "attn.ve_gate.weight" in p:
                e = p[f"value_embeds.{i}.weight"][ids].reshape(v.shape)
                g = h[:, :m["value_gate_channels"]] @ p[n + "attn.ve_gate.weight"].T
                v = v + (np.float32(m["value_gate_range"]) / (1 + np.exp(-g)))[..., None] * e
            q, k = (np.float32(self.gain) * rms(self.rotate(t, first)) for t in (q, k))
            if cache is not None:
                k, v = np.concatenate([cache[i][0], k]), np.concatenate([cache[i][1], v])
            grown.append((k, v))
            y = self.attend(q, k, v, first, self.windows[i]).reshape(len(ids), -1)
            x = x + y @ p[n + "attn.c_proj.weight"].T
            u = np.maximum(rms(x) @ p[n + "mlp.c_fc.weight"].T, 0)
            x = x + (u * u) @ p[n + "mlp.c_proj.weight"].T
            if i == self.depth // 2:
                middle = x
        if m["backout"]:
            x = x - p["backout_lambda"].ravel()[0] * middle
        return rms(x), grown + [embedded[-1:]]

    def logits(self, h, vocab):
        z = h @ self.p["lm_head.weight"][:vocab].T
        return self.softcap * np.tanh(z / np.float32(self.softcap)) if self.softcap else z


def common(rows, reverse=False):
    rows = [r[::-1] for r in rows] if reverse else rows
    n = 0
    while all(n < len(r) for r in rows) and len({r[n] for r in rows}) == 1:
        n += 1
    return n


def prompts(task, item, shots):
    kind, delim = task["icl_task_type"], task.get("continuation_delimiter", " ")
    if kind == "multiple_choice":
        head = "".join(s["query"] + delim + s["choices"][s["gold"]] + "\n\n" for s in shots)
        return [head + item["query"] + delim + c for c in item["choices"]]
    if kind == "schema":
        head = "".join(s["context_options"][s["gold"]] + delim + s["continuation"] + "\n\n" for s in shots)
        return [head + c + delim + item["continuation"] for c in item["context_options"]]
    head = "".join(s["context"].strip() + delim + s["continuation"] + "\n\n" for s in shots)
    without = head + item["context"].strip() + delim
    return [without.strip(), without + item["continuation"]]


class Judge:
    def __init__(self, run, tokenizer):
        self.model, self.tokenizer = Model(run), tokenizer
        self.vocab = tokenizer.get_vocab_size()
        self.bos = tokenizer.token_to_id("<|bos|>")

    def nll(self, rows, starts):
        """Mean loss of each row from its start on; what all rows share is run once."""
        shared = max(0, min(common(rows), min(starts) - 1))
        cache = self.model.forward(rows[0][:shared])[1] if shared else None
        losses = []
        for row, start in zip(rows, starts):
            if start >= len(row):
                losses.append(float("nan"))
                continue
            h, _ = self.model.forward(row[shared:-1], cache)
            z = self.model.logits(h[start - 1 - shared:], self.vocab).astype(np.float64)
            top = z.max(-1, keepdims=True)
            total = top[:, 0] + np.log(np.exp(z - top).sum(-1))
            losses.append(float(np.mean(total - z[np.arange(len(z)), row[start:]])))
        return losses

    def item(self, task, item, shots):
        """(prediction, correct, distance between the two best)."""
        rows = [[self.bos] + self.tokenizer.encode(t, add_special_tokens=False).ids for t in prompts(task, item, shots)]
        if task["icl_task_type"] == "language_modeling":
            without, row = rows
            start = len(without)
            assert row[:start] == without
            h, _ = self.model.forward(row[:-1])
            z, want = self.model.logits(h[start - 1:], self.vocab), np.array(row[start:])
            right = bool((z.argmax(-1) == want).all())
            two = np.sort(z, -1)[:, -2:]
            return int(right), right, float((two[:, 1] - two[:, 0]).min())
        if task["icl_task_type"] == "schema":
            same = common(rows, reverse=True)
            losses = self.nll(rows, [len(r) - same for r in rows])
        else:
            losses = self.nll(rows, [common(rows)] * len(rows))
        guess = losses.index(min(losses))
        least = sorted(x for x in losses if x == x)
        gap = least[1] - least[0] if len(least) > 1 else float("inf")
        return guess, guess == item["gold"], gap


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("run")
    ask.add_argument("bundle")
    ask.add_argument("items")
    ask.add_argument("--max-per-task", type=int, default=0)
    ask.add_argument("--tasks")
    ask.add_argument("--seconds", type=float, default=math.inf, help="go to the next task after that many per task")
    given = ask.parse_args()
    with open(os.path.join(given.bundle, "core.yaml")) as file:
        tasks = yaml.safe_load(file)["icl_tasks"]
    with open(os.path.join(given.bundle, "eval_meta_data.csv"), newline="") as file:
        chance = {row["Eval Task"]: float(row["Random baseline"]) for row in csv.DictReader(file)}
    theirs = {}
    with open(given.items) as file:
        for line in file:
            answer = json.loads(line)
            theirs[answer["task"], answer["item"]] = answer
    judge = Judge(given.run, Tokenizer.from_file(os.path.join(given.run, "tokenizer.json")))
    wrong = compared = near = 0
    for task in tasks:
        label, path = task["label"], os.path.join(given.bundle, "eval_data", task["dataset_uri"])
        if (given.tasks and label not in given.tasks.split(",")) or (label, 0) not in theirs or not os.path.exists(path):
            continue
        with open(path) as file:
            data = [json.loads(line) for line in file if line.strip()]
        random.Random(1337).shuffle(data)
        if given.max_per_task:
            data = data[:given.max_per_task]
        right, n, start = 0, 0, time.time()
        for i, item in enumerate(data):
            if time.time() - start > given.seconds:
                break
            shots = random.Random(1234 + i).sample([k for k in range(len(data)) if k != i], task["num_fewshot"][0])
            guess, correct, gap = judge.item(task, item, [data[k] for k in shots])
            right, n = right + correct, n + 1
            if guess != theirs[label, i]["prediction"] or correct != theirs[label, i]["correct"]:
                near += gap < 1e-5
                wrong += gap >= 1e-5
                print(f"  {label} {i}: here {guess}, there {theirs[label, i]['prediction']}, gap {gap:.2e}")
        compared += n
        accuracy, b = right / n, chance[label] / 100
        print(f"{label:34} {n:5} of {len(data):5} items  {accuracy:.4f}  {(accuracy - b) / (1 - b):8.4f}  "
              f"{time.time() - start:6.1f} s", flush=True)
    print(f"{compared} items compared, {wrong} predictions differ, {near} differ within 1e-5")
    sys.exit(wrong > 0)


main()
