"""The Frontier family of language models for Hugging Face's transformers.

This file travels with exported weights. `config.recipe` is the [model] section of the recipe a model was trained by;
every choice of it is one line here, and the names of tensors are those of the training program:

    x = norm(wte[tokens]);  x0 = x
    for each block:  x = r x + z x0;  x = x + Wo attention(norm x);  x = x + Wproj act(Wfc norm x)
    logits = softcap(head norm(x))

There is no cache of keys and values: every call computes whole rows, and rows of a batch have one length.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput


class FrontierConfig(PretrainedConfig):
    model_type = "frontier"

    def __init__(self, recipe=None, vocab_size=64, **kwargs):
        self.recipe = recipe or {}
        self.vocab_size = vocab_size
        kwargs.setdefault("tie_word_embeddings", False)  # a tied model has no head of its own at all
        super().__init__(**kwargs)


class Norm(nn.Module):
    """Root-mean-square norm, with a gain or without, or layer norm with gain and bias."""

    def __init__(self, recipe, width):
        super().__init__()
        self.layer = recipe["norm"] == "layer"
        self.eps = recipe["norm_eps"] or (1e-5 if self.layer else 1.1920929e-07)
        self.weight = nn.Parameter(torch.ones(width)) if recipe["norm"] != "rms" else None
        self.bias = nn.Parameter(torch.zeros(width)) if self.layer else None

    def forward(self, x):
        if self.layer:
            return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)
        return F.rms_norm(x, x.shape[-1:], self.weight, self.eps)


def rotate(x, base, interleaved):
    """Turns pairs of channels of every head (batch, heads, tokens, d) by an angle that grows with the position."""
    tokens, d = x.shape[-2:]
    steps = torch.arange(tokens, dtype=torch.float64, device=x.device)[:, None]
    angle = steps * base ** (-2 * torch.arange(d // 2, dtype=torch.float64, device=x.device) / d)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    if interleaved:  # channels 2m and 2m + 1, by +angle
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)
    a, b = x[..., : d // 2], x[..., d // 2 :]  # channels m and m + d/2, by -angle
    return torch.cat((a * cos + b * sin, b * cos - a * sin), dim=-1)


def visible(tokens, window, device):
    """Query i sees keys j with 0 <= i - j <= window."""
    back = torch.arange(tokens, device=device)
    back = back[:, None] - back[None]
    return (back >= 0) & (back <= window)


class Attention(nn.Module):
    def __init__(self, recipe, layer):
        super().__init__()
        width, self.d, bias = recipe["width"], recipe["head_dim"], recipe["bias"]
        self.recipe, self.heads, self.kv_heads = recipe, width // recipe["head_dim"], recipe["kv_heads"]
        self.window = window_of(recipe, layer)
        self.c_q = nn.Linear(width, width, bias=bias)
        self.c_k = nn.Linear(width, self.kv_heads * self.d, bias=bias)
        self.c_v = nn.Linear(width, self.kv_heads * self.d, bias=bias)
        self.c_proj = nn.Linear(width, width, bias=bias)
        if has_value_embedding(recipe, layer):
            self.ve_gate = nn.Linear(recipe["value_gate_channels"], self.kv_heads, bias=False)

    def split(self, x, heads):
        return x.view(*x.shape[:2], heads, self.d).transpose(1, 2)

    def place(self, x):
        """Positions of queries and keys, then their norm."""
        recipe = self.recipe
        if recipe["position"] == "rotary":
            x = rotate(x, recipe["rope_base"], recipe["rotary_pairs"] == "interleaved")
        if recipe["qk_norm"]:
            x = recipe["qk_gain"] * F.rms_norm(x, (self.d,), eps=recipe["norm_eps"] or 1.1920929e-07)
        return x

    def forward(self, h, value):
        q, k, v = self.split(self.c_q(h), self.heads), self.split(self.c_k(h), self.kv_heads), self.c_v(h)
        if value is not None:
            gate = torch.sigmoid(self.ve_gate(h[..., : self.recipe["value_gate_channels"]]))
            v = v + (self.recipe["value_gate_range"] * gate).repeat_interleave(self.d, dim=-1) * value
        k, v = (x.repeat_interleave(self.heads // self.kv_heads, dim=1)
                for x in (self.place(k), self.split(v, self.kv_heads)))
        mask = visible(h.shape[1], self.window, h.device)
        y = F.scaled_dot_product_attention(self.place(q), k, v, attn_mask=mask)
        return self.c_proj(y.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, recipe):
        super().__init__()
        self.activation = recipe["activation"]
        self.c_fc = nn.Linear(recipe["width"], recipe["hidden"], bias=recipe["bias"])
        if self.activation == "swiglu":
            self.c_gate = nn.Linear(recipe["width"], recipe["hidden"], bias=recipe["bias"])
        self.c_proj = nn.Linear(recipe["hidden"], recipe["width"], bias=recipe["bias"])

    def forward(self, h):
        u = self.c_fc(h)
        if self.activation == "swiglu":
            u = F.silu(self.c_gate(h)) * u
        elif self.activation == "gelu":
            u = F.gelu(u, approximate="tanh")
        else:
            u = F.relu(u).square()
        return self.c_proj(u)


class Block(nn.Module):
    def __init__(self, recipe, layer):
        super().__init__()
        self.ln_1, self.attn = Norm(recipe, recipe["width"]), Attention(recipe, layer)
        self.ln_2, self.mlp = Norm(recipe, recipe["width"]), MLP(recipe)
        self.resid_lambda = nn.Parameter(torch.ones(1)) if recipe["resid_scalars"] else None
        self.x0_lambda = nn.Parameter(torch.zeros(1)) if recipe["x0_scalars"] else None

    def forward(self, x, x0, value):
        if self.resid_lambda is not None:
            x = self.resid_lambda * x
        if self.x0_lambda is not None:
            x = x + self.x0_lambda * x0
        x = x + self.attn(self.ln_1(x), value)
        return x + self.mlp(self.ln_2(x))


def window_of(recipe, layer):
    """Keys to the left of a query that a layer sees: a pattern of L and S, the last layer always L."""
    pattern, context = recipe["windows"], recipe["context"]
    if layer == recipe["depth"] - 1 or pattern[layer % len(pattern)] == "L":
        return context
    return recipe["short_window"] or 128 * math.ceil(math.ceil(context / 4) / 128)


def has_value_embedding(recipe, layer):
    return recipe["value_embeddings"] and layer % 2 == (recipe["depth"] - 1) % 2


class FrontierForCausalLM(PreTrainedModel, GenerationMixin):
    config_class = FrontierConfig
    base_model_prefix = ""
    _no_split_modules = ["Block"]

    def __init__(self, config):
        super().__init__(config)
        recipe, vocab = config.recipe, config.vocab_size
        width, depth = recipe["width"], recipe["depth"]
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocab, width),
            "h": nn.ModuleList(Block(recipe, layer) for layer in range(depth)),
            "ln_f": Norm(recipe, width)})
        if recipe["position"] == "learned":
            self.transformer["wpe"] = nn.Embedding(recipe["context"], width)
        if recipe["embedding_norm"]:
            self.transformer["ln_e"] = Norm(recipe, width)
        self.value_embeds = nn.ModuleDict({
            str(layer): nn.Embedding(vocab, recipe["kv_heads"] * recipe["head_dim"])
            for layer in range(depth) if has_value_embedding(recipe, layer)})
        if recipe["smear"]:
            self.smear_gate = nn.Linear(recipe["smear_channels"], 1, bias=False)
            self.smear_lambda = nn.Parameter(torch.zeros(1))
        if recipe["backout"]:
            self.backout_lambda = nn.Parameter(torch.zeros(1))
        if not recipe["tied"]:
            self.lm_head = nn.Linear(width, vocab, bias=False)
        self.post_init()

    def get_input_embeddings(self):
        return self.transformer["wte"]

    def embed(self, tokens):
        recipe, x = self.config.recipe, self.transformer["wte"](tokens)
        if recipe["position"] == "learned":
            x = x + self.transformer["wpe"].weight[: tokens.shape[1]]
        if recipe["embedding_norm"]:
            x = self.transformer["ln_e"](x)
        if recipe["smear"]:
            share = self.smear_lambda * torch.sigmoid(self.smear_gate(x[:, 1:, : recipe["smear_channels"]]))
            x = torch.cat((x[:, :1], x[:, 1:] + share * x[:, :-1]), dim=1)
        return x

    def hidden(self, tokens):
        recipe, middle = self.config.recipe, None
        x = x0 = self.embed(tokens)
        for layer, block in enumerate(self.transformer["h"]):
            key = str(layer)
            x = block(x, x0, self.value_embeds[key](tokens) if key in self.value_embeds else None)
            if layer == recipe["depth"] // 2:
                middle = x
        if recipe["backout"]:
            x = x - self.backout_lambda * middle
        return self.transformer["ln_f"](x)

    def forward(self, input_ids, attention_mask=None, labels=None, **kwargs):
        recipe = self.config.recipe
        if attention_mask is not None and not bool((attention_mask != 0).all()):
            raise ValueError("padded rows are not supported: give rows of one length")
        if recipe["position"] == "learned" and input_ids.shape[1] > recipe["context"]:
            raise ValueError(f"the model has {recipe['context']} positions")
        head = self.transformer["wte"].weight if recipe["tied"] else self.lm_head.weight
        logits = F.linear(self.hidden(input_ids), head).float()
        if recipe["softcap"] > 0:
            logits = recipe["softcap"] * torch.tanh(logits / recipe["softcap"])
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        return CausalLMOutput(loss=loss, logits=logits)

    def prepare_inputs_for_generation(self, input_ids, **kwargs):
        return {"input_ids": input_ids}
