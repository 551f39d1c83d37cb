#!/usr/bin/env python3
"""The tokenizer against independent implementations: an own naive trainer here, Hugging Face's `tokenizers`, tiktoken.

Writes tests/vectors/tokenizer_reference.json and tests/vectors/tokenizer_hf.json, which the unit tests read; they hold
nothing but texts written for this purpose and the ids the other implementations gave.

    make build/libfrontier.a
    pip install tokenizers tiktoken
    lab/tokenizer_reference.py [--shared DIR] [--corpus FILE]...

--corpus compares the ids of whole files too: nothing is written for those.
"""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

import tiktoken
import tiktoken.load
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VECTORS = os.path.join(ROOT, "tests", "vectors")
BUILTIN = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*"
           r"|\s*[\r\n]|\s+(?!\S)|\s+")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
VOCAB = 400

TRAINING = """The miller's daughter didn't trust the weather. She'd seen the river rise twice, and they'll tell you it
rose a third time in 1887. We've counted 42 bags, 137 sacks and 9 carts; the carts weren't ours.

    for (int i = 0; i < 10; i++) { total += price[i]; }

"Where are the carts?" she asked. "They're by the bridge," he said -- the bridge with the red lamps. Die Brücke über
den Fluss ist alt; le vieux pont était là. Мост стоит над рекой. 古い橋の上に猫がいる。다리 위에 고양이가 있다.
banana bandana bananas; aaaa aaaaa aaaaaa; ababab abab; the the the other mother's brother.
""" * 3

TEXTS = [
    "", " ", "a", "Hello world", "  two  spaces  ", "tabs\tand\nnew\r\nlines\r\n\r\n  end", "trailing   ", "\n\n\n", " \n \n x",
    "It's, IT'S, we'LL, you've THEY'RE I'd 'tis 'S 'X can't\u2019ve", "the long \u017f: '\u017fo", "don't'd've",
    "1 12 123 1234 12345 3.14159 1,000,000 x2y3 ٣٤٥ Ⅷ ½ ²³", "x=y+z; if(a&&b){c[1]=\"q\";}", "#!/bin/sh\necho $HOME\n",
    "naïve café façade coöperate", "cafe\u0301 e\u0301\u0301 \u0301x", "Straße STRASSE ǅ ŉ İı", "Привет, мир! Ёлка",
    "漢字かな交じり文。中文没有空格", "한국어 문장입니다", "สวัสดีชาวโลก", "नमस्ते दुनिया", "שלום עולם", "مرحبا بالعالم",
    "😀😃 👩‍👩‍👧‍👦 🇨🇭 ❤️", "\u00a0nbsp\u00a0 \u3000wide\u3000 \u2003em \u180emvs \u200bzw \ufeffbom \u0085nel \u2028ls",
    "𝔸𝕓𝟙𝟚 𐍈 𠀋", "<|endoftext|> <|bos|> <|user_start|>", "a" * 60, "ab" * 100, "-" * 77, " " * 90 + "x", "!?!?!?\n\n\n...",
    "aaaaaaaaaaaaaaaaaaaa banana bandana", "https://example.org/a/b?c=d&e=f#g", "e.g. i.e. U.S.A. (c) 2024--25 [1] {2}",
    "\x00\x01\x02 control\x7f \x1b[0m", "mixed\u00e9\u4e2d\u0416\u05d0 7\u0663\u2167", "'", "''", "'s", " 's", "\t's", "\r'll\n",
]


def random_texts(count):
    """Mixtures of characters of many kinds, all assigned by Unicode 14, so that every library knows them."""
    rng = random.Random(7)
    assert unicodedata.unidata_version == "14.0.0"
    kinds = [" ", "  ", "\n", "\r\n", "\t", "'", "'s", "'LL", "\u3000", "\u00a0"]
    texts = []
    for _ in range(count):
        text = ""
        for _ in range(rng.randrange(1, 24)):
            pick = rng.random()
            if pick < 0.4:
                text += rng.choice(kinds)
            elif pick < 0.7:
                text += chr(rng.randrange(33, 127))
            else:
                code = rng.randrange(0x80, rng.choice([0x250, 0x600, 0x3100, 0xD800, 0x1F700, 0x2FA20]))
                if not 0xD800 <= code < 0xE000 and unicodedata.category(chr(code)) != "Cn":
                    text += chr(code)
        texts.append(text)
    return texts


def split(pattern, text):
    """Chunks as UTF-8 bytes, by Hugging Face's engine."""
    pieces = pre_tokenizers.Split(Regex(pattern), "isolated").pre_tokenize_str(text)
    return [text[start:end].encode() for _, (start, end) in pieces]


def greedy_merges(text, wanted):
    """Exactly greedy by definition: recount everything for every merge."""
    words = collections.Counter(split(BUILTIN, text))
    words = [[list(word), count] for word, count in words.items()]
    merges = []
    for made in range(256, 256 + wanted):
        pairs = collections.Counter()
        for word, count in words:
            for pair in zip(word, word[1:]):
                pairs[pair] += count
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        for entry in words:
            word, out, i = entry[0], [], 0
            while i < len(word):
                hit = tuple(word[i:i + 2]) == best
                out.append(made if hit else word[i])
                i += 2 if hit else 1
            entry[0] = out
    return merges


