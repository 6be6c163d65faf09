#!/usr/bin/env python3
"""Trains a checkpoint with PyTorch on a GPU: 3.7 million tokens a second on an H100, where `drift train-model` takes 4,000 on a core.

    train_gpu.py prepare CORPUS.jsonl.gz TOKENIZER_FOLDER -o DATA.npz                 bins, on any machine (RDKit, tokenizers)
    train_gpu.py documents TEXTS.jsonl TOKENIZER_FOLDER -o DATA.npz                   texts of any encoding, as `drift encode` writes them
    train_gpu.py widen CHECKPOINT_FOLDER TOKENIZER_FOLDER --encoding BINS -o OUT      a model of bins, to go on with bins that reach farther
    train_gpu.py train DATA.npz CHECKPOINT_FOLDER --steps 20000 -o OUT                on the GPU (torch, transformers)

After `prepare` the texts are those of `drift train-model --encoding BINS --frame first-atoms`, but each conformer
is also written in other orders of its atoms, so that each atom and each stereocentre is now among the first and now among the last.
`prepare` writes the SMILES of each molecule in so many orders as tokens with empty slots. `train` fills the slots on the GPU: it draws a
conformer and an order, adds noise, turns the conformer into the frame of its first atoms, and rounds to bins. After `documents` the
texts are those of the file, unchanged. Molecules are split as drift splits them; only the part for training is trained on.

Under `torchrun --nproc-per-node N` so many processes, each on a core or a GPU of its own, share the texts of each update. (It ran on two
cores; on several GPUs it was not tried.)

`--buckets` groups texts by length, so that few tokens of a batch are padding; each update is of one group.

CHECKPOINT_FOLDER gives the architecture (`config.json`) and, with `--init`, the weights to begin with. The optimizer is drift's: Muon for
the matrices of layers, AdamW for the rest. OUT/model.safetensors is in bf16, OUT/recipe.json has all choices, the curve, and what `drift eval`
asks a recipe for; `drift train-model --init OUT` goes on from there.
`python tests/python/train_gpu_texts.py DRIFT` compares its texts with drift's.
"""

import argparse
import ctypes
import gzip
import hashlib
import json
import math
import os
import re
import shutil
import sys
import time
from pathlib import Path

import numpy as np

ENCODING = "binned-v2:-9.525,9.525,0.05"
UNIT = 1e-4  # Å, of positions in data
SEED = 20261126
# As drift's corpora are split by SHA-256.
TEST, VALIDATION = 100, 30
TRAINED, VALIDATED, OF_TESTS, SHAKEN = range(4)  # SHAKEN: copies of what is not trained on
LEAST_SINE = 0.1
BETAS, EPSILON, MOMENTUM = (0.9, 0.95), 1e-8, 0.95
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315), 5
STEP_SIZE = 0.2
FINE_DIGITS = re.compile(r"\d\.\d\d(\d+)")  # the digits behind two decimals


def grid(encoding):
    """Low end, step and number of the bins of an encoding `binned-v2:LOW,HIGH,STEP`; the first and the last are tails."""
    low, high, step = (float(number) for number in encoding.removeprefix("binned-v2:").split(","))
    return low, step, round((high - low) / step) + 1


def part(smiles):
    """TRAINED, VALIDATED or the part for tests."""
    number = int.from_bytes(hashlib.sha256(smiles.encode()).digest()[:8], "big") % 1000
    return OF_TESTS if number < TEST else VALIDATED if number < TEST + VALIDATION else TRAINED


