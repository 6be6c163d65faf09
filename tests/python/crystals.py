"""Counts faults of CrystalReasoner's published outputs by regular expressions, and compares the counts with `drift audit --skeleton`.

    python crystals.py DRIFT FILE.parquet…

The files are `checkpoints_merged/*/*.parquet` of github.com/wyy603/CrystalReasoner. A text with a CIF is compared in four respects: another
composition than the prompt's, `-0.00000000`, repeated lines, and lines off the format. No code of drift is used for the count.
Needs pandas and pyarrow.
"""

import collections
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import pandas

NUMBER = r"\d+\.\d{8}"
# An angle of five significant digits, without zeros at its end.
ANGLE = r"(?:[1-9]\d{2}(?:\.\d{0,2}[1-9])?|[1-9]\d(?:\.\d{0,3}[1-9])?|[1-9](?:\.\d{0,4}[1-9])?)"
FRACTION = r"(?:0\.\d{8}|1\.0{8})"
LINES = [
    "P1",
    f"{NUMBER} {NUMBER} {NUMBER}",
    f"{ANGLE} {ANGLE} {ANGLE}",
    rf"[A-Z][a-z]? 1 {FRACTION} {FRACTION} {FRACTION}",
]


def reduced(counts):
    divisor = math.gcd(*counts.values()) or 1
    return {element: count // divisor for element, count in counts.items()}


def counted(text, formula):
    """The faults of a text; none if it has no CIF."""
    cif = re.search(r"<CIF>(.*?)</CIF>", text, re.S)
    if cif is None:
        return None
    lines = cif[1].split("\n")
    wanted = {element: int(count) for element, count in re.findall(r"([A-Z][a-z]?)(\d+)", formula)}
    found = collections.Counter(line.split()[0] for line in lines[3:] if line.split())
    are_legal = len(lines) > 3 and all(
        re.fullmatch(LINES[min(at, 3)], line) for at, line in enumerate(lines)
    )
    faults = {
        "composition": reduced(wanted) != reduced(found),
        "minus_zero": "-0.00000000" in cif[1],
        "repeated": len(set(lines[3:])) < len(lines[3:]),
        "format": not are_legal,
    }
    return {name for name, is_there in faults.items() if is_there}


def judged(verdict):
    """The same of a verdict of drift."""
    counts = verdict["counts"].keys()
    faults = {name for name in ("composition", "minus_zero") if name in counts}
    faults |= {"repeated"} if verdict["repeated_items"] else set()
    return faults | ({"format"} if counts & {"format", "minus_zero", "range"} else set())


def main(drift, *files):
    total = equal = 0
    for path in files:
        rows = pandas.read_parquet(path)
        texts = [responses[0] for responses in rows["responses"]]
        formulas = [truth["comp"] for truth in rows["gt"]]
        with tempfile.TemporaryDirectory() as folder:
            of = {name: pathlib.Path(folder) / name for name in ("texts.jsonl", "prompts.jsonl", "verdicts.jsonl")}
            of["texts.jsonl"].write_text("".join(json.dumps({"response": text}) + "\n" for text in texts))
            of["prompts.jsonl"].write_text("".join(json.dumps({"formula": one}) + "\n" for one in formulas))
            words = ["--skeleton", "simple-cif", "--prompts", of["prompts.jsonl"], "--verdicts", of["verdicts.jsonl"]]
            subprocess.run([drift, "audit", of["texts.jsonl"], *words, "-q"], check=True, stdout=subprocess.DEVNULL)
            verdicts = [json.loads(line) for line in of["verdicts.jsonl"].read_text().splitlines()]
        counts, differ = collections.Counter(), []
        for text, formula, verdict in zip(texts, formulas, verdicts, strict=True):
            faults = counted(text, formula)
            if faults is None:
                continue
            counts.update(["texts with a CIF", *faults])
            if faults != judged(verdict):
                differ.append((sorted(faults), sorted(judged(verdict)), verdict["faults"]))
        print(path, dict(counts), "differ:", len(differ))
        for one in differ[:4]:
            print("   ", *one)
        total += counts["texts with a CIF"]
        equal += counts["texts with a CIF"] - len(differ)
    print(json.dumps({"texts": total, "equal": equal}))


main(*sys.argv[1:])