def hugging_face_trained(path):
    """A file as `tokenizers` itself trains and writes it."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=360, special_tokens=["<|endoftext|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator([TRAINING], trainer)
    made.add_tokens([AddedToken("<extra token>", special=False)])
    made.save(path)
    return made


def tiktoken_encoding(path, pattern):
    return tiktoken.Encoding("reference", pat_str=pattern, mergeable_ranks=tiktoken.load.load_tiktoken_bpe(path),
                             special_tokens={})


class Frontier:
    """The library, through lab/tokenizer_dump.c."""

    def __init__(self, folder):
        self.folder = folder
        self.program = os.path.join(folder, "dump")
        subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-I" + os.path.join(ROOT, "include"),
                        os.path.join(ROOT, "lab", "tokenizer_dump.c"), os.path.join(ROOT, "build", "libfrontier.a"),
                        "-ldnnl", "-lpcre2-8", "-ljansson", "-lzstd", "-lz", "-lsodium", "-lm", "-pthread",
                        "-o", self.program], check=True)

    def text_file(self, text):
        path = os.path.join(self.folder, "text")
        with open(path, "wb") as file:
            file.write(text.encode())
        return path

    def train(self, text, vocab, out):
        subprocess.run([self.program, "train", str(vocab), self.text_file(text), out], check=True)

    def convert(self, kind, path, out):
        subprocess.run([self.program, "convert", kind, path, out], check=True)

    def encode(self, kind, path, text):
        done = subprocess.run([self.program, "encode", kind, path, self.text_file(text)], check=True, capture_output=True)
        return [int(line) for line in done.stdout.split()]


def require_equal(what, ours, theirs, text):
    if ours != theirs:
        at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
        sys.exit("%s differs at id %d: ours %s, theirs %s, text %r" % (
            what, at, ours[at:at + 8], theirs[at:at + 8], text[:200]))


def hf_ids(tokenizer, text):
    """Ids of plain text: special strings are text to us, so they are not looked for."""
    tokenizer.encode_special_tokens = True
    return tokenizer.encode(text, add_special_tokens=False).ids


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", default=os.environ.get("FRONTIER_SHARED", os.path.join(ROOT, "..", "shared")))
    parser.add_argument("--corpus", action="append", default=[])
    options = parser.parse_args()
    texts = TEXTS + random_texts(40)
    with tempfile.TemporaryDirectory() as folder:
        ours = Frontier(folder)
        trained = os.path.join(folder, "trained.json")
        ours.train(TRAINING, VOCAB, trained)
        hf_path = os.path.join(VECTORS, "tokenizer_hf.json")
        hugging_face_trained(hf_path)
        ranks = {name: os.path.join(options.shared, "data", "tokenizers", name + "_base.tiktoken") for name in ("r50k", "cl100k")}
        gpt2_json, cl100k_json = os.path.join(folder, "gpt2.json"), os.path.join(folder, "cl100k.json")
        files = os.path.join(options.shared, "data", "tokenizers")
        gpt2 = Tokenizer(models.BPE.from_file(os.path.join(files, "encoder.json"), os.path.join(files, "vocab.bpe")))
        gpt2.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        gpt2.save(gpt2_json)
        ours.convert("cl100k", ranks["cl100k"], cl100k_json)
        r50k, cl100k = tiktoken_encoding(ranks["r50k"], GPT2), tiktoken_encoding(ranks["cl100k"], CL100K)
        pairs = [  # name, ours, theirs
            ("trained", lambda t: ours.encode("json", trained, t), Tokenizer.from_file(trained)),
            ("hf", lambda t: ours.encode("json", hf_path, t), Tokenizer.from_file(hf_path)),
            ("r50k", lambda t: ours.encode("gpt2", ranks["r50k"], t), r50k),
            ("cl100k", lambda t: ours.encode("cl100k", ranks["cl100k"], t), cl100k),
            ("gpt2", lambda t: ours.encode("json", gpt2_json, t), gpt2),
            ("cl100k_json", lambda t: ours.encode("json", cl100k_json, t), Tokenizer.from_file(cl100k_json)),
        ]
        ids = {name: [] for name, _, _ in pairs}
        corpora = []
        for path in options.corpus:
            with open(path, "rb") as file:
                corpora.append(file.read().decode(errors="replace"))
        for name, encode, other in pairs:
            for text in texts + corpora:
                theirs = hf_ids(other, text) if isinstance(other, Tokenizer) else other.encode_ordinary(text)
                require_equal(name, encode(text), theirs, text)
                if len(ids[name]) < len(texts):
                    ids[name].append(theirs)
            print("%-12s equal on %d texts and %d corpora" % (name, len(texts), len(corpora)))
        merges = greedy_merges(TRAINING, VOCAB - 256 - 9)
        with open(trained) as file:
            written = json.load(file)
        names = list(written["model"]["vocab"])
        listed = ["%s %s" % (names[left], names[right]) for left, right in merges]
        require_equal("merges", written["model"]["merges"], listed, TRAINING)
        print("trained      %d merges equal the naive trainer's" % len(merges))
    vectors = {
        "made_by": "lab/tokenizer_reference.py with tokenizers %s, tiktoken %s" % (tokenizers.__version__, tiktoken.__version__),
        "vocab": VOCAB, "training_text": TRAINING, "merges": [list(pair) for pair in merges], "texts": texts,
        "ids": {name: ids[name] for name in ("trained", "hf", "r50k", "cl100k")},
    }
    with open(os.path.join(VECTORS, "tokenizer_reference.json"), "w") as file:
        json.dump(vectors, file, ensure_ascii=True, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
