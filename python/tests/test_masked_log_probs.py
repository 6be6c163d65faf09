"""`moldrift.torch.masked_log_probs` beside the policy written out: all legal texts of a toy model listed, the full
softmax, and the probabilities with which transformers drew."""

from __future__ import annotations

import itertools
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generation import Model, molecules
from test_automaton import random_text
from test_bad_input import line

import moldrift

torch = pytest.importorskip("torch")
from moldrift.torch import PolicyTerms, masked_log_probs  # noqa: E402

#: As many tokens as the larger of the two tokenizers has.
VOCABULARY, DIM = 2650, 16


@cache
def automaton(name: str = "qwen-like") -> moldrift.Automaton:
    return moldrift.Automaton(name, eos_token_id=0)


class Toy(torch.nn.Module):
    """A model whose logits depend on all that was written: embeddings, a running sum, a nonlinearity, a head."""

    def __init__(self, dtype: torch.dtype, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = torch.nn.Embedding(VOCABULARY, DIM, dtype=dtype)
        self.mix = torch.nn.Linear(DIM, DIM, dtype=dtype)
        self.head = torch.nn.Linear(DIM, VOCABULARY, dtype=dtype)

    def hidden(self, ids: torch.Tensor) -> torch.Tensor:
        """What predicts each id, ``[batch, length, dim]``: it knows those before."""
        before = torch.nn.functional.pad(self.embedding(ids[:, :-1]), (0, 0, 1, 0))
        return torch.tanh(self.mix(before.cumsum(1) / 2 + 0.1))

    def gradients(self) -> torch.Tensor:
        """All gradients in a row; they are forgotten."""
        found = torch.cat([one.grad.flatten().double() for one in self.parameters()])
        self.zero_grad()
        return found


def padded(texts: list[list[int]], fill: int = 0) -> torch.Tensor:
    longest = max(map(len, texts))
    return torch.tensor([text + [fill] * (longest - len(text)) for text in texts])


@cache
def all_legal_texts() -> tuple[moldrift.Automaton, list[list[int]]]:
    """Every answer about ``[CH3-]`` in an encoding of four bins an axis, with its end, in the tokens of Hugging Face's
    tokenizer."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bins.json"
        edges = [-1.0, 0.0, 1.0]
        path.write_text(json.dumps({"mode": "uniform", "L": -1.0, "H": 1.0, "n_bins": 2, "edges": edges}))
        one = moldrift.Automaton("llama-like", encoding=path, eos_token_id=0)
    texts = [
        f"[CONFORMER][CH3-]{''.join(f'{index:03}' for index in block)};[/CONFORMER]"
        for block in itertools.product(range(4), repeat=3)
    ]
    return one, [[*one.source.tokenizer.answer_ids(text), 0] for text in texts]


@cache
def all_texts_of_a_geometry() -> tuple[moldrift.Automaton, moldrift.Automaton, list[list[int]]]:
    """Every answer about ``C#C`` within the bounds of its bond, in one bin of 1.2 Å and those below and above it, with
    the automaton that knows the bond and the one that does not. A text that leads into a dead end goes on without
    bounds, so every beginning has an end."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bins.json"
        path.write_text(json.dumps({"mode": "uniform", "L": 0.0, "H": 1.2, "n_bins": 1, "edges": [0.0, 1.2]}))
        one = moldrift.GeometryAutomaton("llama-like", encoding=path, eos_token_id=0)
        plain = moldrift.Automaton("llama-like", encoding=path, eos_token_id=0)
    constraint, open_texts, texts = one.constraint("C#C"), [[]], []
    while open_texts:
        ids = open_texts.pop()
        if constraint.is_over(ids):
            texts.append(ids)
        else:
            open_texts.extend([*ids, token] for token in constraint.allowed(ids)[1])
    return one, plain, sorted(texts)


def enumerated(logits: torch.Tensor, texts: list[list[int]]) -> torch.Tensor:
    """ln p of each text under the policy that draws, token by token, from the softmax over what some legal text goes on
    with."""
    following: dict[tuple[int, ...], set[int]] = {}
    for text in texts:
        for at, token in enumerate(text):
            following.setdefault(tuple(text[:at]), set()).add(token)
    found = []
    for text, rows in zip(texts, logits.unbind(), strict=True):
        at_each, log_p = rows.unbind(), logits.new_zeros(())
        for at, token in enumerate(text):
            legal = sorted(following[tuple(text[:at])])
            log_p = log_p + at_each[at][legal].log_softmax(0)[legal.index(token)]
        found.append(log_p)
    return torch.stack(found)


def check_gradients(texts: list[list[int]], legal: list[Any], dtype: torch.dtype, with_head: bool) -> None:
    """Compares log-probabilities and gradients of all legal texts with those of the enumerated policy."""
    toy, ids = Toy(dtype), padded(texts)
    rewards = torch.linspace(-1, 1, len(texts), dtype=torch.float64).cos()
    hidden = toy.hidden(ids)
    log_probs = masked_log_probs(
        *((hidden, ids, legal, toy.head) if with_head else (toy.head(hidden), ids, legal))
    )
    by_text = log_probs.double().sum(1)
    assert float(by_text.detach().exp().sum()) == pytest.approx(1, abs=1e-6)
    (by_text.exp() * rewards).sum().backward()
    gradients = toy.gradients()

    written_out = enumerated(toy.head(toy.hidden(ids)).double(), texts)
    assert torch.allclose(by_text, written_out, atol=1e-12 if dtype == torch.float64 else 1e-5)
    (written_out.exp() * rewards).sum().backward()
    expected = toy.gradients()
    assert float(expected.abs().max()) > 1e-3
    assert float((gradients - expected).abs().max()) < 1e-6

    # A draw and its estimate: the mean of reward times gradient over draws is what GRPO follows; here over all draws.
    log_probs = masked_log_probs(toy.hidden(ids), ids, legal, toy.head).double().sum(1)
    (log_probs.detach().exp() * rewards * log_probs).sum().backward()
    assert float((toy.gradients() - expected).abs().max()) < 1e-6


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("with_head", [True, False])
def test_gradients_are_those_of_the_enumerated_policy(dtype: torch.dtype, with_head: bool) -> None:
    one, texts = all_legal_texts()
    check_gradients(texts, one.legal(["[CH3-]"] * len(texts), texts), dtype, with_head)


@pytest.mark.parametrize("with_head", [True, False])
def test_gradients_under_a_geometry_are_those_of_the_enumerated_policy(with_head: bool) -> None:
    one, plain, texts = all_texts_of_a_geometry()
    legal = one.legal(["C#C"] * len(texts), texts)
    # The bond forbids something, in this text too.
    assert legal[0][0][-1] < plain.legal("C#C", texts[0])[0][-1]
    check_gradients(texts, legal, torch.float64, with_head)


def batch(name: str = "llama-like", conformers: int = 1) -> tuple[Any, list[str], list[list[int]], list[Any]]:
    """Random texts of some molecules, one of them cut off and one empty, with what was legal."""
    one = moldrift.Automaton(name, eos_token_id=0, conformers=conformers)
    smiles = [*molecules(2), "CO", "C"]
    texts = [[*random_text(one, text, seed), 0] for seed, text in enumerate(smiles)]
    texts[1], texts[3] = texts[1][:41], []
    return one, smiles, texts, one.legal(smiles, texts)


def by_hand(logits: torch.Tensor, ids: torch.Tensor, legal: list[Any], temperature: float) -> PolicyTerms:
    """Log-probability, entropy and ln Z at each position from the full softmax in 64 bits."""
    full = (logits.double() / temperature).log_softmax(2)
    none = full.new_zeros(3)
    found = []
    for row, (offsets, listed) in enumerate(legal):
        for at, one in enumerate(full[row].unbind()):
            if at >= len(offsets) - 1:
                found.append(none)
                continue
            log_p = one[listed[offsets[at] : offsets[at + 1]].astype(np.int64)]
            left = log_p.logsumexp(0)
            p = (log_p - left).exp()
            found.append(torch.stack([one[ids[row, at]] - left, -(p * (log_p - left)).sum(), left]))
    return PolicyTerms(*torch.stack(found).view(*ids.shape, 3).unbind(2))


@pytest.mark.parametrize("conformers", [1, 2])
@pytest.mark.parametrize("with_head", [True, False])
def test_terms_are_those_of_the_full_softmax(with_head: bool, conformers: int) -> None:
    _, _, texts, legal = batch(conformers=conformers)
    ids, toy = padded(texts), Toy(torch.float32)
    weights = [torch.rand(ids.shape, dtype=torch.float64) for _ in range(3)]

    def loss(terms: PolicyTerms) -> torch.Tensor:
        return sum((one.double() * weight).sum() for one, weight in zip(terms, weights, strict=True))

    hidden = toy.hidden(ids)
    options = {"temperature": 0.7, "entropy": True, "log_z": True}
    inputs = (hidden, ids, legal, toy.head) if with_head else (toy.head(hidden), ids, legal)
    terms = masked_log_probs(*inputs, **options)
    assert isinstance(terms, PolicyTerms)
    loss(terms).backward()
    gradients = toy.gradients()
    expected = by_hand(toy.head(toy.hidden(ids)), ids, legal, 0.7)
    for one, other in zip(terms, expected, strict=True):
        assert one.dtype == torch.float32
        assert torch.allclose(one.double(), other, atol=2e-6)
    loss(expected).backward()
    assert torch.allclose(gradients, toy.gradients(), atol=2e-5)
    # The whole policy is the constrained one and what the mask left of it.
    full = torch.log_softmax(toy.head(toy.hidden(ids)) / 0.7, 2).gather(2, ids[..., None])[..., 0]
    for row, text in enumerate(texts):
        whole = (terms.log_probs + terms.log_z)[row, : len(text)]
        assert torch.allclose(whole, full[row, : len(text)], atol=5e-6)
        assert not terms.log_probs[row, len(text) :].any() and not terms.log_z[row, len(text) :].any()
    assert bool((terms.log_z <= 1e-6).all())


def test_forced_tokens_are_exactly_0_and_cost_no_row() -> None:
    """Rows of hidden states and head that have no part in a choice may hold anything, even NaN, and get no gradient."""
    _, _, texts, legal = batch()
    ids = padded(texts, fill=-100)
    hidden = torch.randn(*ids.shape, DIM)
    head = torch.randn(VOCABULARY, DIM)
    chosen = torch.zeros(ids.shape, dtype=torch.bool)
    in_a_choice: set[int] = set()
    for row, (offsets, listed) in enumerate(legal):
        for at in np.flatnonzero(np.diff(offsets) > 1):
            chosen[row, at] = True
            in_a_choice.update(listed[offsets[at] : offsets[at + 1]].tolist())
    hidden[~chosen] = float("nan")
    others = torch.tensor(sorted(set(range(VOCABULARY)) - in_a_choice))
    head[others] = float("nan")
    hidden.requires_grad_(), head.requires_grad_()
    log_probs = masked_log_probs(hidden, ids, legal, head)
    assert bool((log_probs[~chosen] == 0).all()) and bool((log_probs[chosen] < 0).all())
    log_probs.sum().backward()
    assert bool((hidden.grad[~chosen] == 0).all()) and bool((head.grad[others] == 0).all())
    assert bool(hidden.grad[chosen].any()) and bool(
        hidden.grad.isfinite().all() and head.grad.isfinite().all()
    )
    assert 0.1 < float(1 - chosen[0].float().mean()) < 0.9


def test_parts_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    import moldrift.legal_softmax as softmax

    _, _, texts, legal = batch()
    ids, found = padded(texts), []
    for size in (softmax._CHUNK, 5000):
        monkeypatch.setattr(softmax, "_CHUNK", size)
        toy = Toy(torch.float64)
        terms = masked_log_probs(toy.hidden(ids), ids, legal, toy.head, entropy=True, log_z=True)
        sum(one.sum() for one in terms).backward()
        found.append((*(one.detach() for one in terms), toy.gradients()))
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-12)


