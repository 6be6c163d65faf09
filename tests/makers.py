#!/usr/bin/env python3
"""Every tokenizer of a folder, as its maker distributes it, under every verb and three encodings: what works, what is refused, and
whether what a refusal advises works.

    tests/makers.py DRIFT TOKENIZERS [--only NAME]... [--encoding E]... [--range ANGSTROM] [--table FILE.md] [--work DIR]

TOKENIZERS holds a folder for each, with a tokenizer.json or a tokenizer.json.gz. A cell is one of

- works: compared with `tokenizers`. inspect: ids and classes of 76 texts. fit: of 300 random placeholders none does less harm, by a
  replay that is written here. grammar: 200 legal texts are accepted, and 200 random walks are what the encoder makes of their texts.
  fused, separate: blocks of the range take N tokens, texts without blocks take those of the base, old ids stay.
- refused: exit 2 and one line, the same in two runs, whose remedy is a command; that command is run as it is printed, by the shell
  and in another folder, and must succeed.
- cannot write: the same without a remedy, where `tokenizers` itself loses characters of the encoding.

The exit code is 1 if a cell is anything else, or a file that can write an encoding has no way at all. Needs `tokenizers` alone.
"""

import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
import time

import tokenizers

SMILES = [
    "CC=O",
    "C[C@H](N)C(=O)O",
    "c1ccncc1",
    "F/C=C/Cl",
    "F/C=C\\Cl",
    "[NH3+]CC([O-])=O",
    "CC(C)(C)OC(=O)N1CCC(CC1)C#N",
    "[Na+].[Cl-]",
]
PLAIN = [
    "The quick brown fox jumps over 13 lazy dogs; it's 3.14159, isn't it? -273.15 °C, 1,000,000.00 < 2e6 > 7.",
    'fn main() {\n    let x: Vec<u32> = (0..=255).map(|i| i << 2).collect();\n\tprintln!("{:?}", x);\n}\n',
    "C[C@@H](N)C(=O)O.[Na+].[Cl-] c1ccc2[nH]ccc2c1 F/C=C\\F [13CH3][2H]",
    "Grüße aus Köln, ça va? Съешь же ещё этих мягких булок. 我能吞下玻璃而不伤身体。2024年1月15日",
    "0 00 000 0000 1 12 123 1234 1.2 -1.2345 ,1.2345 ,-1. 9> <9 <-99 -0. <-14. 23, 345, <1.0000,2.0000> <a,b,c>",
    "x² ½ ¾ ¹²³ ٠١٢ १२ «a» “b” … 。、 !!! ?!? ((())) [[1]] --- __init__ a<-1.25 && b>0.5",
    "",
]
BINS = "binned-v2:-13,13,0.104"


class Encoding:
    """How texts of an encoding look: numbers written here, from its rules alone."""

    def __init__(self, name, most):
        self.name, self.bins, self.most = name, name == BINS, most
        self.open, self.comma, self.close = (
            ("", "", ";") if self.bins else ("<", ",", ">")
        )

    def number(self, draw, most):
        if self.bins:
            return f"{draw.randrange(251):03}"
        value = draw.choice(
            [
                draw.uniform(-most, most),
                draw.uniform(-min(most, 1), min(most, 1)),
                int(draw.uniform(-most, most) * 10) / 10,
            ]
        )
        text = f"{abs(value):.4f}"
        sign = "-" if value < 0 and float(text) else ""
        return sign + (text if self.name == "fixed" else text.rstrip("0").rstrip("."))

    def inside(self, draw, most=None):
        return self.comma.join(self.number(draw, most or self.most) for _ in range(3))

    def slots(self, text):
        """Where numbers stand: begin and end."""
        pattern = r"(?<=\])[0-9]{9}" if self.bins else r"(?<=<)[^<>]*(?=>)"
        return [match.span() for match in re.finditer(pattern, text)]

    def fill(self, skeleton, insides):
        insides = iter(insides)
        return re.sub("<>", lambda _: self.open + next(insides) + self.close, skeleton)

    def text(self, skeleton, draw, most=None):
        return self.fill(
            skeleton, [self.inside(draw, most) for _ in range(skeleton.count("<>"))]
        )