def rows_of(path):
    """The rows of a corpus."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as lines:
        yield from map(json.loads, lines)


class Writer:
    """Documents of a tokenizer: a prompt, an answer and the end token."""

    def __init__(self, folder):
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.end = self.tokenizer.token_to_id(json.loads((folder / "tokenizer_config.json").read_text())["eos_token"])

    def documents(self, texts):
        """The tokens of each document, and how many of them are the prompt, of `[(SMILES, text of the conformer)]`."""
        prompts = self.tokenizer.encode_batch([f"[SMILES]{smiles}[/SMILES]" for smiles, _ in texts])
        answers = self.tokenizer.encode_batch([f"[CONFORMER]{text}[/CONFORMER]" for _, text in texts])
        return [([*p.ids, *a.ids, self.end], len(p.ids)) for p, a in zip(prompts, answers, strict=True)]

    def fine(self, text):
        """Whether each token of an answer begins with a digit behind two decimals, as `drift train-model --fine-weight` counts them."""
        answer = f"[CONFORMER]{text}[/CONFORMER]"
        digits = np.zeros(len(answer), bool)
        for match in FINE_DIGITS.finditer(answer):
            digits[match.start(1) : match.end(1)] = True
        return [bool(digits[start]) for start, _ in self.tokenizer.encode(answer).offsets]


def save(path, source, shapes, encoding, frame, arrays):
    """Writes arrays, with the lengths of documents and of their prompts, and the beginning of the recipe of what is trained on them."""
    lengths, prompts = np.array(shapes).T
    given = source.read_bytes()
    inputs = [{"name": source.name, "bytes": len(given), "sha256": hashlib.sha256(given).hexdigest()}]
    np.savez(
        path,
        lengths=lengths.astype(np.uint16),
        prompts=prompts.astype(np.uint16),
        recipe=np.array(json.dumps({"dialect": encoding, "frame": frame, "inputs": inputs})),
        **arrays,
    )
    print(f"{len(lengths)} texts, {lengths.mean():.1f} tokens a text, {lengths.max()} at most")


def orders_of(mol, smiles, count, draw):
    """The SMILES in so many orders of its atoms, the given one first: `[(text, order)]`, with each atom's place in the given one."""
    from rdkit import Chem

    found = [(smiles, list(range(mol.GetNumAtoms())))]
    for _ in range(count - 1):
        numbers = draw.permutation(mol.GetNumAtoms())
        turned = Chem.RenumberAtoms(mol, [int(n) for n in numbers])
        text = Chem.MolToSmiles(turned, canonical=False)
        written = json.loads(turned.GetProp("_smilesAtomOutputOrder").replace(",]", "]"))
        found.append((text, [int(numbers[at]) for at in written]))
    return found


def prepare(arguments):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "corpora"))
    import build
    import small
    from rdkit import Chem, RDLogger

    RDLogger.DisableLog("rdApp.*")
    writer = Writer(arguments.tokenizer)
    bins = [writer.tokenizer.token_to_id(f"{bin:03}") for bin in range(grid(arguments.encoding)[2])]
    if None in bins:
        raise SystemExit(f"{arguments.tokenizer} has no token for each bin of {arguments.encoding}")
    molecules = {}
    for row in rows_of(arguments.corpus):
        points = [[float(v) for v in block.split(",")] for block in build.BLOCK.findall(row["embedded_smiles"])]
        molecules.setdefault(row["canonical_smiles"], []).append(points)
    most = max(len(all_of[0]) for all_of in molecules.values())
    documents, orders, slots = [], [], []
    for number, smiles in enumerate(molecules):
        mol = Chem.MolFromSmiles(smiles)
        atoms = mol.GetNumAtoms()
        texts = orders_of(mol, smiles, arguments.orders, np.random.default_rng([SEED, number]))
        zeros = np.zeros((atoms, 3))
        bare = [(text, build.BLOCK.sub("000000000;", build.enriched(text, zeros))) for text, _ in texts]
        for (_, order), (tokens, prompt) in zip(texts, writer.documents(bare), strict=True):
            places = [at for at, token in enumerate(tokens) if at >= prompt and token == bins[0]]
            assert len(places) == 3 * atoms, (smiles, tokens)
            documents.append((tokens, prompt))
            orders.append(order + [0] * (most - atoms))
            slots.append(places[::3] + [0] * (most - atoms))
        if number % 5000 == 0:
            print(f"{number} of {len(molecules)} molecules", file=sys.stderr, flush=True)
    tokens = np.full((len(documents), max(len(tokens) for tokens, _ in documents)), writer.end, np.uint16)
    for row, (document, _) in zip(tokens, documents, strict=True):
        row[: len(document)] = document
    conformers = [(number, points) for number, all_of in enumerate(molecules.values()) for points in all_of]
    positions = np.zeros((len(conformers), most, 3), np.int32)
    for row, (_, points) in zip(positions, conformers, strict=True):
        row[: len(points)] = np.rint(np.array(points) / UNIT)
    arrays = {
        "tokens": tokens,
        "orders": np.array(orders, np.uint8),
        "slots": np.array(slots, np.uint16),
        "per_molecule": arguments.orders,
        "unmirrored": np.array([small.mirrored(smiles) is None for smiles in molecules]),
        "parts": np.array([part(smiles) for smiles in molecules], np.uint8),
        "atoms": np.array([len(all_of[0]) for all_of in molecules.values()], np.uint8),
        "positions": positions,
        "molecules": np.array([number for number, _ in conformers], np.int32),
        "bins": np.array(bins, np.int32),
    }
    shapes = [(len(document), prompt) for document, prompt in documents]
    save(arguments.output, arguments.corpus, shapes, arguments.encoding, "first-atoms", arrays)


AT_ONCE = 20_000  # texts that are tokenized at once


