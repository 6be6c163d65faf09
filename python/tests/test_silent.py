"""What was answered wrongly without a word: each input gives a right answer, or is refused."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from generation import REPOSITORY

import moldrift
from moldrift.text_rows import records

UNTAGGED = REPOSITORY / "tests/fixtures/tokenizers/llama-2-like-untagged"
METHANOL = "[C]<0.0000,0.0000,0.0000>[O]<1.4000,0.0000,0.0000>"
TAGGED = f"[CONFORMER]{METHANOL}[/CONFORMER]"


def test_grammars_say_which_prompts_share_a_token_with_the_answer() -> None:
    automaton = moldrift.Automaton(UNTAGGED, eos_token_id=0)
    [line] = moldrift.export_grammar(automaton, "CC=O")
    assert line["prompt_ids"] == automaton.source.tokenizer.prompt_ids("[SMILES]CC=O[/SMILES]")
    assert "prompt_ids" not in moldrift.export_grammar("qwen-like", "CC=O")[0]


@pytest.mark.parametrize("options", [{"encoding": "stripped"}, {"conformers": 2}, {"opened": True}])
def test_an_automaton_has_its_own_options(options: dict[str, Any]) -> None:
    with pytest.raises(moldrift.DriftError, match="leave these options out"):
        moldrift.export_grammar(moldrift.Automaton("qwen-like"), "CO", **options)


def test_a_text_of_several_conformers_ends_with_the_last_tag() -> None:
    tag = moldrift.Automaton("qwen-like").source.tokenizer.id_of("[/CONFORMER]")
    one, two = (moldrift.Automaton("qwen-like", eos_token_id=tag, conformers=n) for n in (1, 2))
    ids = one.source.tokenizer.answer_ids(TAGGED)
    assert one.end_of(ids * 3) == len(ids)
    assert two.end_of(ids * 3) == 2 * len(ids)
    assert two.end_of(ids) == len(ids)
    plain = moldrift.Automaton("qwen-like")
    assert not plain.ends_with_tag
    assert plain.end_of([*ids, plain.eos_token_id, 3]) == len(ids) + 1


def test_molecules_may_come_again() -> None:
    found = records(["a", "b", "c"], ["CO", "CO", "CC"])
    assert [(one["smiles"], one["generation"]) for one in found] == [("CO", 0), ("CO", 1), ("CC", 0)]


def test_data_frames_hold_records() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"smiles": ["CO", "CO"], "text": [TAGGED, "x"]})
    for given in (frame, {"plain": frame}):
        with pytest.raises(moldrift.DriftError, match="leave smiles out"):
            moldrift.audit(given, smiles="CO")
    report = moldrift.audit({"plain": frame, "grammar": frame[:1]})
    assert [(run["lp"], run["samples"], run["passed"]) for run in report["runs"]] == [
        ("plain", 2, 1),
        ("grammar", 1, 1),
    ]


class _Calls:
    """A pickle that calls a function of the system, by a dotted name of a module that is allowed."""

    def __init__(self, module: str, name: str) -> None:
        # Dotted names are resolved from protocol 4 on.
        self.named = b"\x80\x04" + f"c{module}\n{name}\n(tR.".encode()


@pytest.mark.parametrize(("module", "name"), [("collections", "_sys.getrecursionlimit"), ("os", "getcwd")])
def test_pickles_name_no_functions(tmp_path: Path, module: str, name: str) -> None:
    path = tmp_path / "generation_results.pickle"
    path.write_bytes(_Calls(module, name).named)
    with pytest.raises(moldrift.DriftError, match="no pickle of generated molecules"):
        moldrift.read_generations(path)
    path.write_bytes(pickle.dumps({"CO": []}))
    assert moldrift.read_generations(path) == ([], [])


def test_completions_need_all_conformers() -> None:
    references = {"CO": METHANOL}
    several = TAGGED * 3
    scores = moldrift.Judge(references, within_texts=True).score("CO", [several])
    with pytest.raises(moldrift.DriftError, match='conformers="all"'):
        scores.completions()
    scores = moldrift.Judge(references, within_texts=True, conformers="all").score("CO", [several])
    assert [len(one) for one in scores.completions()] == [3]


def test_arguments_of_another_kind_are_refused() -> None:
    templates = moldrift.PositionTemplates("qwen-like", "generic")
    automaton = moldrift.Automaton("qwen-like")
    for make, expected in (
        (lambda: moldrift.Automaton("qwen-like", conformers=[1, 2]), "conformers: "),  # type: ignore[arg-type]
        (lambda: moldrift.Automaton("qwen-like", 3), "dialect: "),  # type: ignore[arg-type]
        (lambda: moldrift.Automaton("qwen-like", opened="yes"), "opened: "),  # type: ignore[arg-type]
        (lambda: moldrift.Sampling(seed=2**64), "seed: "),
        (lambda: moldrift.Sampling(seed=[3, 4]), "seed: "),  # type: ignore[arg-type]
        (lambda: moldrift.GeometryAutomaton("qwen-like", signs="false"), "signs: "),  # type: ignore[arg-type]
        (lambda: moldrift.Sampling(temperature="0.7"), "temperature: "),  # type: ignore[arg-type]
        (lambda: templates.constraint(7), "7: is no text"),  # type: ignore[arg-type]
        (lambda: automaton.logits_processor(["CO"], first_prompt=-1), "first_prompt: "),
        (lambda: moldrift.Judge(reward={"valid": "x"}), "reward valid: "),  # type: ignore[dict-item]
        (lambda: moldrift.Judge(duplicates="x"), "duplicates: "),  # type: ignore[arg-type]
        (lambda: moldrift.Judge({5: METHANOL}), "5: is no text"),  # type: ignore[dict-item]
    ):
        with pytest.raises(moldrift.DriftError) as error:
            make()
        assert str(error.value).startswith(expected), error.value


def test_numbers_of_numpy_are_numbers() -> None:
    plain = moldrift.Sampling(temperature=0.5, top_k=3, seed=2)
    same = moldrift.Sampling(temperature=np.float32(0.5), top_k=np.int64(3), seed=np.array([2]))  # type: ignore[arg-type]
    assert same == plain
    assert same.sampler() is not None
    opened = moldrift.Automaton("qwen-like", opened=np.True_)  # type: ignore[arg-type]
    assert opened.opened is True


def test_one_molecule_is_no_list_of_letters(tmp_path: Path) -> None:
    path = tmp_path / "references.jsonl"
    path.write_text(
        f'{{"smiles":"CO","text":"{METHANOL}"}}\n{{"smiles":"C","text":"[C]<0.0000,0.0000,0.0000>"}}\n'
    )
    assert moldrift.Judge(path, molecules="CO").molecules == {"CO": 1}


def test_rows_that_may_write_nothing_are_refused() -> None:
    automaton = moldrift.Automaton("qwen-like")
    rows = automaton.logits_processor(["CO"]).rows
    rows.begin(1)
    # A model with fewer tokens than the text begins with.
    for ask in (rows.places, rows.listed, rows.union):
        with pytest.raises(moldrift.TokenizerRefused, match="give the tokenizer of the model"):
            ask(3)


def test_a_tokenizer_by_name_has_the_files_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transformers = pytest.importorskip("transformers")
    snapshot = tmp_path / "models--some--bins/snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    for file in (REPOSITORY / "eval/small-bins").iterdir():
        (snapshot / file.name).write_bytes(file.read_bytes())
    (tmp_path / "models--some--bins/refs").mkdir()
    (tmp_path / "models--some--bins/refs/main").write_text("0" * 40)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    tokenizer = transformers.AutoTokenizer.from_pretrained(snapshot)
    tokenizer.name_or_path = "some/bins"
    own = moldrift.Automaton(snapshot)
    found = moldrift.Automaton(tokenizer)
    assert (found.dialect, found.eos_token_id) == (own.dialect, own.eos_token_id)
    assert found.dialect.startswith("binned")
    # An object that was changed since knows better.
    tokenizer.eos_token = "[/CONFORMER]"
    assert moldrift.Automaton(tokenizer).eos_token_id == tokenizer.convert_tokens_to_ids("[/CONFORMER]")


def test_nearness_is_a_length() -> None:
    trl = pytest.importorskip("trl")
    assert trl is not None
    from moldrift.trl import judge_reward

    for near in (0.0, -0.75, float("inf")):
        with pytest.raises(ValueError, match="near: "):
            judge_reward(SimpleNamespace(), moldrift.Automaton("qwen-like"), near=near)


def test_references_of_arrays_are_still_taken() -> None:
    points = np.array([[0.0, 0.0, 0.0], [1.4, 0.0, 0.0]])
    assert moldrift.Judge({"CO": points}).molecules == {"CO": 1}


def test_a_forked_process_scores_by_threads_of_its_own() -> None:
    judge = moldrift.Judge()
    expected = judge.score(["CO"] * 3, [TAGGED] * 3).valid.tolist()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        # Nothing of pytest may run here.
        os.write(writer, bytes(judge.score(["CO"] * 3, [TAGGED] * 3).valid.tolist()))
        os._exit(0)
    os.close(writer)
    deadline = time.monotonic() + 60
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("a forked process waits forever")
        time.sleep(0.05)
    assert list(os.read(reader, 100)) == expected == [1, 1, 1]
    os.close(reader)


def test_the_least_number_of_valid_conformers_is_not_more_than_the_target() -> None:
    assert [moldrift.FBeta(target=target).least_valid for target in (1, 2, 3, 8)] == [1, 2, 3, 3]
    for least in (3, -1, 1.5, float("nan"), "3"):
        with pytest.raises(moldrift.DriftError, match="least_valid"):
            moldrift.FBeta(target=2, least_valid=least)


def test_smiles_are_for_texts_in_memory(tmp_path: Path) -> None:
    file = tmp_path / "one.txt"
    file.write_text(TAGGED + "\n")
    for texts in (str(file), file, [str(file)], [file]):
        with pytest.raises(moldrift.DriftError, match="leave smiles out"):
            moldrift.audit(texts, smiles="CO")


def test_a_model_without_a_recipe_is_warned_of(tmp_path: Path) -> None:
    shutil.copyfile(REPOSITORY / "tokenizers/qwen-like/tokenizer.json", tmp_path / "tokenizer.json")
    (tmp_path / "config.json").write_text("{}")
    with pytest.warns(UserWarning, match="fixed is assumed"):
        assert moldrift.Automaton(tmp_path).dialect == "fixed"
    (tmp_path / "recipe.json").write_text('{"recipe": {"dialect": "stripped"}}')
    automaton = moldrift.Automaton(tmp_path)
    assert automaton.dialect == "stripped"
    saved = tmp_path / "saved"
    saved.mkdir()
    automaton.source.keep_beside(saved)
    assert (saved / "recipe.json").read_bytes() == (tmp_path / "recipe.json").read_bytes()


def test_drawings_are_no_references() -> None:
    chem = pytest.importorskip("rdkit.Chem.AllChem")
    molecule = chem.MolFromSmiles("CC(N)C(=O)O")
    chem.Compute2DCoords(molecule)
    with pytest.raises(moldrift.DriftError, match="2D drawing"):
        moldrift.Judge({"CC(N)C(=O)O": [molecule]})


def test_a_forbidden_legal_token_gives_no_nan() -> None:
    torch = pytest.importorskip("torch")
    from moldrift.torch import masked_log_probs

    automaton = moldrift.Automaton("qwen-like")
    ids = automaton.source.tokenizer.answer_ids(TAGGED)
    legal = automaton.legal(["CO"], [ids])
    logits = torch.zeros((1, len(ids), 2000), dtype=torch.float64, requires_grad=True)
    at, other = next(
        (at, one) for at in range(len(ids)) for one in automaton.allowed_ids("CO", ids[:at]) if one != ids[at]
    )
    forbidden = torch.zeros_like(logits)
    forbidden[0, at, other] = -torch.inf
    terms = masked_log_probs(logits + forbidden, torch.tensor([ids]), legal, entropy=True)
    (terms.log_probs.sum() + terms.entropy.sum()).backward()
    assert torch.isfinite(terms.entropy).all() and torch.isfinite(logits.grad).all()


def test_padding_leaves_no_share_of_the_model() -> None:
    torch = pytest.importorskip("torch")
    from moldrift.torch import masked_log_probs

    automaton = moldrift.Automaton("qwen-like")
    ids = [*automaton.source.tokenizer.answer_ids(TAGGED), automaton.eos_token_id]
    padded = [*ids, automaton.eos_token_id, automaton.eos_token_id]
    logits = torch.randn((1, len(padded), 2000))
    with_padding, without = (
        masked_log_probs(
            logits[:, : len(one)], torch.tensor([one]), automaton.legal(["CO"], [one]), log_z=True
        )
        for one in (padded, ids)
    )
    assert not with_padding.log_z[0, len(ids) :].any()
    assert torch.equal(with_padding.log_z[:, : len(ids)], without.log_z)


def test_a_head_with_an_adapter_is_not_its_weight() -> None:
    torch = pytest.importorskip("torch")
    from moldrift.torch import masked_log_probs

    class Adapted(torch.nn.Module):
        """As peft's layers of LoRA: the weight is that of the layer below."""

        disable_adapters, merged = False, False

        def __init__(self) -> None:
            super().__init__()
            self.base_layer = torch.nn.Linear(4, 2000)
            self.weight = self.base_layer.weight

    automaton, head = moldrift.Automaton("qwen-like"), Adapted()
    ids = automaton.source.tokenizer.answer_ids(TAGGED)
    given = (torch.randn(1, len(ids), 4), torch.tensor([ids]), automaton.legal(["CO"], [ids]))
    with pytest.raises(moldrift.DriftError, match="has an adapter"):
        masked_log_probs(*given, head)
    head.disable_adapters = True
    assert torch.equal(masked_log_probs(*given, head), masked_log_probs(*given, head.base_layer.weight))


