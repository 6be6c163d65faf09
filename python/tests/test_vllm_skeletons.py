"""moldrift's logits processor for vLLM under skeletons, without vLLM: modules of its names hold what the processor imports.

`python/tests/engines/test_vllm_processor.py` and `test_vllm_skeletons.py` beside it run the processor inside vLLM.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

moldrift = pytest.importorskip("moldrift")
torch = pytest.importorskip("torch")

SALT = {"formula": "NaCl"}
#: How far a row that is drawn at random goes on before its marker is written for it.
FREE = 12


@dataclass
class Batch:
    """What vLLM tells its processors of a step: requests that came."""

    added: list[tuple[int, Any, list[int] | None, list[int]]] = field(default_factory=list)


def process_dict_updates(rows: dict[int, Any], batch: Batch | None, made: Callable[..., Any]) -> bool:
    """As vLLM's, for batches in which requests only come."""
    for index, params, prompt, output in batch.added if batch else []:
        row = made(params, prompt, output)
        if row is not None:
            rows[index] = row
    return bool(batch)


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module of the processor."""
    names = ["vllm", "vllm.v1", "vllm.v1.sample", "vllm.v1.sample.logits_processor"]
    modules = {name: ModuleType(name) for name in [*names, f"{names[-1]}.builtin"]}
    modules[names[-1]].__dict__.update(BatchUpdate=Batch, LogitsProcessor=object)
    modules[f"{names[-1]}.builtin"].__dict__["process_dict_updates"] = process_dict_updates
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "moldrift.vllm", raising=False)
    yield importlib.import_module("moldrift.vllm")
    sys.modules.pop("moldrift.vllm", None)


def parameters(asked: object) -> SimpleNamespace:
    """The parameters of a request."""
    return SimpleNamespace(extra_args=None if asked is None else {"moldrift": asked})


def processor(plugin: ModuleType) -> Any:
    """The processor of an engine."""
    config = SimpleNamespace(model_config=SimpleNamespace(tokenizer="qwen-like", model=None))
    return plugin.AutomatonLogitsProcessor(config, torch.device("cpu"), False)


def test_rows_are_held_to_their_skeletons(plugin: ModuleType) -> None:
    """Texts drawn from noise: legal tokens are those of the automaton at every step, the rest of the batch is left alone."""
    asked: list[Any] = [
        {"skeleton": "crystal-text", "prompt": SALT},
        None,
        {"skeleton": "simple-cif", "prompt": SALT},
        {"smiles": "CCO"},
    ]
    held, outputs = processor(plugin), [[] for _ in asked]
    for one in asked:
        plugin.AutomatonLogitsProcessor.validate_params(parameters(one))
    held.update_state(Batch([(at, parameters(one), None, outputs[at]) for at, one in enumerate(asked)]))
    automata = [moldrift.SkeletonAutomaton("qwen-like", name) for name in ("crystal-text", "simple-cif")]
    eos, size = automata[0].eos_token_id, automata[0].source.tokenizer.size
    # Ten ids more, as models have that were padded.
    noise, marker = torch.Generator().manual_seed(3), automata[1].ids("x\n<CIF>")
    for step in range(1_200):
        logits = torch.randn(len(asked), size + 10, generator=noise)
        masked = held.apply(logits.clone())
        assert torch.equal(masked[1], logits[1])
        assert torch.isfinite(masked).any(dim=1).all()
        for row, automaton in ((0, automata[0]), (2, automata[1])):
            written = outputs[row]
            if eos in written:
                assert masked[row].isfinite().nonzero().flatten().tolist() == [eos]
            elif step % 20 == 0:
                legal = automaton.allowed_ids(SALT, written)
                found = masked[row, :size].isfinite().nonzero().flatten().tolist()
                assert found == legal, step
        drawn = torch.distributions.Categorical(logits=masked).sample().tolist()
        if FREE <= step < FREE + len(marker):
            # Noise writes no marker.
            drawn[2] = marker[step - FREE]
            assert masked[2, drawn[2]].isfinite()
        for written, token in zip(outputs, drawn, strict=True):
            written.append(token)
    for row, automaton in ((0, automata[0]), (2, automata[1])):
        end = outputs[row].index(eos)
        assert automaton.constraint(SALT).is_over(outputs[row][: end + 1])
        text = automaton.text(outputs[row][:end])
        behind = text.rsplit("<CIF>", 1)[-1]
        lines = [line.split()[0] for line in behind.splitlines() if line[:2] in ("Na", "Cl")]
        assert lines.count("Na") == lines.count("Cl") > 0, text


def test_a_forbidden_token_ends_that_text_alone(plugin: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    held, outputs = processor(plugin), [[], []]
    asked = [{"skeleton": "crystal-text", "prompt": SALT}] * 2
    held.update_state(Batch([(at, parameters(one), None, outputs[at]) for at, one in enumerate(asked)]))
    automaton = moldrift.SkeletonAutomaton("qwen-like", "crystal-text")
    outputs[0] += automaton.ids("Na")
    outputs[1] += automaton.ids("4")
    masked = held.apply(torch.zeros(2, automaton.source.tokenizer.size))
    assert masked[0].isfinite().nonzero().flatten().tolist() == [automaton.eos_token_id]
    assert masked[1].isfinite().nonzero().flatten().tolist() == automaton.allowed_ids(SALT, outputs[1])
    assert "this text ends here" in caplog.text


@pytest.mark.parametrize(
    ("asked", "cause"),
    [
        ({"skeleton": "crystal-text"}, 'give {"skeleton"'),
        ({"skeleton": 3, "prompt": SALT}, 'give {"skeleton"'),
        ({"skeleton": "crystal", "prompt": SALT}, "no skeleton has this name"),
        ({"skeleton": {"schema": "drift.skeleton/1"}, "prompt": SALT}, "skeleton"),
        ({"skeleton": "crystal-text", "prompt": {"smiles": "C"}}, "formula"),
        ({"skeleton": "crystal-text", "prompt": SALT, "geometry": True}, "geometry is no option"),
        ({"smiles": "CO", "conformers": [1, 2]}, "conformers is [1, 2]"),
        ({"smiles": "CO", "conformers": True}, "conformers is True"),
        ({"smiles": "CO", "opened": "yes"}, "opened is 'yes'"),
        ({"smiles": "CO", "geometry": "false"}, "geometry is 'false'"),
        ({"smiles": "CO", "dialect": 3}, "dialect is 3"),
    ],
)
def test_requests_are_refused_with_their_reason(plugin: ModuleType, asked: object, cause: str) -> None:
    with pytest.raises(ValueError, match="moldrift: ") as refused:
        plugin.AutomatonLogitsProcessor.validate_params(parameters(asked))
    assert cause in str(refused.value)


def test_prompts_may_begin_the_text(plugin: ModuleType) -> None:
    """A request says that its prompt ends with the marker: nothing is free before it, and other requests are not changed."""
    opened: dict[str, Any] = {"skeleton": "simple-cif", "prompt": SALT, "begun": "<CIF>"}
    plugin.AutomatonLogitsProcessor.validate_params(parameters(opened))
    held = processor(plugin)
    free = {"skeleton": "simple-cif", "prompt": SALT}
    held.update_state(Batch([(0, parameters(opened), None, []), (1, parameters(free), None, [])]))
    automaton = moldrift.SkeletonAutomaton("qwen-like", "simple-cif", begun="<CIF>")
    legal = torch.isfinite(held.apply(torch.zeros(2, automaton.source.tokenizer.size)))
    assert legal[0].nonzero().flatten().tolist() == automaton.allowed_ids(SALT)
    assert legal[1].sum() > 1_000 > legal[0].sum()
    with pytest.raises(ValueError, match="as text"):
        plugin.AutomatonLogitsProcessor.validate_params(parameters({**opened, "begun": 5}))


def test_automata_are_bounded(plugin: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine keeps the automata that were asked for last. A request keeps its own, also when that was dropped."""
    monkeypatch.setattr(plugin, "AUTOMATA", 2)
    made: list[str] = []

    def automaton(tokenizer: str, skeleton: Any, **options: Any) -> Any:
        made.append(skeleton)
        return moldrift.SkeletonAutomaton(tokenizer, skeleton, **options)

    monkeypatch.setattr(plugin, "SkeletonAutomaton", automaton)
    held = processor(plugin)
    outputs: list[list[int]] = [[] for _ in range(6)]
    names = ["crystal-text", "cif-p1", "crystal-text", "xyz", "crystal-text", "cif-p1"]
    for at, name in enumerate(names):
        asked = {"skeleton": name, "prompt": {"species": ["Na", "Cl"]}}
        held.update_state(Batch([(at, parameters(asked), None, outputs[at])]))
    # `cif-p1` was the one not asked for longest when `xyz` came, so it is made again.
    assert made == ["crystal-text", "cif-p1", "xyz", "cif-p1"]
    size = moldrift.SkeletonAutomaton("qwen-like", "xyz").source.tokenizer.size
    legal = torch.isfinite(held.apply(torch.zeros(len(names), size)))
    assert (legal.sum(1) < size).all()
    assert torch.equal(legal[1], legal[5]) and torch.equal(legal[0], legal[4])
    # Options of molecules are bounded in the same way.
    for decimals in range(4):
        held._automaton(False, f'{{"encoding": "fixed-{decimals + 1}"}}')
    assert held._automaton.cache_info().currsize == 2


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"dialect": "nope"}, "nope"),
        ({"encoding": "nope"}, "nope"),
        ({"encoding": 5}, "encoding is 5; give a name"),
        ({"dialect": "fixed", "encoding": "stripped"}, "give one of them"),
    ],
)
def test_encodings_that_do_not_exist_are_refused(
    plugin: ModuleType, more: dict[str, Any], problem: str
) -> None:
    check = plugin.AutomatonLogitsProcessor.validate_params
    check(parameters({"smiles": "CCO", "encoding": "fixed-2"}))
    with pytest.raises(ValueError, match=problem):
        check(parameters({"smiles": "CCO", **more}))


def test_prompts_that_end_otherwise_than_texts_begin_have_no_text(
    plugin: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    """A prompt that ends in the tag with which texts begin, and ids beyond the tokenizer before a marker."""
    held = processor(plugin)
    automaton = moldrift.Automaton("qwen-like")
    prompt = automaton.prompt_ids("[SMILES]CCO[/SMILES]")
    opened = automaton.prompt_ids("[SMILES]CCO[/SMILES][CONFORMER]")
    asked = [
        ({"smiles": "CCO"}, prompt),
        ({"smiles": "CCO"}, opened),
        ({"skeleton": "simple-cif", "prompt": SALT}, []),
    ]
    held.update_state(Batch([(at, parameters(one), ids, []) for at, (one, ids) in enumerate(asked)]))
    assert "prompt: ends in [CONFORMER]" in caplog.text
    size = automaton.source.tokenizer.size
    logits = held.apply(torch.zeros(3, size + 5))
    assert bool(logits[:, size:].isinf().all())
    legal = [row.isfinite().nonzero().flatten().tolist() for row in logits[:2]]
    assert legal[0] != [automaton.eos_token_id] and legal[1] == [automaton.eos_token_id]
