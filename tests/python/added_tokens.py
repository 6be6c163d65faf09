"""Compares drift with transformers' AutoTokenizer on folders whose added tokens stand only in a file beside `tokenizer.json`.

    python added_tokens.py DRIFT FOLDER BASE [BASE …]

For each BASE, a `tokenizer.json` or `tokenizer.json.gz`, the four tags, an end token and a padding token are put in turn into
`added_tokens_decoder` of `tokenizer_config.json`, into `added_tokens.json`, and into `special_tokens_map.json`, in a new folder in FOLDER.
Judged by AutoTokenizer: the ids and FREE tokens of `inspect`; the prompt and the answer that a grammar of `export-grammar` accepts (by
llguidance, if it is there and reads the grammar); the ids of an extension of `train-tokenizer`; and the rows of `extend-model`. Files that
contradict each other must be refused by names. Prints a line for each folder; exit status 1 at the first difference.
"""

import gzip
import json
import os
import subprocess
import sys

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ["HF_HUB_OFFLINE"] = "1"
import tokenizers  # noqa: E402
import transformers  # noqa: E402

NEW = ["[SMILES]", "[/SMILES]", "[CONFORMER]", "[/CONFORMER]", "[EOS]", "[PAD]"]
ANSWER = "[CONFORMER][C]<1.0000,-2.0000,3.1234>[C]<-10.5000,0.0001,0.0000>=[O]<0.1000,2.0000,12.0000>[/CONFORMER]"
PROMPT = "[SMILES]CC=O[/SMILES]"
TEXT = PROMPT + ANSWER
# Blocks that the extension of `check_extension` isolates.
SHORT = PROMPT + "[CONFORMER][C]<1.00,-0.25,0.10>[C]<-1.99,0.00,1.50>=[O]<0.01,-0.99,0.50>[/CONFORMER]"
TEXTS = [TEXT, TEXT + "[EOS]", SHORT, " [SMILES] C[C@H]1CN1 [/SMILES]", "[PAD][PAD]x", "[CONFORMER"]
CLASS = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}


def drift(program, *arguments, status=0):
    ran = subprocess.run([program, *arguments, "--quiet"], capture_output=True, text=True)
    if ran.returncode != status:
        sys.exit(f"{arguments}: status {ran.returncode}: {ran.stdout[-300:]}{ran.stderr}")
    return ran.stdout if status == 0 else ran.stderr


def write(folder, name, content):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))


def places(base):
    """The files of each folder, by its name."""
    known = base.get_vocab(with_added_tokens=True)
    new = [token for token in NEW if token not in known]
    ids = {token: base.get_vocab_size() + place for place, token in enumerate(new)}
    ids.update({token: known[token] for token in NEW if token in known})
    flags = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False, "special": True}
    listed = {str(id): {"content": token, **flags} for token, id in ids.items()}
    named = {"eos_token": "[EOS]", "pad_token": "[PAD]"}
    mapped = {"additional_special_tokens": NEW[:4], "eos_token": {"content": "[EOS]", **flags}, "pad_token": "[PAD]"}
    mapped["eos_token"].pop("special")
    return {
        "decoder": {"tokenizer_config.json": {**CLASS, **named, "added_tokens_decoder": listed}},
        "added": {"tokenizer_config.json": {**CLASS, **named}, "added_tokens.json": ids},
        "map": {"tokenizer_config.json": CLASS, "special_tokens_map.json": mapped},
    }


def check_inspect(program, folder, tokenizer):
    reports = json.loads(drift(program, "inspect", "--json", "--tokenizer", folder, "--", *TEXTS))
    for text, report in zip(TEXTS, reports):
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        own = [token["id"] for token in report["tokens"]]
        if own != encoded["input_ids"]:
            sys.exit(f"{folder}: {text!r} is\n{own}, by transformers\n{encoded['input_ids']}")
        inside = [False]
        for character in text:
            inside.append(character == "<" or (inside[-1] and character != ">"))
        free = sum(
            start < end and all(inside[at] and text[at] != ">" for at in range(start, end))
            for start, end in encoded["offset_mapping"]
        )
        if report["free"] != free:
            sys.exit(f"{folder}: {text!r} has {report['free']} FREE tokens, by transformers {free}")


def check_grammar(program, folder, tokenizer):
    """Whether llguidance accepts the ids of an answer; None if it reads no such grammar."""
    try:
        import llguidance
        import llguidance.hf
    except ImportError:
        return None
    work = os.path.join(folder, "grammar.jsonl")
    drift(program, "export-grammar", "--tokenizer", folder, "CC=O", "--format", "lark", "-o", work)
    with open(work, encoding="utf-8") as file:
        grammar = json.loads(file.readline())
    os.remove(work)
    matcher = llguidance.LLMatcher(llguidance.hf.from_tokenizer(tokenizer), grammar["grammar"])
    if matcher.is_error():
        return None
    encoded = tokenizer(TEXT + "[EOS]", add_special_tokens=False, return_offsets_mapping=True)
    # A token that crosses the end of the prompt belongs to the answer.
    behind = sum(end <= len(PROMPT) for _, end in encoded["offset_mapping"])
    ids, alone = encoded["input_ids"], tokenizer(PROMPT, add_special_tokens=False)["input_ids"]
    stated = grammar.get("prompt_ids")
    if stated is None and ids[:behind] != alone or stated is not None and stated[-behind:] != ids[:behind]:
        sys.exit(f"{folder}: the prompt {alone} is {ids[:behind]} before an answer; the grammar says {stated}")
    for id in ids[behind:]:
        if not matcher.consume_token(id):
            sys.exit(f"{folder}: the grammar does not allow {id}, {tokenizer.decode([id])!r}")
    return True