def test_ids_beyond_the_tokenizer_are_forbidden_before_a_marker() -> None:
    torch = pytest.importorskip("torch")
    automaton, salt = moldrift.SkeletonAutomaton("llama-like", "simple-cif"), {"formula": "NaCl"}
    size = automaton.source.tokenizer.size
    scores = torch.zeros((1, size + 64))
    scores[0, size:] = 9.0
    start = torch.zeros((1, 1), dtype=torch.int64)
    masked = automaton.logits_processor([salt])(start, scores)
    assert torch.isneginf(masked[0, size:]).all()
    assert torch.isfinite(masked[0]).nonzero()[:, 0].tolist() == automaton.allowed_ids(salt)
    drawn = automaton.logits_processor([salt], sampling=moldrift.Sampling(seed=1))(start, scores)
    assert int(drawn.argmax()) < size


def test_prompts_end_in_the_tag_that_opened_promises() -> None:
    torch = pytest.importorskip("torch")
    automaton = moldrift.Automaton("qwen-like", opened=True)
    ids = automaton.source.tokenizer.prompt_ids("[SMILES]CO[/SMILES]")
    with pytest.raises(moldrift.DriftError, match=r"does not end in \[CONFORMER\]"):
        automaton.logits_processor(["CO"]).begin(torch.tensor([ids]))
    ids = automaton.source.tokenizer.prompt_ids("[SMILES]CO[/SMILES][CONFORMER]")
    automaton.logits_processor(["CO"]).begin(torch.tensor([ids]))


