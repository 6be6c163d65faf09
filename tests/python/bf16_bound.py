"""How far apart rounding to bf16 takes logits, beside what the self-check allows: python bf16_bound.py [CHECKPOINT...]

Without a checkpoint, random weights of the shapes of Qwen3-0.6B and of a Llama of 380 M weights. Each text is read three times by
transformers: in f32, in bf16 with attention as separate products, and in bf16 with the fused attention of torch. Printed for each pair: the largest difference of a logit
as a part of the largest logit of its row, over all rows, and the bound of `src/engine/generate/compared.rs`.
"""

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
    return ((a - b).abs().amax(-1) / b.abs().amax(-1)).max().item()


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


def main(checkpoints):
    torch.manual_seed(1)
    models = (
        shapes()
        if not checkpoints
        else (
            (path, transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32))
            for path in checkpoints
        )
    )
    print(f"{'model':<28} bound   bf16 and f32   fused and f32   bf16 and fused")
    for name, model in models:
        # Weights that bf16 holds, so that arithmetic alone differs.
        model = model.to(torch.bfloat16).float().eval()
        texts = torch.randint(0, model.config.vocab_size, (TEXTS, TOKENS))
        model.set_attn_implementation("eager")
        exact = logits(model, texts)
        model = model.to(torch.bfloat16)
        separate = logits(model, texts)
        model.set_attn_implementation("sdpa")
        fused = logits(model, texts)
        print(
            f"{name:<28} {bound(model.config):.3f}   {apart(separate, exact):.4f}         {apart(fused, exact):.4f}          {apart(separate, fused):.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
