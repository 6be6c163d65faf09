"""What the automaton of a skeleton brings a small model of crystals in transformers, beside the model alone.

    python python/benches/crystals.py DRIFT WORK

Makes 20,000 crystals (`prototypes.py`), writes them as `crystal-text` behind a prompt with their formula, and trains a Llama of
1.9 million weights on them (the first time; the model stays in WORK/model). Formulas of 200 prompts are held out. For each of
them transformers' `generate` samples four texts at temperature 1, with the same seeds in every row:

none          the model alone
skeleton      under `SkeletonAutomaton.logits_processor`: the composition in any order, up to four times
llguidance    under a grammar of characters, with the atoms in the order of the formula, up to four times

DRIFT, the program, judges the texts by `drift audit --skeleton crystal-text`, beside `none`. Prints a Markdown table:

pass, composition, -0.00, other   of the texts, in percent; a text can have several faults
canonical       texts whose tokens are those of the tokenizer, which the model was trained on, in percent
unchanged       of the texts that pass in `none`, those that are the same in the row
shortest        the shortest distance between two atoms minus that in `none`, in Å, of texts that pass in both: a mean over
                prompts with a 95 % interval
< 0.5 Å         texts with two atoms closer than that, in percent of those whose cell has a volume
tokens          of a text
passes          of the model over batches of 100 texts; each goes on until its longest text is over
CPU s, mask s   seconds that a text takes, and those of them that the logits processor takes

A table before it has the shortest distances of all texts whose cell has a volume, also of those that do not pass: the share of
a formula's texts below 0.5 Å, and their mean, minus those in `none`; a mean over formulas with a 95 % bootstrap interval.
`composition` has how many of the texts below 0.5 Å have another composition in `none`.

transformers draws by torch.multinomial. It makes noise for every token of the vocabulary, whatever its probability, so equal
seeds and batches give equal noise, and a text that is legal anyway has to be the same in every row.
Needs torch and transformers; a row is left out if `--rows` does not name it. One seed gives the same texts again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from prototypes import PROTOTYPES, Crystal, crystals
from transformers import LlamaConfig, LlamaForCausalLM, LogitsProcessor, PreTrainedTokenizerFast

import moldrift

#: Prompts whose texts are generated at once.
PROMPTS_AT_ONCE = 25
ROWS = ("none", "skeleton", "llguidance")


def prompt(crystal: Crystal) -> str:
    """The prompt of a crystal: its formula with every count, so that elements are the same tokens as in the answer."""
    formula = "".join(f"{name}{count}" for name, count in crystal.formula)
    return f"Crystal:\n{formula}\n"


@dataclass
class Data:
    """The crystals of training, and one for each formula that was held out."""

    training: list[tuple[str, str]]
    held_out: list[Crystal]

    @classmethod
    def made(cls, count: int, formulas: int, seed: int) -> Data:
        """Draws prototypes, and for each a crystal."""
        draw = random.Random(seed)
        every = crystals()
        by_prototype = {
            one.__name__: [c for c in every if c.prototype == one.__name__] for one, _, _ in PROTOTYPES
        }

        def drawn() -> Crystal:
            return draw.choice(by_prototype[draw.choice(list(by_prototype))])

        held_out: dict[Any, Crystal] = {}
        while len(held_out) < formulas:
            crystal = drawn()
            held_out.setdefault(crystal.formula, crystal)
        training = []
        while len(training) < count:
            crystal = drawn()
            if crystal.formula not in held_out:
                training.append((prompt(crystal), crystal.text(draw)))
        return cls(training, list(held_out.values()))


def batches(rows: list[tuple[list[int], list[int]]], batch: int) -> Iterator[list[int]]:
    """Rows to train on at once, one pass over all after another; the same ones every time."""
    draw, order = random.Random(0), list(range(len(rows)))
    while True:
        draw.shuffle(order)
        # Texts of similar length stand beside one another, so that little is padded.
        groups = [
            sorted(order[at : at + 32 * batch], key=lambda row: len(rows[row][1]))
            for at in range(0, len(order), 32 * batch)
        ]
        made = [group[at : at + batch] for group in groups for at in range(0, len(group), batch)]
        draw.shuffle(made)
        yield from made


def tensors(rows: list[tuple[list[int], list[int]]]) -> dict[str, torch.Tensor]:
    """Ids of prompts and answers, and the labels: the answers alone. No token reads the padding behind a text."""
    longest = max(len(before) + len(answer) for before, answer in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    labels = torch.full((len(rows), longest), -100)
    for row, (before, answer) in enumerate(rows):
        ids[row, : len(before) + len(answer)] = torch.tensor(before + answer)
        labels[row, len(before) : len(before) + len(answer)] = torch.tensor(answer)
    return {"input_ids": ids, "labels": labels}


@dataclass
class Progress:
    """How far a training is: what a checkpoint keeps beside the weights."""

    step: int = 0
    cpu_seconds: float = 0.0
    losses: list[float] = field(default_factory=list)


def train(
    model: LlamaForCausalLM,
    rows: list[tuple[list[int], list[int]]],
    batch: int,
    epochs: float,
    checkpoint: Path,
    every: int = 500,
) -> Progress:
    """Trains on ids of prompts and answers; continues from a checkpoint, which it writes every so many steps."""
    steps = max(1, int(len(rows) * epochs / batch))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-3, betas=(0.9, 0.95), weight_decay=0.01)
    # Constant up to the last 30 % of the steps. So a training may be continued with more epochs up to there.
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min((s + 1) / 100, 1, max(0.02, (1 - s / steps) / 0.3))
    )
    kept, progress = {"model": model, "optimizer": optimizer, "schedule": schedule}, Progress()
    if checkpoint.is_file():
        stored = torch.load(checkpoint)
        for name, part in kept.items():
            part.load_state_dict(stored[name])
        progress = Progress(**stored["progress"])
        print(f"continues behind step {progress.step}", flush=True)
    model.train()
    before, began = progress.cpu_seconds, time.process_time()
    for chosen in itertools.islice(batches(rows, batch), progress.step, steps):
        loss = model(**tensors([rows[row] for row in chosen])).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        progress.step += 1
        progress.losses.append(loss.item())
        progress.cpu_seconds = before + time.process_time() - began
        if progress.step % 100 == 0:
            mean = sum(progress.losses[-100:]) / 100
            print(
                f"step {progress.step} of {steps}, loss {mean:.4f}, {progress.cpu_seconds:.0f} CPU s",
                flush=True,
            )
        if progress.step % every == 0:
            states = {name: part.state_dict() for name, part in kept.items()}
            part = checkpoint.with_suffix(".part")
            torch.save({**states, "progress": asdict(progress)}, part)
            part.replace(checkpoint)
    model.eval()
    return progress


class CharacterGrammar(LogitsProcessor):
    """llguidance under a grammar of characters for each prompt: what a user writes without drift."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, prompts: list[Crystal], each: int, eos: int
    ) -> None:
        import llguidance.hf
        import llguidance.torch

        self.engine, self.eos, self.length = llguidance, eos, 0
        known = llguidance.hf.from_tokenizer(tokenizer, len(tokenizer))
        grammars = [
            llguidance.grammar_from("lark", self.grammar(one)) for one in prompts for _ in range(each)
        ]
        self.rows = [llguidance.LLMatcher(known, grammar, log_level=1) for grammar in grammars]
        self.mask = llguidance.torch.allocate_token_bitmask(len(self.rows), len(tokenizer))

    @staticmethod
    def grammar(crystal: Crystal) -> str:
        """The texts of a formula, its atoms in their order. Items in any order would need a rule for each combination."""
        lines = [
            r"LENGTH: /[1-9][0-9]{0,2}\.[0-9]/",
            "ANGLE: /1[0-7][0-9]|180|[1-9]?[0-9]/",
            r"F: /0\.[0-9]{2}|1\.00/",
        ]
        cell = r'LENGTH " " LENGTH " " LENGTH "\n" ANGLE " " ANGLE " " ANGLE'
        for name, _ in crystal.formula:
            lines.append(rf'{name.lower()}: "\n{name}\n" F " " F " " F')
        units = []
        for times in range(1, 5):
            atoms = " ".join(f"{name.lower()}{{{times * count}}}" for name, count in crystal.formula)
            lines.append(f"z{times}: {atoms}")
            units.append(f"z{times}")
        return "\n".join([f"start: {cell} ({' | '.join(units)})", *lines])

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Forbids what no grammar allows."""
        if self.length:
            for row, token in enumerate(input_ids[:, -1].tolist()):
                if not self.rows[row].is_stopped():
                    self.rows[row].consume_token(token)
        self.length += 1
        for row, matcher in enumerate(self.rows):
            if matcher.is_stopped():
                self.mask[row] = 0
                self.mask[row, self.eos // 32] = 1 << self.eos % 32
            else:
                self.engine.torch.fill_next_token_bitmask(matcher, self.mask, row)
        self.engine.torch.apply_token_bitmask_inplace(scores, self.mask)
        return scores


@dataclass
class Cost:
    """What the texts of a row took."""

    tokens: int = 0
    passes: int = 0
    cpu_seconds: float = 0.0
    #: Of them those of the processor, its constraints included.
    mask_seconds: float = 0.0
    canonical: int = 0


class Timed(LogitsProcessor):
    """A processor, and the seconds that it takes."""

    def __init__(self, inner: LogitsProcessor | None, cpu_seconds: float) -> None:
        self.inner, self.cpu_seconds = inner, cpu_seconds

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The scores of the processor."""
        if self.inner is None:
            return scores
        began = time.process_time()
        scores = self.inner(input_ids, scores)
        self.cpu_seconds += time.process_time() - began
        return scores


