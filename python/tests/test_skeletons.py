"""Skeletons: crystals and other texts in canonical tokens, and in transformers' own ``generate``."""

from __future__ import annotations

import collections
import gzip
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moldrift

tokenizers = pytest.importorskip("tokenizers")

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("DRIFT_SHARED", REPOSITORY.parent / "shared")) / "tokenizers"
FIXTURES = REPOSITORY / "tests" / "fixtures" / "tokenizers"
EMBEDDED = ("qwen-like", "llama-like")
#: With DRIFT_ALL the real ones, where they are, and so many random texts of each prompt.
REAL = {name: SHARED / name for name in ("qwen3", "llama-3.2", "mistral-v1", "roberta")}
ALL = bool(os.environ.get("DRIFT_ALL"))
TEXTS = 1_000 if ALL else 3
TOKENIZERS: dict[str, Path] = {
    **{name: REPOSITORY / "tokenizers" / name for name in EMBEDDED},
    **{name: FIXTURES / name for name in ("gpt2-like", "llama-2-like")},
    "words": Path(),
    **({name: path for name, path in REAL.items() if path.is_dir()} if ALL else {}),
}
SMILES = "C[C@H](N)C=O"
#: Prompts by skeleton, as a list of words, as a formula, or as a SMILES.
PROMPTS: dict[str, list[dict[str, Any]]] = {
    "crystal-text": [{"species": ["Na", "Cl"]}, {"formula": "Ba(NO3)2"}],
    "simple-cif": [{"species": ["Na", "Cl"]}, {"formula": "NaCl"}],
    "cif-p1": [{"species": ["Na", "Na", "Cl"]}, {"formula": "Na2Cl"}],
    "xyz": [{"species": ["C", "O"]}, {"smiles": SMILES}],
    "smiles-then-xyz": [{"smiles": SMILES}],
    "3dsmiles-padded": [{"smiles": SMILES}],
    "3dsmiles-plain": [{"smiles": SMILES}],
    "3dsmiles-base62": [{"smiles": SMILES}],
}
FORMULAS = {"Ba(NO3)2": {"Ba": 1, "N": 2, "O": 6}, "NaCl": {"Na": 1, "Cl": 1}, "Na2Cl": {"Na": 2, "Cl": 1}}
#: How the lines of atoms begin.
ATOM_LINES = {
    "crystal-text": r"([A-Z][a-z]?)$",
    "simple-cif": r"([A-Z][a-z]?) 1 0|([A-Z][a-z]?) 1 1",
    "cif-p1": r"  ([A-Z][a-z]?)  [A-Z]",
    "xyz": r"([A-Z][a-z]?) ",
}


#: The atoms of `SMILES`: those of hydrogen follow the others.
SMILES_ATOMS = ["C", "C", "N", "C", "O", *["H"] * 7]


def words() -> Any:
    """A tokenizer whose vocabulary is a list of words: symbols of elements, pairs of digits, runs of spaces, characters."""
    letters = [chr(ord("a") + at) for at in range(26)]
    known = ["<unk>", "<|endoftext|>", "\n", *map(chr, range(ord(" "), ord("~") + 1)), "CIF"]
    known += [upper.upper() + lower for upper in letters for lower in letters]
    known += [f"{number:02}" for number in range(100)] + [" " * length for length in range(2, 9)]
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: at for at, word in enumerate(known)}, unk_token="<unk>")
    )
    pattern = tokenizers.Regex(r"CIF|[A-Z][a-z]?|\d{1,2}| +|\n|.")
    made.pre_tokenizer = tokenizers.pre_tokenizers.Split(pattern, "isolated")
    made.decoder = tokenizers.decoders.Fuse()
    return made


@cache
def reference(name: str) -> Any:
    """A tokenizer as Hugging Face's library reads it."""
    if name == "words":
        return words()
    [path] = TOKENIZERS[name].glob("tokenizer.json*")
    data = path.read_bytes()
    return tokenizers.Tokenizer.from_str((gzip.decompress(data) if path.suffix == ".gz" else data).decode())


