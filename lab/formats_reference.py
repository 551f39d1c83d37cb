#!/usr/bin/env python3
"""Small random models in other programs' formats, and what they compute by an implementation of their own.

Writes tests/vectors/formats/: a GPT-2 folder, a Llama folder in two files of several types, a llama2.c model with its
tokenizer, and for each the logits of one row by NumPy in double, written from the published equations; for the
tokenizer the ids of texts, by the rule "merge the two neighbours whose joined text scores highest, the leftmost first".
The unit tests read them. Needs NumPy. Nothing here was copied from a trained model.

    lab/formats_reference.py
"""
import json
import os
import struct

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(ROOT, "tests", "vectors", "formats")
random = np.random.default_rng(20240917)
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")


# ---- files ----------------------------------------------------------------------------------------------------

def to_bytes(array, kind):
    if kind == "BF16":
        bits = np.asarray(array, np.float32).view(np.uint32)
        return (bits >> 16).astype(np.uint16).tobytes()
    return np.asarray(array).astype({"F32": np.float32, "F16": np.float16, "I32": np.int32}[kind]).tobytes()


def rounded(array, kind):
    """The values a file of this kind holds, in double."""
    if kind == "F16":
        return array.astype(np.float16).astype(np.float64)
    single = array.astype(np.float32)
    if kind == "BF16":
        single = (single.view(np.uint32) & 0xFFFF0000).view(np.float32)
    return single.astype(np.float64)


