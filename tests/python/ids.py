"""Compares ids made by drift with those of tokenizers and of transformers.

    python ids.py FOLDER TEXTS.jsonl IDS.jsonl [FOLDER TEXTS.jsonl IDS.jsonl …]

TEXTS.jsonl holds a text a line, as a JSON string; IDS.jsonl the ids that drift gave each with the tokenizer of FOLDER, as a
JSON list a line. Prints the versions and how many texts agree; exit status 1 at the first that does not.
"""

import json
import os
import sys

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ["HF_HUB_OFFLINE"] = "1"
import tokenizers  # noqa: E402
import transformers  # noqa: E402

BATCH = 500


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def compare(folder, texts, expected):
    alone = tokenizers.Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    loaded = transformers.AutoTokenizer.from_pretrained(folder)
    if not isinstance(loaded, transformers.PreTrainedTokenizerFast):
        sys.exit(f"{folder}: loaded as {type(loaded).__name__}")
    if len(loaded) != alone.get_vocab_size() or len(texts) != len(expected):
        sys.exit(f"{folder}: {len(loaded)} of {alone.get_vocab_size()} tokens, {len(texts)} texts, {len(expected)} ids")
    for start in range(0, len(texts), BATCH):
        batch, ids = texts[start : start + BATCH], expected[start : start + BATCH]
        by_tokenizers = [encoding.ids for encoding in alone.encode_batch(batch, add_special_tokens=False)]
        by_transformers = loaded(batch, add_special_tokens=False, return_attention_mask=False)["input_ids"]
        for text, own, one, other in zip(batch, ids, by_tokenizers, by_transformers):
            if not own == one == other:
                sys.exit(f"{folder}: {text[:80]!r} is\n{own[:40]}\n{one[:40]}\n{other[:40]}")
    # What a model writes is decoded alike, and a text of blocks to itself.
    for text, own in list(zip(texts, expected))[:: max(1, len(texts) // 500)]:
        decoded = loaded.decode(own, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        if decoded != alone.decode(own, skip_special_tokens=False) or ("<" in text and text.isascii() and decoded != text):
            sys.exit(f"{folder}: {text[:80]!r} is decoded to {decoded[:80]!r}")


def main(*arguments):
    for folder, texts, ids in zip(arguments[::3], arguments[1::3], arguments[2::3]):
        texts = lines(texts)
        compare(folder, texts, lines(ids))
        print(
            f"{os.path.basename(folder)}: {len(texts)} texts agree,"
            f" tokenizers {tokenizers.__version__}, transformers {transformers.__version__}"
        )


main(*sys.argv[1:])