def test_columns_of_pandas_are_texts() -> None:
    column = np.array([METHANOL, METHANOL], dtype=object)
    for texts in (column, column.astype(str)):
        assert moldrift.Judge({"CO": texts}).molecules == {"CO": 2}


def test_conformers_without_extent_are_no_references() -> None:
    for empty in (np.zeros((2, 3)), np.ones((1, 2, 3))):
        with pytest.raises(moldrift.DriftError, match="all atoms of conformer 0 stand at one place"):
            moldrift.Judge({"CO": empty})
    assert moldrift.Judge({"C": np.zeros((1, 3))}).molecules == {"C": 1}


def test_smiles_are_texts() -> None:
    with pytest.raises(moldrift.InvalidSmiles, match="5"):
        moldrift.audit([TAGGED, TAGGED], smiles=[5, "CO"])


def test_drop_ins_see_another_end_of_text() -> None:
    pytest.importorskip("transformers")
    from transformers import PreTrainedTokenizerFast

    from moldrift.qwen_logit_processor import build_precomputed_template

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(REPOSITORY / "tokenizers/qwen-like/tokenizer.json")
    )
    ends = []
    for end in ("<|endoftext|>", "<|im_end|>"):
        tokenizer.eos_token = end
        ends.append(build_precomputed_template("CO", tokenizer).molecules.source.eos)
    assert ends == [tokenizer.convert_tokens_to_ids(one) for one in ("<|endoftext|>", "<|im_end|>")]