@cache
def automaton_of(name: str, skeleton: str) -> moldrift.SkeletonAutomaton:
    """The automaton of a skeleton for one of the tokenizers."""
    if name == "words":
        return moldrift.SkeletonAutomaton(words(), skeleton, eos_token_id=1)
    end = next(
        (one for one in ("</s>", "<|endoftext|>") if reference(name).token_to_id(one) is not None), None
    )
    eos = None if name in EMBEDDED or end is None else reference(name).token_to_id(end)
    return moldrift.SkeletonAutomaton(TOKENIZERS[name], skeleton, eos_token_id=eos)


def elements(skeleton: str, text: str) -> list[str]:
    """The elements of the atoms of a text, by an expression."""
    described = text.rpartition("<CIF>")[2].removeprefix("P1\n")
    found = re.finditer(rf"^(?:{ATOM_LINES[skeleton]})", described, re.MULTILINE)
    return [match[1] or match[2] for match in found]


def check_text(skeleton: str, prompt: dict[str, Any], text: str) -> None:
    """A text has the prompt's composition, and no zero with a minus."""
    assert not re.search(r"-0(\.0*)?(?![\d.])", text), text
    if skeleton not in ATOM_LINES:
        heavy = len(SMILES_ATOMS) - SMILES_ATOMS.count("H")
        begin, each = (
            (f"{SMILES}&", r"\{[^{]+") if "3d" in skeleton else (f"[LIGAND] {SMILES} [XYZ]", r"( \S+){3}")
        )
        assert re.fullmatch(f"{re.escape(begin)}({each}){{{heavy}}}\n?", text), text
        return
    found = elements(skeleton, text)
    if "species" in prompt or "smiles" in prompt:
        assert found == prompt.get("species", SMILES_ATOMS), text
    elif "formula" in prompt:
        counts, formula = collections.Counter(found), FORMULAS[prompt["formula"]]
        times = counts[next(iter(formula))] // next(iter(formula.values()))
        assert 1 <= times <= 4, text
        assert counts == {word: count * times for word, count in formula.items()}, text


def walks(
    automaton: moldrift.SkeletonAutomaton, prompt: dict[str, Any], begun: list[int], seed: int, count: int = 1
) -> list[list[int]]:
    """The ids of random texts that begin so."""
    draws, end = np.random.default_rng(seed), automaton.eos_token_id
    rows = moldrift._lib.Rows([automaton.constraint(prompt)], [0], [end])
    rows.begin(count)
    ids = np.tile(np.array(begun, dtype=np.int64), (count, 1))
    while ids.shape[1] == 0 or (ids[:, -1] != end).any():
        if ids.shape[1]:
            rows.step(ids)
        legal, counts = rows.listed(10**6)
        chosen = (draws.random(count) * counts).astype(np.int64)
        ids = np.concatenate([ids, legal[np.arange(count), chosen, None]], axis=1)
    return [row[: row.index(end)] for row in ids.tolist()]


#: A list of words whose words can stand in codes (`Na` in base 62) is refused: it cuts texts of one shape unlike.
FOLLOWED = [
    (skeleton, name)
    for skeleton in PROMPTS
    for name in TOKENIZERS
    if (skeleton, name) != ("3dsmiles-base62", "words")
]