def test_nothing_of_the_size_of_the_vocabulary_is_made() -> None:
    """No tensor of as many elements as positions times vocabulary, forwards or backwards."""
    from torch.utils._python_dispatch import TorchDispatchMode

    largest = [0]

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            for one in out if isinstance(out, (tuple, list)) else [out]:
                if isinstance(one, torch.Tensor):
                    largest[0] = max(largest[0], one.numel())
            return out

    _, _, texts, legal = batch("qwen-like")
    ids, vocabulary = padded(texts), 50_000
    hidden = torch.randn(*ids.shape, DIM, requires_grad=True)
    head = torch.randn(vocabulary, DIM, requires_grad=True)
    with Watch():
        masked_log_probs(hidden, ids, legal, head).sum().backward()
    # The gradient of the head itself is the largest.
    assert largest[0] == head.numel() < ids.numel() * vocabulary / 10


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sums_are_taken_in_32_bits(dtype: torch.dtype) -> None:
    """Products are rounded as the model's head rounds them, and nothing after."""
    _, _, texts, legal = batch()
    ids, toy = padded(texts), Toy(torch.float32).to(dtype)
    hidden = toy.hidden(ids).detach().requires_grad_()
    log_probs = masked_log_probs(hidden, ids, legal, toy.head)
    logits = torch.nn.functional.linear(hidden, toy.head.weight, toy.head.bias)
    expected = by_hand(logits.detach(), ids, legal, 1.0).log_probs
    assert log_probs.dtype == torch.float32
    assert float((log_probs.detach() - expected).abs().max()) < 2e-2
    assert torch.allclose(masked_log_probs(logits, ids, legal).double(), expected, atol=2e-6)
    log_probs.sum().backward()
    assert hidden.grad.dtype == toy.head.weight.grad.dtype == dtype
    # Of different types the wider counts, and autocast does not change that.
    wide = masked_log_probs(hidden, ids, legal, toy.head.weight.float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(masked_log_probs(hidden, ids, legal, toy.head.weight.float()), wide)


def test_texts_that_are_forced_throughout() -> None:
    """They have no gradient, and still hang on the model, so that a step with them alone does not fail."""
    one = automaton()
    ids = one.legal("CO", [])[1].tolist() or one.allowed_ids("CO")
    hidden = torch.randn(2, 1, DIM, requires_grad=True)
    head = torch.randn(VOCABULARY, DIM, requires_grad=True)
    log_probs = masked_log_probs(
        hidden, torch.tensor([ids[:1], ids[:1]]), one.legal(["CO", "CO"], [ids[:1], []]), head
    )
    assert log_probs.tolist() == [[0.0], [0.0]]
    log_probs.sum().backward()
    assert not hidden.grad.any() and not head.grad.any()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_on_a_device(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    _, _, texts, legal = batch()
    ids, toy = padded(texts).to(device), Toy(torch.float32).to(device)
    found = masked_log_probs(toy.hidden(ids), ids, legal, toy.head, log_z=True)
    expected = by_hand(toy.head(toy.hidden(ids)).detach().cpu(), ids.cpu(), legal, 1.0)
    assert found.log_probs.device.type == device
    assert torch.allclose(found.log_probs.detach().cpu().double(), expected.log_probs, atol=1e-5)
    assert torch.allclose(found.log_z.detach().cpu().double(), expected.log_z, atol=1e-5)


def random_model(kind: str, checkpoint: Model) -> Any:
    """A small random model of transformers for the tokenizer of a checkpoint."""
    import transformers

    config = {"qwen": transformers.Qwen3Config, "llama": transformers.LlamaConfig}[kind](
        vocab_size=checkpoint.model.config.vocab_size,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        initializer_range=0.2,
        eos_token_id=checkpoint.automaton.eos_token_id,
        tie_word_embeddings=True,
    )
    torch.manual_seed(3)
    return transformers.AutoModelForCausalLM.from_config(config).eval()


@pytest.mark.parametrize("kind", ["qwen", "llama"])
@pytest.mark.parametrize("way", ["generate", "constrained_generate"])
def test_the_trainer_has_the_probabilities_of_the_rollout(kind: str, way: str) -> None:
    """Of texts that transformers drew; with ``generate`` its own scores say with which probability."""
    pytest.importorskip("transformers")
    checkpoint = Model(f"{kind}-like")
    model, smiles = random_model(kind, checkpoint), [*molecules(2), "CO"]
    prompts = checkpoint.prompts(smiles)
    constraint = checkpoint.automaton.logits_processor(smiles)
    how: dict[str, Any] = {"custom_generate": moldrift.constrained_generate, "constraint": constraint}
    if way == "generate":
        how = {"logits_processor": [constraint], "output_scores": True, "return_dict_in_generate": True}
    torch.manual_seed(5)
    out = model.generate(
        **prompts, **how, do_sample=True, temperature=1.0, top_p=1.0, top_k=0, max_new_tokens=60
    )
    sequences, begin = out if way != "generate" else out.sequences, prompts["input_ids"].shape[1]
    ids = sequences[:, begin:]
    texts = [checkpoint.cut(row) for row in ids.tolist()]
    legal = checkpoint.automaton.legal(smiles, texts)
    mask = torch.nn.functional.pad(prompts["attention_mask"], (0, ids.shape[1]), value=1)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        read = model.model(sequences.clone(), attention_mask=mask, position_ids=positions).last_hidden_state
        trainer = masked_log_probs(read[:, begin - 1 : -1], ids.clone(), legal, model.lm_head)
    if way == "generate":
        rollout = torch.stack([score.log_softmax(1) for score in out.scores], 1).gather(2, ids[..., None])[
            ..., 0
        ]
    else:  # no scores: from the logits, token by token, with the mask of allowed_ids
        logits = model(sequences.clone(), attention_mask=mask, position_ids=positions).logits[
            :, begin - 1 : -1
        ]
        rollout = torch.zeros(ids.shape)
        for row, text in enumerate(texts):
            for at, token in enumerate(text):
                allowed = checkpoint.automaton.allowed_ids(smiles[row], text[:at])
                rollout[row, at] = logits[row, at, allowed].log_softmax(0)[allowed.index(token)]
    for row, text in enumerate(texts):
        ratio = (trainer - rollout)[row, : len(text)].detach().exp()
        assert float((ratio - 1).abs().max()) < 1e-5


def test_bad_input() -> None:
    _, _, texts, legal = batch()
    ids, toy = padded(texts), Toy(torch.float32)
    hidden = toy.hidden(ids).detach()
    head = toy.head.weight.detach()
    wrong = ids.clone()
    wrong[2, 7] = 3
    other = padded([*texts[1:], texts[0]])
    one = legal[0]
    for arguments, kind, expected in (
        ((hidden, wrong, legal, head), moldrift.ForbiddenToken, "completion 2, token 7: 3 is not among"),
        ((hidden, other, legal, head), moldrift.ForbiddenToken, "completion 0, token "),
        (
            (hidden, ids, legal, head[:, :-1]),
            moldrift.DriftError,
            r"lm_head: \[2650, 15\], hidden states of 16",
        ),
        ((hidden, ids, legal, head.T), moldrift.DriftError, r"lm_head: \[16, 2650\]"),
        ((hidden, ids, legal, "head"), moldrift.DriftError, "lm_head: str"),
        ((hidden, ids, legal, head[:30]), moldrift.TokenizerRefused, "lm_head: has 30 rows, and token"),
        ((hidden, ids, legal), moldrift.TokenizerRefused, "lm_head: has 16 rows"),
        ((hidden, ids[:, 1:], legal, head), moldrift.DriftError, "ids: "),
        ((hidden[0], ids, legal, head), moldrift.DriftError, "hidden_or_logits: "),
        ((hidden.long(), ids, legal, head), moldrift.DriftError, "hidden_or_logits: "),
        ((hidden, ids, legal[:-1], head), moldrift.DriftError, "legal: of 3 completions, the batch has 4"),
        ((hidden, ids, one, head), moldrift.DriftError, "legal: is one pair"),
        ((hidden[:, :5], ids[:, :5], legal, head), moldrift.DriftError, "legal: completion 0 has"),
    ):
        with pytest.raises(kind, match=expected) as error:
            masked_log_probs(*arguments)
        line(error)
    with pytest.raises(moldrift.DriftError, match="temperature"):
        masked_log_probs(hidden, ids, legal, head, temperature=0.0)