def test_conformers_of_rdkit_without_extent_are_no_references() -> None:
    chem = pytest.importorskip("rdkit.Chem.AllChem")
    molecule = chem.MolFromSmiles("CO")
    conformer = chem.Conformer(molecule.GetNumAtoms())
    conformer.Set3D(True)
    molecule.AddConformer(conformer)
    with pytest.raises(moldrift.DriftError, match="all atoms of conformer 0 stand at one place"):
        moldrift.Judge({"CO": molecule})


def test_prompts_whose_end_a_token_crosses_are_not_taken_as_text() -> None:
    """The tokenizer's own ids of the prompt would have the beginning of the answer's first token, `][`."""
    torch = pytest.importorskip("torch")
    prompt = "[SMILES]CCO[/SMILES]"
    for name, crosses in (
        ("mistral-v3-like", True),
        ("llama-2-like-untagged", True),
        ("llama-2-like", False),
    ):
        automaton = moldrift.Automaton(REPOSITORY / "tests/fixtures/tokenizers" / name, encoding="fixed")
        tokenizer = automaton.source.tokenizer
        right = automaton.prompt_ids(prompt)
        assert (automaton.prompt_ids_apart(prompt) is not None) is crosses
        for ids in (right, right + list(automaton.source.ends)[:1]):
            automaton.logits_processor(["CCO"]).begin(torch.tensor([ids]))
        alone = tokenizer.ids(prompt)
        if crosses:
            assert alone[-1] != right[-1]
            for ids in (alone, [automaton.eos_token_id] * 3 + alone, alone + [automaton.eos_token_id]):
                with pytest.raises(moldrift.DriftError, match=r"automaton\.prompt_ids\(prompt\)"):
                    automaton.logits_processor(["CCO"]).begin(torch.tensor([ids]))