def write_tensors(path, tensors):
    """tensors: name -> (array, kind)."""
    header, data = {}, b""
    for name, (array, kind) in tensors.items():
        raw = to_bytes(array, kind)
        header[name] = {"dtype": kind, "shape": list(np.shape(array)), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


def write_json(path, value):
    with open(path, "w") as out:
        json.dump(value, out, indent=1)
        out.write("\n")


def folder(name):
    path = os.path.join(OUT, name)
    os.makedirs(path, exist_ok=True)
    return path


def alphabet():
    """The 256 printable characters that stand for bytes."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in visible]
    return [chr(b) if b in visible else chr(256 + others.index(b)) for b in range(256)]


def tokenizer_json(merges, specials, split, ignore_merges):
    vocab = {text: i for i, text in enumerate(alphabet())}
    for left, right in merges:
        vocab[left + right] = len(vocab)
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": split is None}
    steps = byte_level if split is None else {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": split}, "behavior": "Isolated", "invert": False}, byte_level]}
    added = [{"id": len(vocab) + i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": True} for i, text in enumerate(specials)]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": steps, "post_processor": None, "decoder": byte_level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                      "ignore_merges": ignore_merges, "vocab": vocab, "merges": [f"{a} {b}" for a, b in merges]}}


# ---- mathematics ----------------------------------------------------------------------------------------------

def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(q, k, v, heads, kv_heads):
    """Causal attention of one row; T x (heads * d)."""
    length, d = q.shape[0], q.shape[1] // heads
    q, k, v = (x.reshape(length, -1, d).transpose(1, 0, 2) for x in (q, k, v))
    k, v = (np.repeat(x, heads // kv_heads, axis=0) for x in (k, v))
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(d)
    scores[:, np.triu(np.ones((length, length), bool), 1)] = -np.inf
    return (softmax(scores) @ v).transpose(1, 0, 2).reshape(length, -1)


def layer_norm(x, gain, bias, eps):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gain + bias


def rms_norm(x, gain, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gain


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def silu(x):
    return x / (1 + np.exp(-x))


def rotate(x, heads, base, interleaved):
    """Pairs of channels turned by +angle."""
    length, d = x.shape[0], x.shape[1] // heads
    angle = np.arange(length)[:, None] * base ** (-2 * np.arange(d // 2) / d)[None]
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    x = x.reshape(length, heads, d)
    first, second = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :d // 2], x[..., d // 2:])
    turned = (first * c - second * s, second * c + first * s)
    y = np.stack(turned, -1).reshape(x.shape) if interleaved else np.concatenate(turned, -1)
    return y.reshape(length, heads * d)


def draw(*shape, scale=0.4, center=0.0):
    return random.normal(center, scale, shape)


def save_logits(name, tokens, logits):
    write_tensors(os.path.join(OUT, name), {"tokens": (tokens, "I32"), "logits": (logits, "F32")})


# ---- GPT-2 ----------------------------------------------------------------------------------------------------

def gpt2():
    width, heads, layers, positions, vocab = 12, 3, 2, 16, 260
    w = {"wte.weight": draw(vocab, width), "wpe.weight": draw(positions, width),
         "ln_f.weight": draw(width, center=1), "ln_f.bias": draw(width)}
    for i in range(layers):
        for norm in ("ln_1", "ln_2"):
            w[f"h.{i}.{norm}.weight"], w[f"h.{i}.{norm}.bias"] = draw(width, center=1), draw(width)
        for name, rows, columns in (("attn.c_attn", width, 3 * width), ("attn.c_proj", width, width),
                                    ("mlp.c_fc", width, 4 * width), ("mlp.c_proj", 4 * width, width)):
            w[f"h.{i}.{name}.weight"], w[f"h.{i}.{name}.bias"] = draw(rows, columns), draw(columns)
    w = {name: rounded(value, "F32") for name, value in w.items()}
    tokens = random.integers(0, vocab, 14)
    x = w["wte.weight"][tokens] + w["wpe.weight"][:len(tokens)]
    for i in range(layers):
        g = lambda name: w[f"h.{i}.{name}"]
        h = layer_norm(x, g("ln_1.weight"), g("ln_1.bias"), 1e-5) @ g("attn.c_attn.weight") + g("attn.c_attn.bias")
        y = attend(*np.split(h, 3, axis=1), heads, heads)
        x = x + y @ g("attn.c_proj.weight") + g("attn.c_proj.bias")
        h = layer_norm(x, g("ln_2.weight"), g("ln_2.bias"), 1e-5)
        x = x + gelu(h @ g("mlp.c_fc.weight") + g("mlp.c_fc.bias")) @ g("mlp.c_proj.weight") + g("mlp.c_proj.bias")
    logits = layer_norm(x, w["ln_f.weight"], w["ln_f.bias"], 1e-5) @ w["wte.weight"].T
    save_logits("gpt2-logits.safetensors", tokens, logits)
    path = folder("gpt2")
    write_json(f"{path}/config.json", {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": width, "n_head": heads, "n_layer": layers,
        "n_positions": positions, "n_ctx": positions, "n_inner": None, "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5, "vocab_size": vocab, "bos_token_id": 259, "eos_token_id": 259})
    tensors = {f"transformer.{name}": (value, "F32") for name, value in w.items()}
    tensors["transformer.h.0.attn.bias"] = (np.tril(np.ones((1, 1, positions, positions))), "F32")  # a causal mask
    write_tensors(f"{path}/model.safetensors", tensors)
    merges = [("Ġ", "t"), ("h", "e"), ("Ġt", "he")]
    write_json(f"{path}/tokenizer.json", tokenizer_json(merges, ["<|endoftext|>"], None, False))


# ---- Llama ----------------------------------------------------------------------------------------------------

def llama():
    width, heads, kv_heads, hidden, layers, vocab, base, eps = 16, 4, 2, 24, 2, 264, 500000.0, 1e-5
    kv = width // heads * kv_heads
    w, kinds = {"model.embed_tokens.weight": draw(vocab, width), "lm_head.weight": draw(vocab, width),
                "model.norm.weight": draw(width, center=1)}, {}
    for i in range(layers):
        p = f"model.layers.{i}."
        w[p + "input_layernorm.weight"] = draw(width, center=1)
        w[p + "post_attention_layernorm.weight"] = draw(width, center=1)
        for name, rows, columns in (("self_attn.q_proj", width, width), ("self_attn.k_proj", kv, width),
                                    ("self_attn.v_proj", kv, width), ("self_attn.o_proj", width, width),
                                    ("mlp.gate_proj", hidden, width), ("mlp.up_proj", hidden, width),
                                    ("mlp.down_proj", width, hidden)):
            w[f"{p}{name}.weight"] = draw(rows, columns)
            kinds[f"{p}{name}.weight"] = "F16" if i else "BF16"
    w = {name: rounded(value, kinds.get(name, "F32")) for name, value in w.items()}
    tokens = random.integers(0, vocab, 20)
    x = w["model.embed_tokens.weight"][tokens]
    for i in range(layers):
        g = lambda name: w[f"model.layers.{i}.{name}.weight"]
        h = rms_norm(x, g("input_layernorm"), eps)
        q, k = rotate(h @ g("self_attn.q_proj").T, heads, base, False), rotate(h @ g("self_attn.k_proj").T, kv_heads, base, False)
        x = x + attend(q, k, h @ g("self_attn.v_proj").T, heads, kv_heads) @ g("self_attn.o_proj").T
        h = rms_norm(x, g("post_attention_layernorm"), eps)
        x = x + (silu(h @ g("mlp.gate_proj").T) * (h @ g("mlp.up_proj").T)) @ g("mlp.down_proj").T
    logits = rms_norm(x, w["model.norm.weight"], eps) @ w["lm_head.weight"].T
    save_logits("llama-logits.safetensors", tokens, logits)
    path = folder("llama")
    write_json(f"{path}/config.json", {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": width, "intermediate_size": hidden,
        "num_attention_heads": heads, "num_key_value_heads": kv_heads, "num_hidden_layers": layers,
        "max_position_embeddings": 32, "hidden_act": "silu", "rms_norm_eps": eps, "rope_theta": base,
        "rope_scaling": None, "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False,
        "vocab_size": vocab, "bos_token_id": 258, "eos_token_id": 259})
    files = [{}, {}]
    for name, value in w.items():
        files[".layers.1." in name or name == "lm_head.weight"][name] = (value, kinds.get(name, "F32"))
    names = [f"model-0000{i + 1}-of-00002.safetensors" for i in range(2)]
    for name, tensors in zip(names, files):
        write_tensors(f"{path}/{name}", tensors)
    write_json(f"{path}/model.safetensors.index.json", {
        "metadata": {}, "weight_map": {tensor: name for name, tensors in zip(names, files) for tensor in tensors}})
    specials = ["<|begin_of_text|>", "<|end_of_text|>"]
    write_json(f"{path}/tokenizer.json", tokenizer_json([("Ġ", "a"), ("t", "h")], specials, LLAMA3, True))


# ---- llama2.c -------------------------------------------------------------------------------------------------

PIECES = ["aaa", "aa", " a", "ab", "ba", " ", "a", "b", "n", "é", "é ", "aab", "bb"]
SCORES = [-1.0, -1.0, -2.0, -3.0, -3.0, -10.0, -11.0, -12.0, -13.0, -14.0, -4.0, -0.5, -1e10]
TEXTS = ["", "a", "aaaa", "aaaaa", "aab aab", "abab", "baab aaa", "é é b", "xyz", "\n", "a\x80\x80b", " a", "  aa",
         "bbbb", "ban an", "日本 a", "a" * 100, "ab" * 60 + "é " * 20, "<0x41>", "<unk>"]


def encode(text, tokens):
    """Ids of a text, bytes in: characters first, then the best pair again and again."""
    lookup = {piece: i for i, (piece, _) in enumerate(tokens)}
    ids, at = ([lookup[b" "]] if text else []), 0
    while at < len(text):
        end = at + 1
        while end < len(text) and end - at < 4 and text[end] & 0xC0 == 0x80:
            end += 1
        ids += [lookup[text[at:end]]] if text[at:end] in lookup else [b + 3 for b in text[at:end]]
        at = end
    while True:
        best, where = -1e10, None
        for i in range(len(ids) - 1):
            joined = lookup.get(tokens[ids[i]][0] + tokens[ids[i + 1]][0])
            if joined is not None and tokens[joined][1] > best:
                best, where = tokens[joined][1], (i, joined)
        if where is None:
            return ids
        ids[where[0]:where[0] + 2] = [where[1]]


def llama2c():
    tokens = [(b"<unk>", 0.0), (b"\n<s>\n", 0.0), (b"\n</s>\n", 0.0)]
    tokens += [(b"<0x%02X>" % b, 0.0) for b in range(256)]
    tokens += [(piece.encode(), score) for piece, score in zip(PIECES, SCORES)]
    with open(os.path.join(OUT, "llama2c-tokenizer.bin"), "wb") as out:
        out.write(struct.pack("<i", max(len(piece) for piece, _ in tokens)))
        for piece, score in tokens:
            out.write(struct.pack("<fi", score, len(piece)) + piece)
    cases = [{"bytes": list(raw), "ids": encode(raw, tokens)}
             for raw in (text.encode("latin-1") if "\x80" in text else text.encode() for text in TEXTS)]
    write_json(os.path.join(OUT, "llama2c-ids.json"), cases)

    width, hidden, layers, heads, kv_heads, vocab, positions = 8, 20, 2, 2, 1, len(tokens), 24
    kv = width // heads * kv_heads
    w = {"embedding": draw(vocab, width), "rms_att": draw(layers, width, center=1), "wq": draw(layers, width, width),
         "wk": draw(layers, kv, width), "wv": draw(layers, kv, width), "wo": draw(layers, width, width),
         "rms_ffn": draw(layers, width, center=1), "w1": draw(layers, hidden, width), "w2": draw(layers, width, hidden),
         "w3": draw(layers, hidden, width), "rms_final": draw(width, center=1),
         "unused": np.zeros(positions * (width // heads)), "head": draw(vocab, width)}
    w = {name: rounded(value, "F32") for name, value in w.items()}
    with open(os.path.join(OUT, "llama2c.bin"), "wb") as out:
        out.write(struct.pack("<7i", width, hidden, layers, heads, kv_heads, -vocab, positions))
        for value in w.values():
            out.write(to_bytes(value, "F32"))
    row = random.integers(0, vocab, 20)
    x = w["embedding"][row]
    for i in range(layers):
        h = rms_norm(x, w["rms_att"][i], 1e-5)
        q, k = rotate(h @ w["wq"][i].T, heads, 10000.0, True), rotate(h @ w["wk"][i].T, kv_heads, 10000.0, True)
        x = x + attend(q, k, h @ w["wv"][i].T, heads, kv_heads) @ w["wo"][i].T
        h = rms_norm(x, w["rms_ffn"][i], 1e-5)
        x = x + (silu(h @ w["w1"][i].T) * (h @ w["w3"][i].T)) @ w["w2"][i].T
    save_logits("llama2c-logits.safetensors", row, rms_norm(x, w["rms_final"], 1e-5) @ w["head"].T)


os.makedirs(OUT, exist_ok=True)
gpt2()
llama()
llama2c()
print("wrote", OUT)
