"""What the slow test of Hugging Face folders asks the real libraries; see test_hf.c.

    hf_models.py make FOLDER             small random models of several kinds, saved by transformers, in FOLDER/NAME;
                                         FOLDER/NAME.safetensors has a row of tokens and its logits
    hf_models.py load TEXT FOLDER...     loads exported folders; FOLDER.safetensors gets the logits of a row, the greedy
                                         continuation of its first 12 tokens, and the ids of the text
"""
import os
import shutil
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
import torch
from safetensors.torch import save_file
from transformers import (AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel, LlamaConfig,
                          LlamaForCausalLM)

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "formats")
VOCAB, LENGTH = 264, 40


def noisy(model):
    """Every weight random: the initial biases and gains would hide mistakes."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            one = 1.0 if weight.dim() == 1 and "weight" in name else 0.0
            weight.copy_(one + 0.25 * torch.randn_like(weight))
    return model.float().eval()


def save_answer(path, tokens, logits, **more):
    save_file({"tokens": tokens.int().contiguous(), "logits": logits.float().contiguous(), **more}, path)


def llama(**more):
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCAB, hidden_size=48, intermediate_size=100, num_hidden_layers=3,
                                        num_attention_heads=6, max_position_embeddings=64, **more))


def make(folder):
    torch.manual_seed(5)
    kinds = {
        "gpt2": GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_positions=64, n_embd=48, n_layer=3, n_head=4)),
        "gpt2-untied": GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_positions=64, n_embd=32, n_layer=2, n_head=2,
                                                  n_inner=72, layer_norm_epsilon=1e-3, tie_word_embeddings=False)),
        "llama": llama(num_key_value_heads=2, rope_theta=500000.0),
        "llama-tied": llama(num_key_value_heads=6, rms_norm_eps=1e-4, tie_word_embeddings=True),
        "llama-bias": llama(num_key_value_heads=3, attention_bias=True, mlp_bias=True),
    }
    for name, model in kinds.items():
        path = os.path.join(folder, name)
        noisy(model).save_pretrained(path, max_shard_size="60KB" if name == "llama" else "5GB")
        shutil.copy(os.path.join(VECTORS, "llama", "tokenizer.json"), path)
        tokens = torch.randint(0, VOCAB, (1, LENGTH))
        with torch.no_grad():
            save_answer(path + ".safetensors", tokens[0], model(tokens).logits[0])


def load(text_path, folders):
    with open(text_path, encoding="utf-8", newline="") as file:
        text = file.read()
    for folder in folders:
        model = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True, dtype=torch.float32).eval()
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
        tokens = torch.arange(LENGTH).mul(37).remainder(model.config.vocab_size)[None]
        with torch.no_grad():
            logits = model(tokens).logits[0]
            said = model.generate(tokens[:, :12], max_new_tokens=20, do_sample=False, eos_token_id=None)[0]
        ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        save_answer(folder + ".safetensors", tokens[0], logits, said=said.int(), ids=torch.tensor(ids).int(),
                    native=torch.tensor([type(model).__module__.startswith("transformers.")]).int())


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    load(sys.argv[2], sys.argv[3:])