def test_prompts_of_a_chat_are_told_to_the_automaton() -> None:
    """Behind a chat's last line the answer's first token is `[`, behind `[/SMILES]` it is `][`."""
    torch = pytest.importorskip("torch")
    folder = REPOSITORY / "tests/fixtures/tokenizers/llama-2-like-untagged"
    chat = "user: [SMILES]CO[/SMILES]\nassistant:\n"
    plain = moldrift.Automaton(folder, encoding="fixed")
    told = moldrift.Automaton(folder, encoding="fixed", prompt_end="assistant:\n")
    ids = plain.source.tokenizer.ids(chat)
    with pytest.raises(moldrift.DriftError, match="give the automaton prompt_end="):
        plain.logits_processor(["CO"]).begin(torch.tensor([ids]))
    told.logits_processor(["CO"]).begin(torch.tensor([ids]))
    answer = "[CONFORMER][C]<1.0000,2.0000,3.0000>[O]<0.5000,-12.0000,3.0001>[/CONFORMER]"
    written = plain.source.tokenizer.ids(chat + answer)
    assert written[: len(ids)] == ids
    written = written[len(ids) :]
    assert told.allowed_ids("CO") == written[:1] != plain.allowed_ids("CO")
    assert len(told.legal("CO", written)[0]) == len(written) + 1
    with pytest.raises(moldrift.ForbiddenToken):
        plain.legal("CO", written)
    # A grammar has no ids of a prompt that it does not know, and begins as the automaton does.
    [line] = moldrift.export_grammar(folder, "CO", encoding="fixed", prompt_end="assistant:\n")
    assert "prompt_ids" not in line and line["grammar"] == told.grammar("CO") != plain.grammar("CO")
    with pytest.raises(moldrift.DriftError, match="prompt_end: a token of this tokenizer crosses"):
        moldrift.export_grammar(folder, "CO", encoding="fixed", prompt_end="[/INST]")


def test_an_encoding_has_one_name() -> None:
    with pytest.raises(
        moldrift.DriftError, match="encoding: stands beside dialect='fixed'; give one of them"
    ):
        moldrift.Automaton("qwen-like", dialect="fixed", encoding="stripped")


def test_prompts_of_other_molecules_are_refused() -> None:
    """Sorted molecules beside unsorted prompts gave each prompt the text of another one."""
    torch = pytest.importorskip("torch")
    prompts, molecules = ["[SMILES]CCO[/SMILES]", "[SMILES]C#N[/SMILES]"], ["CCO", "C#N"]
    for source in (moldrift.Automaton("qwen-like"), moldrift.PositionTemplates("qwen-like")):
        ids = [source.source.tokenizer.ids(one) for one in prompts]
        longest = max(map(len, ids))
        padded = torch.tensor([[source.eos_token_id] * (longest - len(one)) + one for one in ids])
        source.logits_processor(molecules).begin(padded)
        # Other spellings of the molecule, and prompts that name none, are fine.
        source.logits_processor(["OCC", "N#C"]).begin(padded)
        source.logits_processor(molecules[::-1]).begin(padded[:, :1])
        with pytest.raises(moldrift.DriftError, match="asks for CCO, and the processor was given C#N"):
            source.logits_processor(molecules[::-1]).begin(padded)
    # The molecule of a prompt is its last one.
    worked = source.source.tokenizer.ids(f"{prompts[1]}{TAGGED}\n{prompts[0]}")
    source.logits_processor(["CCO"]).begin(torch.tensor([worked]))