@pytest.mark.parametrize(("skeleton", "name"), FOLLOWED)
def test_random_texts_are_canonical_and_have_the_composition(skeleton: str, name: str) -> None:
    automaton, hugging_face = automaton_of(name, skeleton), reference(name)
    for prompt in PROMPTS[skeleton]:
        begun: list[int] = []
        if skeleton == "simple-cif":
            # The tokens of the free text, with the one that ends the marker.
            encoding = hugging_face.encode("Well.\n<CIF>P1\n1", add_special_tokens=False)
            ends = [end for _, end in encoding.offsets]
            begun = encoding.ids[: next(at for at, end in enumerate(ends) if end >= len("Well.\n<CIF>")) + 1]
        found = walks(automaton, prompt, begun, 0, TEXTS)
        texts = hugging_face.decode_batch(found, skip_special_tokens=False)
        for text, ids in zip(texts, found, strict=True):
            assert hugging_face.encode(text, add_special_tokens=False).ids == ids, text
            check_text(skeleton, prompt, text)


def test_allowed_ids_are_allowed_before_and_behind_a_marker() -> None:
    """They are those whose scores the logits processor leaves."""
    torch = pytest.importorskip("torch")
    automaton, salt = moldrift.SkeletonAutomaton("llama-like", "simple-cif"), {"formula": "NaCl"}
    size = automaton.source.tokenizer.size
    for text, allowed, forbidden in [
        ("", ["The", "<", "\n"], ["<|end_of_text|>"]),
        ("Well.\n<CI", ["F", ">"], ["<|end_of_text|>"]),
        ("Well.\n<CIF>P1\n", ["1", "560"], ["<|end_of_text|>", "The", "<", "\n", "x"]),
    ]:
        ids = automaton.ids(text)
        found = automaton.allowed_ids(salt, ids)
        processor = automaton.logits_processor([salt])
        start = torch.zeros((1, 1), dtype=torch.int64)
        scores = processor(start, torch.zeros((1, size)))
        for at in range(1, len(ids) + 1):
            written = torch.cat([start, torch.tensor([ids[:at]])], 1)
            scores = processor(written, torch.zeros((1, size)))
        assert torch.isfinite(scores[0]).nonzero()[:, 0].tolist() == found
        for token in allowed:
            assert set(automaton.ids(token)[:1]) <= set(found), (text, token)
        for token in forbidden:
            assert not set(automaton.ids(token)[:1]) & set(found), (text, token)


def test_a_skeleton_may_be_a_file_or_its_content() -> None:
    folder = REPOSITORY / "docs" / "skeletons"
    path = folder / "mof-lines.json"
    texts = []
    for skeleton in (path, str(path), json.loads(path.read_text())):
        automaton = moldrift.SkeletonAutomaton("qwen-like", skeleton)
        texts.append(automaton.text(walks(automaton, {"n_blocks": 2}, [], 1)[0]))
    assert len(set(texts)) == 1
    assert len(texts[0].splitlines()) == 3
    scene = moldrift.SkeletonAutomaton("qwen-like", folder / "spatiallm.json")
    assert scene.text(walks(scene, {"walls": 1, "doors": 0, "bboxs": 2}, [], 1)[0]).count("Bbox") == 2


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        ({}, "no field for the items `atom`"),
        ({"formula": "NaX"}, "give a formula"),
        ({"formula": object()}, "is no JSON"),
        ("NaCl", "is no record"),
    ],
)
def test_prompts_without_what_is_needed_are_refused(prompt: Any, problem: str) -> None:
    automaton = moldrift.SkeletonAutomaton("qwen-like", "crystal-text")
    with pytest.raises(moldrift.DriftError, match=problem) as error:
        automaton.constraint(prompt)
    assert "\n" not in str(error.value)


def test_words_that_may_stand_in_codes_are_refused() -> None:
    automaton = automaton_of("words", "3dsmiles-base62")
    with pytest.raises(moldrift.DriftError, match="may stand in a slot that has no words") as error:
        walks(automaton, {"smiles": SMILES}, [], 0)
    assert "\n" not in str(error.value)