class Cell(Exception):
    """What a cell is, where it is not that all went well."""


def loaded(folder):
    packed = folder / "tokenizer.json.gz"
    if packed.exists():
        import gzip

        return tokenizers.Tokenizer.from_str(
            gzip.decompress(packed.read_bytes()).decode()
        )
    return tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))


def require(holds, problem):
    if not holds:
        raise Cell(f"WRONG: {problem}")


class Run:
    """One tokenizer under one encoding."""

    def __init__(self, drift, folder, encoding, range_angstrom, work):
        self.drift, self.folder, self.encoding, self.range, self.work = (
            drift,
            folder,
            encoding,
            range_angstrom,
            work,
        )
        self.base = loaded(folder)
        self.draw = random.Random(f"{folder.name} {encoding.name}")
        self.spent = {}

    def run(self, *words, on=None):
        self.last = words
        command = [self.drift, *map(str, words)]
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = {
            **os.environ,
            "RAYON_NUM_THREADS": os.environ.get("RAYON_NUM_THREADS", "1"),
        }
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=self.work, env=environment
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.spent = {
            "wall": time.monotonic() - began,
            "cpu": after.ru_utime - before.ru_utime,
            "peak": after.ru_maxrss,
        }
        return done

    def wanted(self, *words):
        """What a run prints that succeeds; a refusal is a cell of its own."""
        done = self.run(*words)
        if done.returncode == 0:
            return done.stdout
        require(done.returncode == 2, f"exit {done.returncode}: {done.stderr[-300:]}")
        lines = [
            line for line in done.stderr.splitlines() if line.startswith("drift: ")
        ]
        require(len(lines) == 1, f"{len(lines)} lines: {done.stderr[-300:]}")
        again = self.run(*words)
        require(again.stderr == done.stderr, "another message in the second run")
        raise Cell(lines[0])

    def tokens(self, tokenizer, text):
        encoded = tokenizer.encode(text, add_special_tokens=False)
        return list(zip(encoded.ids, encoded.offsets))

    def slots_of(self, tokenizer, text):
        """By slot, where its FREE tokens end behind its begin."""
        tokens = self.tokens(tokenizer, text)
        found = []
        for begin, end in self.encoding.slots(text):
            found.append(
                [
                    stop - begin
                    for _, (start, stop) in tokens
                    if begin <= start and stop <= end and start < stop
                ]
            )
        return found

    # Verbs.

    def inspect(self):
        texts = [
            self.encoding.text(skeleton, self.draw) for skeleton in skeletons().values()
        ]
        texts += [f"[CONFORMER]{text}[/CONFORMER]" for text in texts]
        while len(texts) < 76:
            texts.append(
                self.encoding.text(
                    self.draw.choice(list(skeletons().values())),
                    self.draw,
                    self.draw.choice([1, 20, 99]),
                )
            )
        words = [
            "inspect",
            "--tokenizer",
            self.folder,
            "--encoding",
            self.encoding.name,
            *texts,
            "--json",
        ]
        reports = json.loads(self.wanted(*words))
        for text, report in zip(texts, reports, strict=True):
            tokens, slots = self.tokens(self.base, text), self.encoding.slots(text)
            free = lambda span: any(
                begin <= span[0] and span[1] <= end for begin, end in slots
            )  # noqa: E731
            expected = [(one, "free" if free(span) else "copy") for one, span in tokens]
            got = [(token["id"], token["class"]) for token in report["tokens"]]
            require(got == expected, f"ids or classes of {text}")
        return f"{len(texts)} texts"

    def corpus(self):
        path = self.work / f"corpus-{self.encoding.name.split(':')[0]}.jsonl"
        if not path.exists():
            draw = random.Random(7)
            with path.open("w") as out:
                for at in range(120):
                    smiles = SMILES[at % len(SMILES)]
                    text = self.encoding.text(skeletons()[smiles], draw)
                    out.write(
                        json.dumps(
                            {"canonical_smiles": smiles, "embedded_smiles": text}
                        )
                        + "\n"
                    )
        return path

    def fit(self, folder=None):
        folder = folder or self.folder
        tokenizer = loaded(folder)
        words = [
            "fit",
            "--tokenizer",
            folder,
            "--encoding",
            self.encoding.name,
            "--corpus",
            self.corpus(),
            "--no-classes",
            "--json",
        ]
        result = json.loads(self.wanted(*words))["results"][0]
        texts = [
            f"[CONFORMER]{json.loads(line)['embedded_smiles']}[/CONFORMER]"
            for line in self.corpus().open()
        ]
        replayed = [self.replays(tokenizer, text) for text in texts]
        chosen = self.harm(replayed, self.free(tokenizer, result["placeholder"]))
        draw = random.Random(11)
        for _ in range(300):
            placeholder = self.encoding.inside(draw, draw.choice([1, 9, 99]))
            if self.forces(tokenizer, placeholder):
                continue
            harm = self.harm(replayed, self.free(tokenizer, placeholder))
            require(
                chosen <= harm, f"{placeholder} does less harm: {harm}, not {chosen}"
            )
        return f"{result['placeholder']}"

    def free(self, tokenizer, placeholder):
        return len(
            self.slots_of(
                tokenizer, self.encoding.fill("[C]<>[C]<>", [placeholder] * 2)
            )[1]
        )

    def crossed(self, tokenizer, text):
        """By slot, whether a token holds a part of it and something else."""
        tokens = self.tokens(tokenizer, text)
        out = []
        for begin, end in self.encoding.slots(text):
            reaches = lambda span: (
                max(begin, span[0]) < min(end, span[1])
                and not (begin <= span[0] and span[1] <= end)
            )  # noqa: E731
            out.append(any(reaches(span) for _, span in tokens))
        return out

    def forces(self, tokenizer, placeholder):
        return any(
            self.crossed(tokenizer, self.encoding.fill("[C]<>[C]<>", [placeholder] * 2))
        )

    def replays(self, tokenizer, text):
        """By slot: its text, where its FREE tokens end, and whether it is lost whatever the placeholder."""
        slots = self.encoding.slots(text)
        ends = self.slots_of(tokenizer, text)
        return [
            (text[a:b], found, lost)
            for (a, b), found, lost in zip(slots, ends, self.crossed(tokenizer, text))
        ]

    def harm(self, replayed, free):
        """Unparsable blocks, RMSD above a thousandth of an Å, junk slots."""
        unparsable = junk = 0
        rmsds = []
        for conformer in replayed:
            squares, readable = 0.0, True
            for inside, ends, lost in conformer:
                junk += max(0, free - len(ends))
                left = (
                    inside
                    if free >= len(ends)
                    else inside[: ends[free - 1]]
                    if free
                    else ""
                )
                numbers = left.split(",")
                if lost or (left != inside and self.encoding.bins):
                    ok = False
                elif self.encoding.bins:
                    ok = True
                else:
                    ok = len(numbers) == 3 and all(
                        re.fullmatch(r"-?[0-9]+(\.[0-9]*)?", one) for one in numbers
                    )
                if not ok:
                    unparsable, readable = unparsable + 1, False
                elif not self.encoding.bins:
                    squares += (float(numbers[2]) - float(inside.split(",")[2])) ** 2
            if readable:
                rmsds.append((squares / len(conformer)) ** 0.5)
        rmsd = sum(rmsds) / len(rmsds) if rmsds else 0.0
        return unparsable, round(max(0.0, rmsd - 1e-3), 9), junk

    def grammar(self, folder=None):
        folder = folder or self.folder
        tokenizer = loaded(folder)
        words = [
            "export-grammar",
            "--tokenizer",
            folder,
            "--format",
            "json",
            "--smiles",
            self.molecules(),
            "-o",
            "grammar.jsonl",
        ]
        # An extended tokenizer knows its encoding by what lies beside it.
        words += ["--encoding", self.encoding.name] if folder == self.folder else []
        eos = next(
            (
                t
                for t in ("<|endoftext|>", "</s>", "<eos>", "<|end_of_text|>")
                if tokenizer.token_to_id(t) is not None
            ),
            None,
        )
        words += ["--eos", eos] if eos else []
        self.wanted(*words)
        lines = [json.loads(line) for line in (self.work / "grammar.jsonl").open()]
        require(len(lines) == len(SMILES), f"{len(lines)} grammars")
        for at in range(200):
            line = lines[at % len(lines)]
            prompt = f"[SMILES]{line['smiles']}[/SMILES]"
            most = self.draw.choice([1, 12, 99])
            answer = f"[CONFORMER]{self.encoding.text(line['skeleton'], self.draw, most)}[/CONFORMER]"
            require(
                accepts(line["grammar"], self.answer(tokenizer, prompt, answer)),
                f"{answer} is not accepted",
            )
            walked = walk(line["grammar"], self.draw)
            text = tokenizer.decode(walked, skip_special_tokens=False).replace(" ", "")
            text = text[text.index("[CONFORMER]") :]
            require(
                self.answer(tokenizer, prompt, text) == walked,
                f"{text} has other tokens than its walk",
            )
        return "200 texts, 200 walks"

    def answer(self, tokenizer, prompt, answer):
        """The ids behind the prompt of prompt and answer as one text."""
        return [
            one
            for one, (_, end) in self.tokens(tokenizer, prompt + answer)
            if end > len(prompt)
        ]

    def molecules(self):
        path = self.work / "molecules.smi"
        path.write_text("\n".join(SMILES) + "\n")
        return path

    def extension(self, kind):
        tokens = {"fused": 9, "separate": 11}[kind]
        least = {"fused": 4, "separate": 4}[kind]
        out = (
            self.work / f"{self.folder.name}-{self.encoding.name.split(':')[0]}-{kind}"
        )
        words = [
            "train-tokenizer",
            "--base",
            self.folder,
            "--kind",
            kind,
            "--encoding",
            self.encoding.name,
            "--corpus",
            self.corpus(),
        ]
        words += [
            "-o",
            out,
            "--tokens-per-block",
            least if self.encoding.bins else tokens,
        ]
        words += [] if self.encoding.bins else ["--range", self.range]
        self.wanted(*words)
        spent = dict(self.spent)
        report = json.loads((out / "report.json").read_text())
        extended = loaded(out)
        old, new = (
            self.base.get_vocab(with_added_tokens=True),
            extended.get_vocab(with_added_tokens=True),
        )
        require(
            all(new.get(text) == one for text, one in old.items()),
            "an old token has another id",
        )
        for text in PLAIN + [f"{a} {b}" for a, b in zip(PLAIN, reversed(PLAIN))]:
            both = [
                tokenizer.encode(text, add_special_tokens=False).ids
                for tokenizer in (self.base, extended)
            ]
            require(both[0] == both[1], f"{text!r} takes other tokens")
        for at in range(200):
            skeleton = list(skeletons().values())[at % len(SMILES)]
            insides = [self.held(report) for _ in range(skeleton.count("<>"))]
            text = f"[CONFORMER]{self.encoding.fill(skeleton, insides)}[/CONFORMER]"
            spans = [span for _, span in self.tokens(extended, text)]
            around = len(self.encoding.open), len(self.encoding.close)
            for begin, end in self.encoding.slots(text):
                begin, end = begin - around[0], end + around[1]
                count = sum(begin <= a and b <= end and a < b for a, b in spans)
                touching = sum(a < end and b > begin for a, b in spans)
                require(
                    count == touching == report["tokens_per_block"],
                    f"{count} tokens in {text[begin:end]}",
                )
        return f"{report['tokens_per_block']} tokens, {report['new_tokens']} new, {spent['cpu']:.0f} s of CPU"

    def held(self, report):
        """A block that an extension promises its tokens for."""
        while True:
            inside = self.encoding.inside(self.draw, self.range - 0.001)
            decimals = [len(one.partition(".")[2]) for one in inside.split(",")]
            if self.encoding.bins or min(decimals) >= report["fewest_decimals"]:
                return inside

    # Refusals.

    def cured(self, line):
        """Runs what a refusal advises."""
        given = re.search(r"give ([0-9]+)(?: or [0-9]+)* tokens a block", line)
        if given:
            words = list(map(str, self.last))
            words[words.index("--tokens-per-block") + 1] = given[1]
            done = self.run(*words)
            require(done.returncode == 0, f"{given[0]}: {done.stderr[-300:]}")
            return [given[0]]
        commands = re.findall(r"`(drift [^`]*)`", line)
        for command in commands:
            done = self.as_printed(command)
            require(
                done.returncode == 0,
                f"the remedy `{command}` ends in {done.returncode}: {done.stderr[-300:]}",
            )
        return commands

    def as_printed(self, command):
        """Runs a command as a reader copies it from a message, in another folder."""
        programs, elsewhere = self.work / "programs", self.work / "elsewhere"
        for folder in (programs, elsewhere):
            folder.mkdir(exist_ok=True)
        if not (programs / "drift").exists():
            (programs / "drift").symlink_to(self.drift)
        environment = {
            **os.environ,
            "RAYON_NUM_THREADS": os.environ.get("RAYON_NUM_THREADS", "1"),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        }
        return subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, cwd=elsewhere, env=environment
        )

    def can_write(self):
        """Whether `tokenizers` itself keeps every character of texts."""
        for skeleton in skeletons().values():
            text = self.encoding.text(skeleton, self.draw)
            decoded = self.base.decode(
                self.base.encode(text, add_special_tokens=False).ids,
                skip_special_tokens=False,
            )
            if decoded.replace(" ", "") != text:
                return False
        return True

    def cell(self, verb, *arguments):
        try:
            return (
                f"works: {getattr(self, verb)(*arguments)}",
                True,
                bool(verb != "inspect"),
            )
        except Cell as cell:
            line = str(cell)
            if line.startswith("WRONG"):
                return line, False, False
            try:
                commands = self.cured(line)
            except Cell as wrong:
                return f"{wrong} ({line})", False, False
            if commands:
                return f"refused: {line.removeprefix('drift: ')}", True, True
            if not self.can_write():
                return f"cannot write: {line.removeprefix('drift: ')}", True, False
            return f"NO WAY: {line}", False, False


