"""Small models of random weights, as Hugging Face lays them out, for drift with a tokenizer of the repository."""

import array
import json
import pathlib
import random
import shutil
import struct

TOKENIZERS = pathlib.Path(__file__).resolve().parents[3] / "eval"
LAYERS = 2

# Architecture, tokenizer, sizes: one of each way through the host's code.
SHAPES = {
    "qwen3": dict(like="qwen-like", heads=4, kv_heads=2, head_dim=64, hidden=96, inner=160, tied=True),
    "llama": dict(like="llama-like", heads=3, kv_heads=1, head_dim=128, hidden=64, inner=96, tied=False),
}


def tensors(config):
    """Names, sizes and deviations of the weights."""
    hidden, inner, dim = (config[key] for key in ["hidden_size", "intermediate_size", "head_dim"])
    queries, keys = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    vocab = config["vocab_size"]
    # Logits of a few units: some tokens are likely, and none alone.
    yield "model.embed_tokens.weight", [vocab, hidden], 3 / hidden**0.5
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", [vocab, hidden], 3 / hidden**0.5
    yield "model.norm.weight", [hidden], None
    for layer in range(config["num_hidden_layers"]):
        head = f"model.layers.{layer}"
        for part, out, terms in [
            ("self_attn.q_proj", queries, hidden),
            ("self_attn.k_proj", keys, hidden),
            ("self_attn.v_proj", keys, hidden),
            ("self_attn.o_proj", hidden, queries),
            ("mlp.gate_proj", inner, hidden),
            ("mlp.up_proj", inner, hidden),
            ("mlp.down_proj", hidden, inner),
        ]:
            yield f"{head}.{part}.weight", [out, terms], 1 / terms**0.5
        norms = [("input_layernorm", hidden), ("post_attention_layernorm", hidden)]
        if config["model_type"] == "qwen3":
            norms += [("self_attn.q_norm", dim), ("self_attn.k_norm", dim)]
        for part, size in norms:
            yield f"{head}.{part}.weight", [size], None


def make(folder, name):
    """Writes the model of a name into a folder."""
    shape = SHAPES[name]
    like = TOKENIZERS / shape["like"]
    config = json.loads((like / "config.json").read_text())
    config |= {
        "num_hidden_layers": LAYERS,
        "num_attention_heads": shape["heads"],
        "num_key_value_heads": shape["kv_heads"],
        "head_dim": shape["head_dim"],
        "hidden_size": shape["hidden"],
        "intermediate_size": shape["inner"],
        "tie_word_embeddings": shape["tied"],
        "max_position_embeddings": 512,
        "torch_dtype": "float32",
    }
    draws = random.Random(name)
    header, data = {}, bytearray()
    for tensor, sizes, deviation in tensors(config):
        count = sizes[0] * (sizes[1] if len(sizes) > 1 else 1)
        norms = (draws.uniform(0.8, 1.2) for _ in range(count))
        numbers = array.array("f", norms if deviation is None else (draws.gauss(0, deviation) for _ in range(count)))
        start = len(data)
        data += numbers.tobytes()
        header[tensor] = {"dtype": "F32", "shape": sizes, "data_offsets": [start, len(data)]}
    text = json.dumps(header).encode()
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(json.dumps(config))
    for file in ["tokenizer.json", "tokenizer_config.json", "generation_config.json"]:
        shutil.copy(like / file, folder / file)
