"""How far apart rounding to bf16 takes logits, beside what the self-check takes for rounding:
python bf16_bound.py [CHECKPOINT [TEXTS.jsonl]]

Without a checkpoint, random weights of the shapes of Qwen3-0.6B and of a Llama of 380 M weights, and random tokens. TEXTS.jsonl: the
checkpoint's own texts, which `drift eval --model CHECKPOINT --preset greedy --lp automaton --texts TEXTS.jsonl` writes: a trained model
takes roundings further on them than on random tokens. Each text is read three times by transformers: in f32, in bf16 with attention as
separate products, and in bf16 with the fused attention of torch. Printed for each pair: the largest difference of a logit as a part of
the largest logit of its row, over all rows; how many rows in a hundred differ by more than the bound of
`src/engine/generate/compared.rs`; and this bound.
"""

import copy
import json
import math
import sys

import torch
import transformers

TOKENS, TEXTS = 48, 4


def bound(config):
    """As `bound` in compared.rs, for bf16."""
    return 4 * 2**-9 * math.sqrt(8 * config.num_hidden_layers + 4)


def logits(model, texts):
    with torch.no_grad():
        return model(texts).logits.float()


def apart(a, b):
    """Of each row."""
    return ((a - b).abs().amax(-1) / b.abs().amax(-1)).flatten()


def shapes():
    qwen = transformers.Qwen3Config(
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=28,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
        vocab_size=16_384,
    )
    llama = transformers.LlamaConfig(
        hidden_size=1024,
        intermediate_size=4096,
        num_hidden_layers=20,
        num_attention_heads=16,
        num_key_value_heads=8,
        vocab_size=16_384,
    )
    torch.manual_seed(0)
    for name, config in [("qwen3-0.6b, random", qwen), ("llama-380m, random", llama)]:
        yield name, transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)


def own_texts(checkpoint, file):
    """The tokens of each prompt and its text."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    with open(file) as lines:
        rows = [json.loads(line) for line in lines]
    for row in rows:
        text = f"[SMILES]{row['smiles']}[/SMILES]{row['text']}"
        start = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
        yield torch.tensor([start + tokenizer(text, add_special_tokens=False)["input_ids"]])


def main(checkpoint=None, file=None):
    torch.manual_seed(1)
    models = shapes()
    if checkpoint:
        models = [(checkpoint, transformers.AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32))]
    print(f"{'model':<28} bound   bf16 and f32     fused and f32    bf16 and fused")
    for name, model in models:
        # Weights that bf16 holds, so that arithmetic alone differs.
        exact_model = model.to(torch.bfloat16).float().eval()
        exact_model.set_attn_implementation("eager")
        model = copy.deepcopy(exact_model).to(torch.bfloat16)
        texts = own_texts(checkpoint, file) if file else torch.randint(0, model.config.vocab_size, (TEXTS, 1, TOKENS))
        pairs = [[], [], []]
        for text in texts:
            exact = logits(exact_model, text)
            model.set_attn_implementation("eager")
            separate = logits(model, text)
            model.set_attn_implementation("sdpa")
            fused = logits(model, text)
            for pair, (a, b) in zip(pairs, [(separate, exact), (fused, exact), (separate, fused)]):
                pair.append(apart(a, b))
        pairs = [torch.cat(pair) for pair in pairs]
        told = [f"{p.max().item():.4f}, {100 * (p > bound(model.config)).float().mean().item():.2f} %" for p in pairs]
        print(f"{name:<28} {bound(model.config):.3f}   {'   '.join(told)}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