def skeletons():
    """The skeletons of SMILES, as the users' encoder spells them."""
    return {
        "CC=O": "[C]<>[C]<>=[O]<>",
        "C[C@H](N)C(=O)O": "[C]<>[C@H]<>([N]<>)[C]<>(=[O]<>)[O]<>",
        "c1ccncc1": "[c]<>1[c]<>[c]<>[n]<>[c]<>[c]<>1",
        "F/C=C/Cl": "[F]<>/[C]<>=[C]<>/[Cl]<>",
        "F/C=C\\Cl": "[F]<>/[C]<>=[C]<>\\[Cl]<>",
        "[NH3+]CC([O-])=O": "[NH3+]<>[C]<>[C]<>([O-]<>)=[O]<>",
        "CC(C)(C)OC(=O)N1CCC(CC1)C#N": "[C]<>[C]<>([C]<>)([C]<>)[O]<>[C]<>(=[O]<>)[N]<>1[C]<>[C]<>[C]<>([C]<>[C]<>1)[C]<>#[N]<>",
        "[Na+].[Cl-]": "[Na+]<>.[Cl-]<>",
    }


def edges(table, at, place):
    """Legal ids, each with the entry and the place behind it (docs/grammars.md)."""
    block, n = table["block"], len(table["block"]["offsets"]) - 1
    segment = lambda at: table["segments"][table["order"][at]]  # noqa: E731

    def row(edges, r):
        return zip(
            *(
                edges[name][edges["offsets"][r] : edges["offsets"][r + 1]]
                for name in ("ids", "targets")
            )
        )

    def inside(at, place):
        return {
            one: (at, None if to == -3 else to)
            for one, to in row(segment(at), place - n)
        }

    if place >= n:
        return inside(at, place)
    legal = {
        one: (at, to) if to >= 0 else (at + 1, segment(at + 1)["roots"][-1 - to])
        for one, to in row(block, place)
    }
    if block["exits"][place] >= 0:
        legal |= inside(at + 1, segment(at + 1)["roots"][block["exits"][place]])
    return legal