def generate(
    model: LlamaForCausalLM,
    automaton: moldrift.SkeletonAutomaton,
    held_out: list[Crystal],
    each: int,
    seed: int,
    longest_text: int,
    processor: Callable[[list[Crystal]], LogitsProcessor | None],
) -> tuple[list[tuple[str, str]], Cost]:
    """The texts of each prompt, and what they took."""
    texts, cost, eos = [], Cost(), automaton.eos_token_id
    for at in range(0, len(held_out), PROMPTS_AT_ONCE):
        batch = held_out[at : at + PROMPTS_AT_ONCE]
        prompts = [automaton.ids(prompt(one)) for one in batch]
        longest = max(map(len, prompts))
        ids = torch.tensor([[eos] * (longest - len(one)) + one for one in prompts])
        mask = torch.tensor([[0] * (longest - len(one)) + [1] * len(one) for one in prompts])
        torch.manual_seed(seed + at)
        began = time.process_time()
        made = processor(batch)
        timed = Timed(made, time.process_time() - began)
        written = model.generate(
            ids,
            attention_mask=mask,
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            num_return_sequences=each,
            max_new_tokens=longest_text,
            eos_token_id=eos,
            pad_token_id=eos,
            logits_processor=[timed],
        )
        cost.cpu_seconds += time.process_time() - began
        cost.mask_seconds += timed.cpu_seconds
        cost.passes += written.shape[1] - longest
        for row, answer in enumerate(written[:, longest:].tolist()):
            end = answer.index(eos) if eos in answer else len(answer)
            text = automaton.text(answer[:end])
            cost.tokens += min(end + 1, len(answer))
            cost.canonical += automaton.ids(text) == answer[:end]
            texts.append((prompt(batch[row // each]), text))
    return texts, cost


def table(report: dict[str, Any], costs: dict[str, Cost]) -> str:
    """The report of the audit and the costs as a Markdown table."""
    columns = [
        "row",
        "pass",
        "composition",
        "`-0.00`",
        "other",
        "canonical",
        "unchanged",
        "shortest, Å",
        "< 0.5 Å",
        "tokens",
    ]
    columns += ["passes", "CPU s", "mask s"]
    lines = [f"| {' | '.join(columns)} |", "| --- " * len(columns) + "|"]
    against = {one["row"]: one for one in report["comparisons"]}
    for row in report["rows"]:
        name, faults, cost = row["row"], dict(row["faults"]), costs[row["row"]]
        composition, minus = faults.pop("composition", 0), faults.pop("minus_zero", 0)
        count = row["texts"]
        shares = (row["passed"], composition, minus, sum(faults.values()), cost.canonical)
        cells = [f"`{name}`", *(f"{100 * share / count:.1f}" for share in shares)]
        other = against.get(name)
        if other:
            shortest = other.get("shortest_difference_angstrom")
            interval = shortest and shortest["interval"]
            between = f" [{interval['low']:+.3f}, {interval['high']:+.3f}]" if interval else ""
            cells.append(f"{other['identical']} of {other['passed_without']}")
            cells.append(f"{shortest['mean']:+.3f}{between}" if shortest else "-")
        else:
            cells += ["", ""]
        close = row["geometry"] or {"close": 0, "texts": 0, "without_volume": 0}
        measured = close["texts"] - close["without_volume"]
        cells.append(f"{100 * close['close'] / measured:.1f}" if measured else "-")
        cells += [f"{cost.tokens / count:.1f}", f"{cost.passes:,}"]
        cells += [f"{seconds / count:.4f}" for seconds in (cost.cpu_seconds, cost.mask_seconds)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def distances(verdicts: list[dict[str, Any]], names: list[str]) -> str:
    """The shortest distances of all texts as a Markdown table, beside those of the first row, formula by formula."""
    found: dict[str, dict[int, list[float]]] = {name: {} for name in names}

    def shortest(one: dict[str, Any]) -> list[float]:
        distance = (one["geometry"] or {}).get("shortest_distance_angstrom")
        return [] if distance is None else [distance]

    for one in verdicts:
        if shortest(one):
            found[one["row"]].setdefault(one["prompt"], []).extend(shortest(one))

    def mean(values: list[float]) -> float:
        return sum(values) / max(1, len(values))

    def close(values: list[float]) -> float:
        return 100 * mean([value < 0.5 for value in values])

    first = {(one["prompt"], one["generation"]): one["why"] for one in verdicts if one["row"] == names[0]}
    lines = ["| row | formulas | < 0.5 Å, points | shortest, Å | composition |", "| --- " * 5 + "|"]
    for name in names[1:]:
        own, other = found[name], found[names[0]]
        both = sorted(set(own) & set(other))
        cells = [f"`{name}`", str(len(both))]
        for figure, shown in ((close, "+.1f"), (mean, "+.3f")):
            if not both:
                cells.append("-")
                continue
            differences = [figure(own[one]) - figure(other[one]) for one in both]
            draw = random.Random(0)
            means = sorted(mean(draw.choices(differences, k=len(both))) for _ in range(2_000))
            low, high = means[50], means[-51]
            cells.append(f"{mean(differences):{shown}} [{low:{shown}}, {high:{shown}}]")
        touching = [
            first.get((one["prompt"], one["generation"])) == "composition"
            for one in verdicts
            if one["row"] == name and close(shortest(one)) > 0
        ]
        lines.append(f"| {' | '.join(cells)} | {sum(touching)} of {len(touching)} |")
    return "\n".join(lines)


def main() -> None:
    """Trains, generates, judges, and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("drift", help="the program")
    parser.add_argument("work", type=Path, help="the folder for the model, the texts and the report")
    parser.add_argument("--crystals", type=int, default=20_000)
    parser.add_argument("--epochs", type=float, default=1.4)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--formulas", type=int, default=200)
    parser.add_argument("--texts", type=int, default=4, help="texts of each formula")
    parser.add_argument("--tokenizer", default="qwen-like")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument(
        "--longest", type=int, default=1_200, help="tokens; a spinel times four takes about 1,000"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    args.work.mkdir(parents=True, exist_ok=True)
    automaton = moldrift.SkeletonAutomaton(args.tokenizer, "crystal-text")
    data = Data.made(args.crystals, args.formulas, args.seed)
    minus = sum("-0.00" in text for _, text in data.training)
    print(
        f"{len(data.training)} crystals, {minus} with -0.00; {len(data.held_out)} formulas held out",
        flush=True,
    )
    model = trained(args, automaton, data)
    processors: dict[str, Callable[[list[Crystal]], LogitsProcessor | None]] = {
        "none": lambda batch: None,
        "skeleton": lambda batch: automaton.logits_processor(
            [{"formula": dict(one.formula)} for one in batch]
        ),
        "llguidance": lambda batch: CharacterGrammar(
            plain(args.tokenizer), batch, args.texts, automaton.eos_token_id
        ),
    }
    costs, lines = {}, []
    for row in args.rows:
        texts, costs[row] = generate(
            model, automaton, data.held_out, args.texts, args.seed, args.longest, processors[row]
        )
        lines += [json.dumps({"prompt": of, "lp": row, "text": text}) for of, text in texts]
        print(f"{row}: {len(texts)} texts, {costs[row].cpu_seconds:.0f} CPU seconds", flush=True)
    prompts = [json.dumps({"prompt": prompt(one), "formula": dict(one.formula)}) for one in data.held_out]
    (args.work / "texts.jsonl").write_text("\n".join(lines) + "\n")
    (args.work / "prompts.jsonl").write_text("\n".join(prompts) + "\n")
    # The program is started in another folder.
    drift = shutil.which(args.drift)
    if drift is None:
        raise SystemExit(f"{args.drift}: no such program")
    judge = [
        str(Path(drift).resolve()),
        "audit",
        "texts.jsonl",
        "--skeleton",
        "crystal-text",
        "--prompts",
        "prompts.jsonl",
    ]
    judge += ["--against-row", args.rows[0], "--verdicts", "verdicts.jsonl", "-o", "report.json", "--quiet"]
    subprocess.run(judge, cwd=args.work, check=True, stdout=subprocess.DEVNULL)
    verdicts = [json.loads(line) for line in (args.work / "verdicts.jsonl").read_text().splitlines()]
    print(distances(verdicts, args.rows), end="\n\n")
    print(table(json.loads((args.work / "report.json").read_text()), costs))


def plain(name: str) -> PreTrainedTokenizerFast:
    """A tokenizer of the repository, as transformers and llguidance want it."""
    path = Path(__file__).resolve().parents[2] / "tokenizers" / name
    return PreTrainedTokenizerFast.from_pretrained(path if path.is_dir() else name)


def trained(args: argparse.Namespace, automaton: moldrift.SkeletonAutomaton, data: Data) -> LlamaForCausalLM:
    """The model in the folder, or one that is trained and put there."""
    folder = args.work / "model"
    if folder.is_dir():
        print(f"{folder} is used again")
        return LlamaForCausalLM.from_pretrained(folder).eval()
    config = LlamaConfig(
        vocab_size=automaton.source.tokenizer.size,
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        eos_token_id=automaton.eos_token_id,
        pad_token_id=automaton.eos_token_id,
    )
    model = LlamaForCausalLM(config)
    rows = [
        (automaton.ids(before), automaton.ids(text) + [automaton.eos_token_id])
        for before, text in data.training
    ]
    tokens, weights = sum(len(text) for _, text in rows), sum(one.numel() for one in model.parameters())
    print(f"{weights:,} weights, {tokens:,} tokens of answers, {tokens / len(rows):.1f} a text", flush=True)
    done = train(model, rows, args.batch, args.epochs, args.work / "checkpoint.pt")
    last = done.losses[-max(1, done.step // 10) :]
    print(
        f"trained in {done.cpu_seconds:.0f} CPU seconds, loss {sum(last) / len(last):.4f} nats a token",
        flush=True,
    )
    model.save_pretrained(folder)
    return model


if __name__ == "__main__":
    main()
