"""What ``drift extend-model`` writes, in transformers: it loads as it is, and writes the texts that drift writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

Drift = Callable[..., Any]

SMILES = ("CC=O", "C[C@H](N)O", "c1ccncc1")

#: Tokens that a text may take.
MOST = 60


def ok(run: Any) -> str:
    """What a run of drift printed, which succeeded."""
    assert run.returncode == 0, run.stderr
    return str(run.stdout)


def loaded(folder: Path) -> Any:
    """A checkpoint in f32; every weight must have its place, and every place its weight."""
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True
    )
    assert not any(info[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    return model.eval()


def source(repository: Path, folder: Path, name: str, tied: bool, shard: str) -> Path:
    """A reference checkpoint as transformers saves it: tied or not, in shards or whole."""
    given = repository / "eval" / name
    model = loaded(given)
    if not tied:
        # Another head than the embedding, but one that still writes.
        head = model.get_input_embeddings().weight.detach().clone()
        head[::7] *= 1.05
        model.config.tie_word_embeddings = False
        model.lm_head.weight = torch.nn.Parameter(head)
    model.to(torch.bfloat16).save_pretrained(folder, max_shard_size=shard)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (folder / file).write_bytes((given / file).read_bytes())
    return folder


def texts_of_drift(drift: Drift, model: Path, work: Path) -> list[str]:
    """Greedy texts, by drift."""
    (work / "smiles.txt").write_text("\n".join(SMILES))
    words = ["eval", "--model", model, "--smiles", work / "smiles.txt", "--lp", "none", "--preset", "greedy"]
    words += ["--dialect", "fixed", "--max-new-tokens", MOST, "--texts", work / "texts.jsonl", "--json", "-q"]
    ok(drift(*words))
    lines = (work / "texts.jsonl").read_text().splitlines()
    return [json.loads(line)["text"] for line in lines]


def texts_of_transformers(model: Any, tokenizer: Any) -> list[str]:
    """The same, by transformers."""
    texts = []
    for smiles in SMILES:
        prompt = tokenizer(f"[SMILES]{smiles}[/SMILES]", return_tensors="pt")
        written = model.generate(
            prompt.input_ids, attention_mask=prompt.attention_mask, do_sample=False, max_new_tokens=MOST
        )
        ids = written[0, prompt.input_ids.shape[1] :].tolist()
        ends = model.generation_config.eos_token_id
        if ids[-1] in (ends if isinstance(ends, list) else [ends]):
            ids.pop()
        texts.append(tokenizer.decode(ids))
    return texts


@pytest.mark.parametrize(
    ("name", "extension", "tied", "shard", "more"),
    [
        ("qwen-like", "qwen-like-fused", True, "1GB", ()),
        ("qwen-like", "qwen-like-separate", False, "1MB", ("--init", "ends", "--pad-to-multiple-of", "128")),
        ("llama-like", "llama-like-separate", True, "1MB", ("--pad-to-multiple-of", "64")),
        ("llama-like", "llama-like-fused", False, "1GB", ("--init", "mean")),
    ],
)
def test_transformers_loads_it_and_writes_what_drift_writes(
    drift: Drift,
    repository: Path,
    tmp_path: Path,
    name: str,
    extension: str,
    tied: bool,
    shard: str,
    more: tuple[str, ...],
) -> None:
    torch.set_num_threads(1)
    before = source(repository, tmp_path / "before", name, tied, shard)
    after = tmp_path / "after"
    words = ["extend-model", "--model", before, "--tokenizer", extension, "-o", after, "--json", "-q"]
    report = json.loads(ok(drift(*words, *more)))
    assert report["tied"] is tied
    assert (after / "model.safetensors.index.json").is_file() is (shard == "1MB")

    old, new = loaded(before), loaded(after)
    tokenizer = transformers.AutoTokenizer.from_pretrained(after)
    assert len(tokenizer) <= new.get_input_embeddings().num_embeddings == report["vocab_size"]
    head, embedding = new.get_output_embeddings().weight, new.get_input_embeddings().weight
    assert (head.data_ptr() == embedding.data_ptr()) is tied

    # Text of old tokens alone: prompts, and an answer as the base writes it.
    base = transformers.AutoTokenizer.from_pretrained(before)
    text = "[SMILES]CC=O[/SMILES][CONFORMER][C]<4.0182,1.0374,0.0007>[C]<3.0038,0.0615,0.4375>"
    ids = base(text, return_tensors="pt").input_ids
    with torch.no_grad():
        rows = old(ids).logits.shape[-1]
        difference = (old(ids).logits - new(ids).logits[..., :rows]).abs().max().item()
    assert difference < 1e-4
    assert len(tokenizer(text).input_ids) < ids.shape[1]

    texts = texts_of_drift(drift, after, tmp_path)
    assert texts == texts_of_transformers(new, tokenizer)
    assert all(texts) and any("]<" in text for text in texts)


#: Settings of small models, by architecture.
SMALL: dict[str, dict[str, Any]] = {
    "Gemma": {"num_key_value_heads": 1, "head_dim": 16},
    "Gemma2": {"num_key_value_heads": 1, "head_dim": 16},
    "Mistral": {"num_key_value_heads": 1},
    "Phi": {},
    "Phi3": {"num_key_value_heads": 1, "pad_token_id": 0},
    "Olmo": {},
    "Olmo2": {},
    "GPTNeoX": {},
    "Falcon": {},
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 128},
    "GPTJ": {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 128, "rotary_dim": 8},
    "Bloom": {"n_layer": 2, "n_head": 2},
    "Opt": {"ffn_dim": 64, "word_embed_proj_dim": 32, "max_position_embeddings": 128},
}


@pytest.mark.parametrize("name", SMALL)
def test_every_architecture_keeps_its_old_logits(
    drift: Drift, repository: Path, tmp_path: Path, name: str
) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    given = repository / "eval" / "qwen-like"
    base = transformers.AutoTokenizer.from_pretrained(given)
    common = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "vocab_size": len(base) + 5,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    kind = "OPT" if name == "Opt" else name
    config = getattr(transformers, f"{kind}Config")(**{**common, **SMALL[name]})
    model = getattr(transformers, f"{kind}ForCausalLM" if kind != "GPT2" else "GPT2LMHeadModel")(config)
    head = model.get_output_embeddings()
    if getattr(head, "bias", None) is not None:
        torch.nn.init.normal_(head.bias)
    before, after = tmp_path / "before", tmp_path / "after"
    model.save_pretrained(before)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (before / file).write_bytes((given / file).read_bytes())
    words = ["extend-model", "--model", before, "--tokenizer", "qwen-like-fused", "-o", after, "--json", "-q"]
    report = json.loads(ok(drift(*words)))

    old, new = loaded(before), loaded(after)
    extended = transformers.AutoTokenizer.from_pretrained(after)
    assert len(extended) <= new.get_input_embeddings().num_embeddings == report["vocab_size"]
    assert new.get_output_embeddings().out_features == report["vocab_size"]
    tied = new.get_output_embeddings().weight.data_ptr() == new.get_input_embeddings().weight.data_ptr()
    assert report["tied"] is tied
    ids = base("[SMILES]CC=O[/SMILES][CONFORMER][C]<4.0182,1.0374,0.0007>", return_tensors="pt").input_ids
    with torch.no_grad():
        difference = (
            (old(ids).logits[..., : len(base)] - new(ids).logits[..., : len(base)]).abs().max().item()
        )
    assert difference < 1e-4
    # A new row of a bias is a mean of old ones.
    if getattr(head, "bias", None) is not None:
        old_bias, new_bias = model.get_output_embeddings().bias, new.get_output_embeddings().bias
        assert new_bias.shape[0] == report["vocab_size"]
        assert (
            old_bias.min()
            <= new_bias[len(base) + 5 :].min()
            <= new_bias[len(base) + 5 :].max()
            <= old_bias.max()
        )