def accepts(table, ids):
    at, place = 0, table["segments"][table["order"][0]]["roots"][0]
    for one in ids:
        if place is None:
            return False
        legal = edges(table, at, place)
        if one not in legal:
            return False
        at, place = legal[one]
    return place is None


def walk(table, draw):
    at, place = 0, table["segments"][table["order"][0]]["roots"][0]
    ids = []
    while place is not None:
        legal = edges(table, at, place)
        ids.append(draw.choice(sorted(legal)))
        at, place = legal[ids[-1]]
    return ids


VERBS = [
    "inspect",
    "fit",
    "grammar",
    "fused",
    "separate",
    "fit of separate",
    "grammar of fused",
]


def cells(run):
    """A cell for each verb, and whether there is a way."""
    out, way = {}, False
    made = {
        kind: run.work / f"{run.folder.name}-{run.encoding.name.split(':')[0]}-{kind}"
        for kind in ("fused", "separate")
    }
    for verb in VERBS:
        if verb in ("fused", "separate"):
            cell = run.cell("extension", verb)
        elif " of " in verb:
            name, kind = verb.split(" of ")
            if not (made[kind] / "tokenizer.json").exists():
                continue
            cell = run.cell(name, made[kind])
        else:
            cell = run.cell(verb)
        text, right, is_way = cell
        out[verb] = (text, right)
        way |= is_way
        print(
            f"{run.folder.name:16} {run.encoding.name:24} {verb:18} {text}", flush=True
        )
    if not way and run.can_write():
        out["a way"] = ("NO WAY", False)
        print(f"{run.folder.name:16} {run.encoding.name:24} NO WAY", flush=True)
    return out