def shaken(text, noise, draw):
    """A text of decimals whose coordinates are moved by noise in Å."""

    def block(match):
        numbers = [float(number) + noise * draw.standard_normal() for number in match[1].split(",")]
        return "<" + ",".join(f"{number:.4f}" for number in numbers).replace("-0.0000", "0.0000") + ">"

    return re.sub(r"<([^<>]*)>", block, text)


def documents(arguments):
    writer = Writer(arguments.tokenizer)
    rows = list(rows_of(arguments.texts))
    given = [(row.get("canonical_smiles") or row["smiles"], row["embedded_smiles"]) for row in rows]
    draw = np.random.default_rng(SEED)
    tokens, shapes, parts, fine = [], [], [], []
    for copy in range(arguments.copies):
        for at in range(0, len(given), AT_ONCE):
            some = given[at : at + AT_ONCE]
            texts = [(smiles, shaken(text, arguments.noise, draw)) for smiles, text in some] if copy else some
            written = writer.documents(texts)
            tokens.append(np.array([token for document, _ in written for token in document], np.uint16))
            shapes += [(len(document), prompt) for document, prompt in written]
            for (_, text), (_, prompt) in zip(texts, written, strict=True):
                fine.append(np.array([*[False] * prompt, *writer.fine(text), False]))
            # What validates is as it was given.
            found = np.array([part(smiles) for smiles, _ in some], np.uint8)
            parts.append(np.where(found == TRAINED, TRAINED, SHAKEN) if copy else found)
            print(f"{len(shapes)} of {arguments.copies * len(given)} texts", file=sys.stderr, flush=True)
    arrays = {"tokens": np.concatenate(tokens), "parts": np.concatenate(parts), "fine": np.packbits(np.concatenate(fine))}
    save(arguments.output, arguments.texts, shapes, rows[0].get("encoding", arguments.encoding), arguments.frame, arrays)