def check_extension(program, folder, tokenizer):
    corpus, extended = os.path.join(folder, "corpus.txt"), os.path.join(folder, "extended")
    write(folder, "corpus.txt", TEXT + "\n")
    # The fewest numbers, since drift encodes each in many contexts.
    request = ["--kind", "fused", "--tokens-per-block", "9", "--range", "2", "--decimals", "2", "--corpus", corpus, "-o", extended]
    ran = subprocess.run([program, "train-tokenizer", "--base", folder, *request, "--quiet"], capture_output=True, text=True)
    if ran.returncode != 0:
        return ran.stderr.strip()[-80:]
    loaded = transformers.AutoTokenizer.from_pretrained(extended)
    vocabulary, before = loaded.get_vocab(), tokenizer.get_vocab()
    moved = [token for token, id in before.items() if vocabulary.get(token) != id]
    if moved:
        sys.exit(f"{folder}: the extension moves {moved[:5]}")
    alone = tokenizers.Tokenizer.from_file(os.path.join(extended, "tokenizer.json"))
    if alone.get_vocab() != vocabulary:
        sys.exit(f"{folder}: transformers adds tokens to the extension")
    if (loaded.eos_token, loaded.pad_token) != ("[EOS]", "[PAD]"):
        sys.exit(f"{folder}: the extension ends texts with {loaded.eos_token}")
    check_inspect(program, extended, loaded)
    check_model(program, folder, extended, (len(tokenizer), len(loaded)))
    return f"{len(loaded) - len(tokenizer)} new tokens"


def check_model(program, folder, extended, sizes):
    import numpy
    from safetensors.numpy import load_file, save_file

    model, grown = os.path.join(folder, "model"), os.path.join(folder, "grown")
    rows, hidden = sizes[0], 2
    for name in ("tokenizer.json", "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json"):
        if os.path.exists(os.path.join(folder, name)):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                write(model, name, file.read())
    write(model, "config.json", {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": rows, "hidden_size": hidden, "tie_word_embeddings": True})
    table = numpy.arange(rows * hidden, dtype=numpy.float32).reshape(rows, hidden)
    save_file({"model.embed_tokens.weight": table}, os.path.join(model, "model.safetensors"), {"format": "pt"})
    drift(program, "extend-model", "--model", model, "--tokenizer", extended, "-o", grown)
    after = load_file(os.path.join(grown, "model.safetensors"))["model.embed_tokens.weight"]
    if after.shape[0] < sizes[1] or not (after[:rows] == table).all():
        sys.exit(f"{folder}: extend-model wrote {after.shape}")
    loaded = transformers.PreTrainedTokenizerFast.from_pretrained(grown)
    if loaded.get_vocab() != transformers.PreTrainedTokenizerFast.from_pretrained(extended).get_vocab():
        sys.exit(f"{grown}: not the tokens of the extension")


def check_refusals(program, folder, json_text, size):
    """Files that contradict each other are refused, with both names."""
    flags = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False, "special": True}
    vocabulary = json.loads(json_text)["model"]["vocab"]
    taken = next(iter(vocabulary.values())) if isinstance(vocabulary, dict) else 5
    cases = {
        "taken": ("tokenizer.json", {"tokenizer_config.json": {**CLASS, "added_tokens_decoder": {str(taken): {"content": "[NEW]", **flags}}}}),
        "moved": ("tokenizer.json", {"tokenizer_config.json": {**CLASS, "added_tokens_decoder": {str(size + 7): {"content": "[NEW]", **flags}}}}),
        "added": ("added_tokens.json", {"tokenizer_config.json": CLASS, "added_tokens.json": {"[NEW]": taken}}),
        "stale": ("added_tokens.json", {"tokenizer_config.json": {**CLASS, "added_tokens_decoder": {str(size): {"content": "[NEW]", **flags}}}, "added_tokens.json": {"[OLD]": size}}),
        "lists": ("special_tokens_map.json", {"tokenizer_config.json": {**CLASS, "additional_special_tokens": ["[A]"]}, "special_tokens_map.json": {"additional_special_tokens": ["[B]"]}}),
    }
    for name, (named, files) in cases.items():
        where = f"{folder}-{name}"
        write(where, "tokenizer.json", json_text)
        for file, content in files.items():
            write(where, file, content)
        said = drift(program, "inspect", "--tokenizer", where, "[NEW]", status=2)
        other = "tokenizer_config.json" if named != "added_tokens.json" or name == "stale" else "tokenizer.json"
        if named not in said or other not in said or len(said.strip().splitlines()) != 1:
            sys.exit(f"{where}: says {said!r}")


def main(program, out, *bases):
    for path in bases:
        name = os.path.basename(os.path.dirname(path))
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
            text = file.read()
        base = tokenizers.Tokenizer.from_str(text)
        for place, files in places(base).items():
            folder = os.path.join(out, f"{name}-{place}")
            write(folder, "tokenizer.json", text)
            for file, content in files.items():
                write(folder, file, content)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
            check_inspect(program, folder, tokenizer)
            walked = check_grammar(program, folder, tokenizer)
            print(f"{name}-{place}: {len(tokenizer)} tokens, grammar {walked}, extension: {check_extension(program, folder, tokenizer)}", flush=True)
        check_refusals(program, os.path.join(out, name), text, base.get_vocab_size())
    print(f"transformers {transformers.__version__}: all agree")


main(*sys.argv[1:])