def of_tokenizer(args, work, folder):
    """The cells of one tokenizer: name, encoding, cells."""
    work = work / folder.name
    work.mkdir(parents=True, exist_ok=True)
    drift = str(pathlib.Path(args.drift).resolve())
    rows = []
    for name in args.encoding or ["fixed", "stripped", BINS]:
        encoding = Encoding(name, args.range - 0.001)
        run = Run(drift, folder.resolve(), encoding, args.range, work)
        rows.append((folder.name, name, cells(run)))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("drift")
    parser.add_argument("tokenizers", type=pathlib.Path)
    parser.add_argument("--only", action="append", default=[], help="a folder by name")
    parser.add_argument("--encoding", action="append", default=[])
    parser.add_argument(
        "--range", type=int, default=1, help="of the extensions, in whole Å"
    )
    parser.add_argument(
        "--table", type=pathlib.Path, help="a file for the table, Markdown"
    )
    parser.add_argument("--work", type=pathlib.Path, help="a folder that stays")
    args = parser.parse_args()
    folders = [
        folder
        for folder in sorted(args.tokenizers.iterdir())
        if folder.is_dir() and (not args.only or folder.name in args.only)
    ]
    with tempfile.TemporaryDirectory() as scratch:
        work = (args.work or pathlib.Path(scratch)).resolve()
        one = functools.partial(of_tokenizer, args, work)
        # drift runs on one thread, so every core has a tokenizer.
        with concurrent.futures.ProcessPoolExecutor() as pool:
            rows = [row for rows in pool.map(one, folders) for row in rows]
    wrong = sum(not right for _, _, found in rows for _, right in found.values())
    if args.table:
        head = (
            "| tokenizer | encoding | "
            + " | ".join(VERBS)
            + " |\n| --- | --- |"
            + " --- |" * len(VERBS)
            + "\n"
        )
        lines = [
            f"| {name} | `{e}` | "
            + " | ".join(
                found.get(verb, ("-", True))[0].split(":")[0] for verb in VERBS
            )
            + " |"
            for name, e, found in rows
        ]
        args.table.write_text(head + "\n".join(lines) + "\n")
    print(f"{len(rows)} files and encodings, {wrong} cells wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