def widen(arguments):
    """Writes a checkpoint with the vocabulary of a wider tokenizer, in which each token, and each bin by its value, keeps its row."""
    import torch
    from safetensors.torch import load_file, save_file

    recipe = json.loads((arguments.checkpoint / "recipe.json").read_text())
    old, new = grid(recipe["recipe"]["dialect"]), grid(arguments.encoding)
    shift = (old[0] - new[0]) / old[1]
    if old[1] != new[1] or abs(shift - round(shift)) > 1e-6 or shift < 0 or old[2] + shift > new[2]:
        raise SystemExit(f"{arguments.encoding} does not hold all bins of {recipe['recipe']['dialect']}: give the same step, and ends that are steps away")
    before, after = (Writer(folder).tokenizer for folder in (arguments.checkpoint, arguments.tokenizer))
    # Bin 0 and the last one are tails: what they held is now in bins of their own.
    kept = {f"{bin + round(shift):03}": f"{bin:03}" for bin in range(1, old[2] - 1)}
    outer = {f"{bin:03}": "000" if bin <= shift else f"{old[2] - 1:03}" for bin in range(new[2])}
    tokens = [after.id_to_token(number) for number in range(after.get_vocab_size())]
    rows = [before.token_to_id(kept.get(token) or outer.get(token) or token) for token in tokens]
    missing = [token for token, row in zip(tokens, rows, strict=True) if row is None]
    if missing:
        raise SystemExit(f"{arguments.checkpoint} has no token {missing[0]!r}: give a tokenizer that was made from its base")
    arguments.output.mkdir(parents=True, exist_ok=True)
    weights = load_file(arguments.checkpoint / "model.safetensors")
    draw = torch.Generator().manual_seed(SEED)
    is_outer = torch.tensor([token in outer and token not in kept for token in tokens])
    for name in [name for name in weights if "embed_tokens" in name or "lm_head" in name]:
        wide = weights[name].float()[rows]
        # Equal rows would stay equal but for their own gradients; a little noise tells them apart.
        wide[is_outer] += 0.1 * wide.std() * torch.randn(wide[is_outer].shape, generator=draw)
        weights[name] = wide.to(weights[name].dtype)
    save_file(weights, arguments.output / "model.safetensors", {"format": "pt"})
    config = json.loads((arguments.checkpoint / "config.json").read_text()) | {"vocab_size": len(rows)}
    (arguments.output / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    for folder, name in [(arguments.checkpoint, "generation_config.json"), (arguments.tokenizer, "tokenizer.json"), (arguments.checkpoint, "tokenizer_config.json")]:
        shutil.copy(folder / name, arguments.output)
    print(f"{len(rows)} rows, {int(is_outer.sum())} of bins that are new")


class Data:
    """What `prepare` or `documents` wrote, in the memory of the device."""

    def __init__(self, arrays, device):
        self.device, self.recipe, self.arrays = device, json.loads(str(arrays["recipe"])), arrays
        self.lengths, self.prompts = self.tensor("lengths", np.int64), self.tensor("prompts", np.int64)

    def tensor(self, name, dtype):
        import torch

        return torch.from_numpy(self.arrays[name].astype(dtype)).to(self.device)

    def split(self, parts, needed, longest, buckets):
        """Keeps which texts are trained on, in groups by the length that they need, and which validate; longer ones are left out."""
        import torch

        train, self.validation = (((parts == part) & (needed <= longest)).nonzero()[:, 0] for part in (TRAINED, VALIDATED))
        self.buckets = [some for some in train[needed[train].argsort()].tensor_split(buckets) if len(some)]
        self.bucket_lengths = [-(-int(needed[some].max()) // 8) * 8 for some in self.buckets]
        # An update has as many tokens of each group, so a group of longer texts comes oftener for its number of texts.
        self.bucket_means = [float(needed[some].float().mean()) for some in self.buckets]
        self.shares = torch.tensor([len(some) * mean for some, mean in zip(self.buckets, self.bucket_means, strict=True)])

    def some(self, update, batch_tokens, batch=None):
        """Texts of one group for an update, the same group in all processes; the length of its rows, and their number of tokens."""
        import torch

        draw = torch.Generator().manual_seed(SEED + update)
        at = int(torch.multinomial(self.shares, 1, generator=draw)) if len(self.buckets) > 1 else 0
        bucket, mean = self.buckets[at], self.bucket_means[at]
        count = batch or max(1, round(batch_tokens / mean))
        return bucket[torch.randint(len(bucket), (count,), device=self.device)], self.bucket_lengths[at], count * mean


class Documents(Data):
    """Texts as they are."""

    def __init__(self, arrays, device, longest, buckets, fine_weight=1.0):
        import torch

        super().__init__(arrays, device)
        self.fine_weight = fine_weight
        self.tokens = self.tensor("tokens", np.int16)
        self.fine = torch.from_numpy(np.unpackbits(arrays["fine"], count=len(self.tokens)).astype(bool)).to(device)
        self.starts = self.lengths.cumsum(0) - self.lengths
        self.length = -(-min(int(self.lengths.max()), longest) // 8) * 8
        self.split(self.tensor("parts", np.int64), self.lengths, longest, buckets)

    def places(self, texts, length):
        """The places `[batch, length]` of the tokens of these texts, and which of them are an answer's."""
        import torch

        place = torch.arange(length or self.length, device=self.device)
        is_answer = (place >= self.prompts[texts, None]) & (place < self.lengths[texts, None])
        # What is behind the end is never a target, and no token looks at it.
        return (self.starts[texts, None] + place).clamp(max=len(self.tokens) - 1), is_answer

    def written(self, texts, length=None):
        """Tokens `[batch, length]` and weights of the tokens, of these texts as they are."""
        places, is_answer = self.places(texts, length)
        return self.tokens[places].long(), is_answer

    def drawn(self, texts, length, _share, _noise):
        """A batch for training: digits behind two decimals have a weight of their own."""
        places, is_answer = self.places(texts, length)
        return self.tokens[places].long(), is_answer * (1.0 + (self.fine_weight - 1.0) * self.fine[places])


class Templates(Data):
    """Templates and conformers, from which it makes batches. Bins have no digits, so `fine_weight` is not used."""

    def __init__(self, arrays, device, longest, buckets, _fine_weight=1.0):
        import torch

        super().__init__(arrays, device)
        self.low, self.step, self.number_of_bins = grid(self.recipe["dialect"])
        self.per_molecule = int(arrays["per_molecule"])
        self.tokens = self.tensor("tokens", np.int16)[:, :longest]
        self.length = -(-self.tokens.shape[1] // 8) * 8
        self.orders, self.slots = self.tensor("orders", np.int64), self.tensor("slots", np.int64)
        self.unmirrored, self.atoms = self.tensor("unmirrored", bool), self.tensor("atoms", np.int64)
        self.positions, self.molecules = self.tensor("positions", np.float32) * UNIT, self.tensor("molecules", np.int64)
        self.most = self.positions.shape[1]
        self.bins = self.tensor("bins", np.int64)
        # Instead of an order whose text is too long, that of the canonical SMILES; molecules of which that is too long are left out.
        template = torch.arange(len(self.lengths), device=device)
        self.template = torch.where(self.lengths <= longest, template, template - template % self.per_molecule)
        # A text needs the length of the longest order of its molecule that is used.
        of_molecules = self.lengths[self.template].view(-1, self.per_molecule).amax(1)
        self.split(self.tensor("parts", np.int64)[self.molecules], of_molecules[self.molecules], longest, buckets)
        # The first text may be longer than `longest`.
        self.end = int(arrays["tokens"][0, int(self.lengths[0]) - 1])

    def filled(self, conformers, number, noise, flips, length=None):
        """Documents of these conformers, each in the order of this number: tokens `[batch, length]` and weights of the tokens."""
        import torch

        length = length or self.length
        molecule = self.molecules[conformers]
        template = self.template[molecule * self.per_molecule + number]
        order = self.orders[template]
        exists = torch.arange(self.most, device=self.device) < self.atoms[molecule, None]
        xyz = self.positions[conformers].gather(1, order[..., None].expand(-1, -1, 3))
        # The mirror image of a molecule that has no enantiomer is a conformer of the same molecule.
        xyz[..., 2] *= torch.where(self.unmirrored[molecule] & flips, -1.0, 1.0)[:, None]
        xyz = self.frame(xyz + noise, exists)
        bins = (1 + ((xyz - self.low) / self.step).floor().long()).clamp(0, self.number_of_bins - 1)
        tokens = torch.full((len(conformers), length + 1), self.end, device=self.device)
        written = min(length, self.tokens.shape[1])
        tokens[:, :written] = self.tokens[template, :written].long()
        # Slots of atoms that do not exist go to a column that is cut off.
        at = torch.where(exists, self.slots[template], length)
        for axis in range(3):
            tokens.scatter_(1, torch.where(exists, at + axis, length), self.bins[bins[..., axis]])
        place = torch.arange(length, device=self.device)
        weights = (place >= self.prompts[template, None]) & (place < self.lengths[template, None])
        return tokens[:, :length], weights

    @staticmethod
    def frame(xyz, exists):
        """drift's `first_atoms`: `[batch, atoms, 3]`."""
        import torch

        xyz = xyz - xyz[:, :1]
        x = torch.nn.functional.normalize(xyz[:, 1], dim=-1)
        off = xyz - (xyz @ x[..., None]) * x[:, None]
        usable = exists & (off.square().sum(-1) > LEAST_SINE**2 * xyz.square().sum(-1))
        usable[:, :2] = False
        third = usable.int().argmax(1)
        # On a line, any axis across it: the coordinate axis that is farthest from it.
        farthest = torch.nn.functional.one_hot(x.abs().argmin(1), 3).to(x)
        across = torch.linalg.cross(x, farthest)
        rows = torch.arange(len(xyz), device=xyz.device)
        y = torch.nn.functional.normalize(torch.where(usable.any(1)[:, None], off[rows, third], across), dim=-1)
        turned = xyz @ torch.stack([x, y, torch.linalg.cross(x, y)], -1)
        turned[:, 1, 1:] = 0
        turned[rows, torch.where(usable.any(1), third, 1), 2] = 0
        return turned

    def written(self, conformers):
        """The documents of these conformers as drift writes them."""
        import torch

        still = torch.zeros(len(conformers), self.most, 3, device=self.device)
        return self.filled(conformers, torch.zeros_like(conformers), still, torch.zeros_like(conformers, dtype=torch.bool))

    def drawn(self, conformers, length, share, noise):
        """A batch for training; the share of canonical orders is at least `share`."""
        import torch

        batch = len(conformers)
        number = torch.randint(self.per_molecule, (batch,), device=self.device)
        number = torch.where(torch.rand(batch, device=self.device) < share, 0, number)
        shake = noise * torch.randn(batch, self.most, 3, device=self.device)
        return self.filled(conformers, number, shake, torch.rand(batch, device=self.device) < 0.5, length)


class Optimizer:
    """Muon for the matrices of layers, those of one shape at once; AdamW for the rest."""

    def __init__(self, model):
        import torch

        self.shapes, self.rest = {}, []
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2 and "embed" not in name and "lm_head" not in name:
                rows, columns = parameter.shape
                self.shapes.setdefault((min(rows, columns), max(rows, columns)), []).append(parameter)
            else:
                self.rest.append(parameter)
        # `[matrices, rows, columns]`, with rows ≤ columns.
        self.momentum = {
            shape: torch.zeros(len(some), *shape, device=some[0].device) for shape, some in self.shapes.items()
        }
        self.means = [torch.zeros_like(p) for p in self.rest]
        self.squares = [torch.zeros_like(p) for p in self.rest]
        self.steps = 0

    @staticmethod
    def orthogonal(x):
        import torch

        x = x.bfloat16()
        x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-12)
        (a, b, c), times = NEWTON_SCHULZ
        for _ in range(times):
            square = x @ x.mT
            x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
        return x.float()

    def step(self, rate, decay, clip):
        import torch

        self.steps += 1
        some = [p for group in self.shapes.values() for p in group]
        norm = torch.nn.utils.clip_grad_norm_([*some, *self.rest], clip)
        keep = 1 - rate * decay
        with torch.no_grad():
            for shape, group in self.shapes.items():
                gradient = torch.stack([p.grad.T if p.shape[0] > p.shape[1] else p.grad for p in group])
                momentum = self.momentum[shape].lerp_(gradient, 1 - MOMENTUM)
                steps = self.orthogonal(momentum.lerp(gradient, 1 - MOMENTUM))
                steps *= -rate * STEP_SIZE * math.sqrt(max(shape))
                torch._foreach_mul_(group, keep)
                torch._foreach_add_(group, [s.T if p.shape[0] > p.shape[1] else s for p, s in zip(group, steps, strict=True)])
            gradients = [p.grad for p in self.rest]
            torch._foreach_lerp_(self.means, gradients, 1 - BETAS[0])
            torch._foreach_mul_(self.squares, BETAS[1])
            torch._foreach_addcmul_(self.squares, gradients, gradients, 1 - BETAS[1])
            roots = torch._foreach_sqrt(self.squares)
            torch._foreach_div_(roots, math.sqrt(1 - BETAS[1] ** self.steps))
            torch._foreach_add_(roots, EPSILON)
            torch._foreach_mul_([p for p in self.rest if p.ndim == 2], keep)
            torch._foreach_addcdiv_(self.rest, self.means, roots, -rate / (1 - BETAS[0] ** self.steps))
        for parameter in [*some, *self.rest]:
            parameter.grad = None
        return norm

    def state(self):
        return {"momentum": self.momentum, "means": self.means, "squares": self.squares, "steps": self.steps}

    def load(self, state):
        self.__dict__.update(state)


def keep_memory():
    """Lets the process keep the memory that tensors leave (glibc): the kernel clears pages anew otherwise, a fifth of the time of a core."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        most_mapped, trim_threshold = -4, -1
        mallopt(most_mapped, 0)
        mallopt(trim_threshold, 2**31 - 1)


class Ranks:
    """The processes of a `torchrun` that train one model: each takes its share of the texts of an update."""

    def __init__(self, device):
        import torch

        self.number, self.count = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        if self.count > 1:
            torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")

    def average(self, parameters):
        """Gives all processes the mean of their gradients."""
        import torch

        if self.count > 1:
            gradients = [p.grad for p in parameters]
            together = torch.nn.utils.parameters_to_vector(gradients)
            torch.distributed.all_reduce(together)
            torch.nn.utils.vector_to_parameters(together / self.count, gradients)

    def agreed(self, number, device):
        """The first one's number: of a clock, on which processes differ."""
        import torch

        if self.count > 1:
            told = torch.tensor([number], dtype=torch.float64, device=device)
            torch.distributed.broadcast(told, 0)
            return float(told)
        return number


QUERIES = 64  # positions that `by_queries` takes at once


def by_queries(module, query, key, value, _mask, scaling=None, **_options):
    """Causal attention of transformers' kind, `[batch, heads, length, head]`, that leaves out most of the keys behind a query. On a core
    matrix products take half the time of PyTorch's fused attention, of which the way back is slow."""
    import torch

    key, value = (x.repeat_interleave(module.num_key_value_groups, 1) for x in (key, value))
    length, found = query.shape[2], []
    behind = torch.full((QUERIES, QUERIES), float("-inf"), device=query.device).triu(1)
    for start in range(0, length, QUERIES):
        end = min(start + QUERIES, length)
        mask = torch.nn.functional.pad(behind[: end - start, : end - start], (start, 0))
        scores = (scaling * query[:, :, start:end] @ key[:, :, :end].mT).float() + mask
        found.append(scores.softmax(-1).to(query.dtype) @ value[:, :, :end])
    return torch.cat(found, 2).transpose(1, 2).contiguous(), None


def train(arguments):
    import torch
    from safetensors.torch import save_file
    from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM

    began = time.monotonic()
    keep_memory()
    device = torch.device(f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if arguments.device == "cuda" else arguments.device)
    ranks = Ranks(device)
    torch.manual_seed(arguments.seed)
    torch.set_float32_matmul_precision("high")
    arrays = np.load(arguments.data)
    data = (Templates if "slots" in arrays else Documents)(
        arrays, device, arguments.longest, arguments.buckets, arguments.fine_weight
    )
    AttentionInterface.register("by_queries", by_queries)
    how = {"dtype": torch.float32, "attn_implementation": "by_queries" if device.type == "cpu" else "sdpa"}
    if arguments.init:
        model = AutoModelForCausalLM.from_pretrained(arguments.checkpoint, **how)
    else:
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(arguments.checkpoint), **how)
    model.to(device).train()
    optimizer, done, texts, tokens_seen, curve = Optimizer(model), 0, 0, 0.0, []
    at_once = arguments.batch or max(1, round(arguments.batch_tokens / data.length))
    state = arguments.output / "training.pt"
    if state.exists():
        saved = torch.load(state, map_location=device)
        model.load_state_dict(saved["model"])
        optimizer.load(saved["optimizer"])
        done, texts, tokens_seen, curve = saved["done"], saved["texts"], saved["tokens"], saved["curve"]
    if done or ranks.number:
        # All processes begin with the same weights, and go on with other texts.
        torch.manual_seed(arguments.seed + done + 1_000_000 * ranks.number)
    share = {"batch_tokens": arguments.batch_tokens / ranks.count, "batch": arguments.batch and max(1, arguments.batch // ranks.count)}

    def loss_of(tokens, weights):
        with torch.autocast(device.type, torch.bfloat16):
            if arguments.eager:
                # Logits of answers alone: a fifth of the time of a core. A compiled step needs one shape.
                answers = weights[:, 1:] > 0
                logits = model.lm_head(model.model(input_ids=tokens[:, :-1], use_cache=False)[0][answers])
                targets, weights = tokens[:, 1:][answers], weights[:, 1:][answers]
            else:
                logits = model(input_ids=tokens[:, :-1], use_cache=False).logits.flatten(0, 1)
                targets, weights = tokens[:, 1:].flatten(), weights[:, 1:].flatten()
        nats = torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none")
        return (nats * weights).sum()

    compiled = loss_of if arguments.eager else torch.compile(loss_of, dynamic=False)

    @torch.no_grad()
    def validation():
        """Nats of a validation conformer in the order of its canonical SMILES, for the curve; nothing where none validates."""
        if not len(data.validation):
            return {}
        nats = sum(float(loss_of(*data.written(some))) for some in data.validation.split(at_once))
        return {"validation": round(nats / len(data.validation), 3)}

    def save_all():
        arguments.output.mkdir(parents=True, exist_ok=True)
        for name in ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"]:
            if (arguments.checkpoint / name).exists() and arguments.checkpoint.resolve() != arguments.output.resolve():
                shutil.copy(arguments.checkpoint / name, arguments.output)
        weights = {name: p.detach().to("cpu", torch.bfloat16).contiguous() for name, p in model.named_parameters()}
        save_file(weights, arguments.output / "model.safetensors", {"format": "pt"})
        if arguments.keep_state:
            kept = {"done": done, "texts": texts, "tokens": tokens_seen, "curve": curve}
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state(), **kept}, state.with_suffix(".part"))
            state.with_suffix(".part").replace(state)
        # Named as in the recipes of `drift train-model`.
        augmentation = {"frame": data.recipe["frame"], "noise_angstrom": arguments.noise if isinstance(data, Templates) else 0.0}
        recipe = {"dialect": data.recipe["dialect"], "augmentation": augmentation, "seed": arguments.seed, "inputs": data.recipe["inputs"]}
        about = {
            "schema": "drift.train-gpu/1", "recipe": recipe, "torch": torch.__version__,
            "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu", "processes": ranks.count, "updates": done, "seconds": round(time.monotonic() - began, 1),
            "texts": texts, "tokens": round(tokens_seen), "parameters": sum(p.numel() for p in model.parameters()),
            "options": {k: str(v) if isinstance(v, Path) else v for k, v in vars(arguments).items() if k != "run"}, "curve": curve,
        }
        (arguments.output / "recipe.json").write_text(json.dumps(about, indent=1) + "\n")

    first, losses = done, []
    started = saved_at = time.monotonic()
    texts_before = texts
    while done < arguments.steps:
        # By time, too: what is given for it is given once.
        spent = ranks.agreed((time.monotonic() - began) / arguments.seconds, device) if arguments.seconds else 0.0
        progress = max(done / arguments.steps, spent)
        if progress >= 1:
            break
        falling = min(1.0, (1 - progress) / arguments.falling)
        rate = arguments.learning_rate * min(1.0, (done + 1) / arguments.warmup) * max(falling, 0.002)
        chosen, length, in_texts = data.some(done, **share)
        tokens, weights = data.drawn(chosen, length, arguments.canonical, arguments.noise)
        try:
            loss = compiled(tokens, weights)
            (loss / weights[:, 1:].sum()).backward()
        except Exception as problem:
            # A machine without a C compiler, say.
            if compiled is loss_of or done > first:
                raise
            print(f"not compiled: {problem}", file=sys.stderr, flush=True)
            compiled = loss_of
            continue
        ranks.average(model.parameters())
        optimizer.step(rate, arguments.weight_decay, arguments.clip)
        if ranks.number == 0:
            losses.append((loss / len(chosen)).detach())
        done, texts, tokens_seen = done + 1, texts + ranks.count * len(chosen), tokens_seen + ranks.count * in_texts
        if done == first + 1:
            started, texts_before = time.monotonic(), texts
        if ranks.number == 0 and done % arguments.every == 0:
            nats = float(torch.stack(losses).mean())
            losses.clear()
            speed = (texts - texts_before) / (time.monotonic() - started)
            curve.append({"updates": done, "tokens": round(tokens_seen), "nats": round(nats, 3), "rate": rate, "seconds": round(time.monotonic() - began, 1)})
            if done % (10 * arguments.every) == 0:
                curve[-1] |= validation()
            print(json.dumps(curve[-1]), f"{speed:.0f} texts/s", flush=True)
            if not math.isfinite(nats):
                raise SystemExit("the loss is not finite")
        if ranks.number == 0 and arguments.save_seconds and time.monotonic() - saved_at > arguments.save_seconds:
            save_all()
            saved_at = time.monotonic()
    if ranks.number:
        return
    curve.append({"updates": done, **validation(), "seconds": round(time.monotonic() - began, 1)})
    print(json.dumps(curve[-1]), flush=True)
    save_all()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    prepared = verbs.add_parser("prepare")
    prepared.add_argument("corpus", type=Path)
    prepared.add_argument("tokenizer", type=Path)
    prepared.add_argument("--orders", type=int, default=8, help="orders of atoms of each molecule, its own among them")
    prepared.add_argument("--encoding", default=ENCODING, help="bins: binned-v2:LOW,HIGH,STEP")
    prepared.add_argument("-o", "--output", type=Path, required=True)
    prepared.set_defaults(run=prepare)
    written = verbs.add_parser("documents")
    written.add_argument("texts", type=Path)
    written.add_argument("tokenizer", type=Path)
    written.add_argument("-o", "--output", type=Path, required=True)
    written.add_argument("--copies", type=int, default=1, help="texts of decimals: so many copies, each but the first shaken")
    written.add_argument("--noise", type=float, default=0.002, help="Å, of the copies")
    written.add_argument("--encoding", default="fixed", help="of texts whose rows do not say it: those of decimals")
    written.add_argument("--frame", choices=["keep", "principal", "first-atoms"], default="keep", help="the one that `drift encode` was given")
    written.set_defaults(run=documents)
    widened = verbs.add_parser("widen")
    widened.add_argument("checkpoint", type=Path)
    widened.add_argument("tokenizer", type=Path)
    widened.add_argument("--encoding", required=True, help="binned-v2:LOW,HIGH,STEP, the bins of the tokenizer")
    widened.add_argument("-o", "--output", type=Path, required=True)
    widened.set_defaults(run=widen)
    trained = verbs.add_parser("train")
    trained.add_argument("data", type=Path)
    trained.add_argument("checkpoint", type=Path)
    trained.add_argument("-o", "--output", type=Path, required=True)
    trained.add_argument("--init", action="store_true", help="begins with the weights of the checkpoint")
    trained.add_argument("--steps", type=int, default=20_000)
    trained.add_argument("--seconds", type=float, help="ends in any case after so many, the learning rate with it")
    trained.add_argument("--batch", type=int, help="texts of an update, instead of its tokens")
    trained.add_argument("--batch-tokens", type=int, default=80_000, help="tokens of an update, without padding")
    trained.add_argument("--longest", type=int, default=10_000, help="tokens of a text; longer ones are left out")
    trained.add_argument("--buckets", type=int, default=1, help="groups of texts by length; each is compiled for itself")
    trained.add_argument("--fine-weight", type=float, default=1.0, help="the loss weight of digits behind two decimals, after `documents`")
    trained.add_argument("--learning-rate", type=float, default=4e-3)
    trained.add_argument("--warmup", type=int, default=200)
    trained.add_argument("--falling", type=float, default=0.5, help="the last share of the training, in which the learning rate falls")
    trained.add_argument("--weight-decay", type=float, default=0.1)
    trained.add_argument("--clip", type=float, default=1.0)
    trained.add_argument("--noise", type=float, default=0.002, help="Å")
    trained.add_argument("--canonical", type=float, default=0.3, help="the least share of canonical orders")
    trained.add_argument("--every", type=int, default=100, help="updates between two lines of the curve")
    trained.add_argument("--seed", type=int, default=0)
    trained.add_argument("--device", default="cuda")
    trained.add_argument("--keep-state", action="store_true", help="keeps what it needs to go on in OUT/training.pt")
    trained.add_argument("--save-seconds", type=float, help="saves so often, too, not at the end alone")
    trained.add_argument("--eager", action="store_true", help="does not compile the model")
    trained.set_defaults(run=train)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