def test_what_is_no_skeleton_is_refused() -> None:
    for skeleton, problem in [("crystals", "no skeleton has this name"), ({"schema": 1}, "skeleton:")]:
        with pytest.raises(moldrift.DriftError, match=problem):
            moldrift.SkeletonAutomaton("qwen-like", skeleton)
    crystal = json.loads((REPOSITORY / "src/core/skeleton/builtin/simple-cif.json").read_text())
    with pytest.raises(moldrift.DriftError, match="has `marker` itself"):
        moldrift.SkeletonAutomaton("qwen-like", {**crystal, "marker": "P1"})


def test_generate_writes_crystals_of_the_prompts() -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    automaton = moldrift.SkeletonAutomaton("qwen-like", "crystal-text")
    # More threads than that only wait for one another in a model this small.
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = transformers.Qwen3Config(
        vocab_size=automaton.source.tokenizer.size + 7,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=2048,
        eos_token_id=automaton.eos_token_id,
        pad_token_id=automaton.eos_token_id,
    )
    model = transformers.Qwen3ForCausalLM(config).eval()
    prompts = [{"formula": "NaCl"}, {"species": ["Na", "Cl", "Cl"]}]
    inputs = torch.tensor([automaton.ids("A crystal:")] * len(prompts))
    for options in ({"do_sample": True, "num_return_sequences": 3}, {"num_beams": 2}):
        processor = automaton.logits_processor(prompts)
        written = model.generate(
            inputs,
            attention_mask=torch.ones_like(inputs),
            max_new_tokens=200,
            logits_processor=[processor],
            **options,
        )
        each = len(written) // len(prompts)
        for row, ids in enumerate(written[:, inputs.shape[1] :].tolist()):
            assert automaton.eos_token_id in ids
            ids = ids[: ids.index(automaton.eos_token_id)]
            text = automaton.text(ids)
            assert automaton.ids(text) == ids
            check_text("crystal-text", prompts[row // each], text)
    # Without the processor no text is a crystal.
    free = model.generate(inputs, attention_mask=torch.ones_like(inputs), max_new_tokens=20, do_sample=True)
    assert not any(
        re.match(r"\d+\.\d \d", automaton.text(ids)) for ids in free[:, inputs.shape[1] :].tolist()
    )


def test_a_map_of_words_splits_as_crystallm(tmp_path: Path) -> None:
    """A tokenizer of a project's own code, saved as its map of words: ids are those of CrystaLLM's rule, which is one
    expression of all words from the longest to the shortest, then runs of letters and digits as unknown words. Its
    texts are followed."""
    elements = ["Si", "C", "S", "Na", "N", "Cl", "Sc", "Os", "O", "P", "Pm"]
    keywords = [
        "_cell_length_a",
        "_cell_length_b",
        "_cell_volume",
        "_symmetry_space_group_name_H-M",
        "loop_",
        "data_",
    ]
    symbols = [*"0123456789", "x", "y", "z", ".", "(", ")", "+", "-", "/", "'", ",", " ", "\n"]
    words = [*elements, *keywords, *symbols, "Pm_sg", "P1_sg", "Fm-3m_sg", "<unk>"]
    ids = {word: at for at, word in enumerate(words)}
    (tmp_path / "vocabulary.json").write_text(json.dumps(ids))
    known = sorted((re.escape(word) for word in words[:-1]), key=len, reverse=True)
    expression = re.compile(f"({'|'.join(known)}|\\w+|[\\.,;!?])")
    skeleton = {
        "schema": "drift.skeleton/1",
        "name": "cell",
        "slots": {"length": {"kind": "decimal", "decimals": 4, "low": 0, "high": 99}},
        "items": {"atom": {"from": "formula", "field": "formula", "order": "any"}},
        "text": [
            "data_{atom.sum}\n_symmetry_space_group_name_H-M P1_sg\n_cell_length_a {length}\n",
            {"each": "atom", "text": "{atom} {length}\n"},
        ],
    }
    automaton = moldrift.SkeletonAutomaton(tmp_path, skeleton, eos_token_id=ids["<unk>"])
    draws = np.random.default_rng(0)
    for _ in range(20):
        numbers = [f"{number:.4f}" for number in draws.uniform(0, 99, 3)]
        first, last = draws.permutation(["Na", "Os"])
        text = (
            f"data_Na1 Os1\n_symmetry_space_group_name_H-M P1_sg\n_cell_length_a {numbers[0]}\n"
            f"{first} {numbers[1]}\n{last} {numbers[2]}\n"
        )
        other = f"loop_\n_cell_length_ab Neon Pm_sg Osx1, (x,-y/2) Fm-3m_sg {numbers[0]}"
        for one in (text, other):
            expected = [ids.get(word, ids["<unk>"]) for word in expression.findall(one)]
            assert automaton.ids(one) == expected, one
        written = automaton.ids(text)
        for at, token in enumerate(written):
            assert token in automaton.allowed_ids({"formula": "NaOs"}, written[:at]), text
        assert automaton.allowed_ids({"formula": "NaOs"}, written) == [automaton.eos_token_id]


def test_enriched_smiles_is_the_automaton_of_molecules() -> None:
    """The skeleton allows what `moldrift.Automaton` allows, whatever the encoding."""
    for encoding in ("fixed", "binned-v2:-13,13,0.104"):
        molecules = moldrift.Automaton("qwen-like", encoding=encoding)
        skeleton = moldrift.SkeletonAutomaton("qwen-like", f"enriched-smiles:{encoding}")
        assert skeleton.name == f"enriched-smiles:{encoding}"
        draws, ids = np.random.default_rng(1), []
        while not ids or ids[-1] != skeleton.eos_token_id:
            allowed = skeleton.allowed_ids({"smiles": SMILES}, ids)
            assert allowed == molecules.allowed_ids(SMILES, ids), ids
            ids.append(int(draws.choice(allowed)))
        assert len(ids) > 40
    with pytest.raises(moldrift.DriftError, match="enriched"):
        moldrift.SkeletonAutomaton("qwen-like", "enriched-smiles:nothing")


@pytest.mark.parametrize("name", ["mistral-v3-like", "border-bracket-minus", "llama-2-like-untagged"])
def test_prompt_and_answer_are_one_text(name: str) -> None:
    """Where a token joins them, it is the first one of the answer, and the prompt's ids end before it."""
    automaton = moldrift.SkeletonAutomaton(FIXTURES / name, "enriched-smiles:fixed-2", eos_token_id=0)
    prompt = {"smiles": "CO"}
    begun = automaton.prompt_ids(prompt)
    answer = "[CONFORMER][C]<0.00,-1.25,12.50>[O]<1.40,0.00,-0.25>[/CONFORMER]"
    whole = automaton.ids(f"[SMILES]CO[/SMILES]{answer}")
    # The post-processor may begin it with a token of its own.
    at = next(at for at in (len(begun), len(begun) - 1) if whole[:at] == begun[len(begun) - at :])
    for place in range(at, len(whole)):
        assert whole[place] in automaton.allowed_ids(prompt, whole[at:place])
    assert automaton.allowed_ids(prompt, whole[at:]) == [0]


@pytest.mark.parametrize("name", EMBEDDED)
def test_prompts_may_end_with_the_beginning_of_a_text(name: str) -> None:
    salt = {"formula": "NaCl"}
    begun = "4.0 4.0 5.6\n90 90 90\n"
    whole = moldrift.SkeletonAutomaton(name, "crystal-text")
    behind = moldrift.SkeletonAutomaton(name, "crystal-text", begun=begun)
    assert behind.allowed_ids(salt) == whole.allowed_ids(salt, whole.ids(begun))
    assert "Na" in {behind.token(one) for one in behind.allowed_ids(salt)}
    with pytest.raises(moldrift.TokenizerRefused, match="no text of this prompt begins with"):
        moldrift.SkeletonAutomaton(name, "crystal-text", begun="x").constraint(salt)
