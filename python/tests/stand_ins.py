"""A folder with the files, models and programs that the pages name, small and made from the repository's own."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

#: Names of models in the cache of Hugging Face, and the commit that they are at.
NAMED, COMMIT = ("Qwen/Qwen3-0.6B", "org/name"), "c1899de2" + "0" * 32

#: How many molecules of the embedded corpus a corpus holds.
MOLECULES = 8

#: Answers as Slurm's ``sbatch`` does. What ``--wrap`` holds is run for each task of the array.
SBATCH = r"""#!/usr/bin/env bash
set -euo pipefail
wrapped=
for ((i = 1; i <= $#; i++)); do
    case "${!i}" in
        --array=*) array=${!i#*=} ;;
        --wrap) next=$((i + 1)); wrapped=${!next} ;;
    esac
done
if [ -n "$wrapped" ]; then
    first=${array%-*} last=${array#*-}
    for ((task = first; task <= last; task++)); do
        SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_MIN=$first SLURM_ARRAY_TASK_MAX=$last \
            SLURM_ARRAY_TASK_STEP=1 SLURM_ARRAY_TASK_COUNT=$((last - first + 1)) bash -c "$wrapped"
    done
fi
for word in "$@"; do
    [ "$word" != --parsable ] || { echo 17; exit; }
done
echo 'Submitted batch job 17'
"""


def corpus() -> list[dict[str, str]]:
    """The first conformers of the smallest molecules of the embedded corpus, two of each."""
    with gzip.open(REPOSITORY / "corpora/default.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    by_molecule: dict[str, list[dict[str, str]]] = {}
    for record in records:
        by_molecule.setdefault(record["canonical_smiles"], []).append(record)
    several = [group for group in by_molecule.values() if len(group) > 1]
    several.sort(key=lambda group: len(group[0]["embedded_smiles"]))
    return [record for group in several[:MOLECULES] for record in group[:2]]


class Folder:
    """The folder in which commands run; what a command names is put there before it runs."""

    def __init__(self, path: Path, program: Path) -> None:
        self.path, self.home = path, path.parent / "home"
        self.programs = path.parent / "programs"
        for folder in (path, self.home, self.programs):
            folder.mkdir()
        (self.programs / "drift").symlink_to(program)
        (self.programs / "sbatch").write_text(SBATCH)
        (self.programs / "sbatch").chmod(0o755)
        # `cargo doc --open` opens the page in a browser.
        (self.programs / "browser").symlink_to(shutil.which("true") or "/bin/true")
        self._cache()
        for name in ("eval", "tests"):
            (path / name).symlink_to(REPOSITORY / name)

    def environment(self) -> dict[str, str]:
        """What commands see: the programs first, a home of their own, and no network."""
        found = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "XDG_"))}
        found |= {"PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(self.home)}
        # A real home has the toolchain, which stays where it is.
        for name, folder in (("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")):
            found.setdefault(name, str(Path.home() / folder))
        found |= {"HF_HUB_OFFLINE": "1", "BROWSER": str(self.programs / "browser")}
        return found | {"RANK": "0", "WORLD_SIZE": "1"}

    def provide(self, names: set[str]) -> None:
        """Makes those of the names that a page supposes to be there."""
        for name in sorted(names & MAKERS.keys()):
            if not (self.path / name).exists():
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                MAKERS[name](self.path / name)

    def _cache(self) -> None:
        """Models by name, where ``huggingface_hub`` puts them."""
        for name in NAMED:
            folder = self.home / ".cache/huggingface/hub" / f"models--{name.replace('/', '--')}"
            (folder / "refs").mkdir(parents=True)
            (folder / "refs/main").write_text(COMMIT)
            (folder / "snapshots").mkdir()
            (folder / "snapshots" / COMMIT).symlink_to(REPOSITORY / "eval/qwen-like")


def drift(*words: str | Path) -> None:
    """Runs the program to make a stand-in."""
    from conftest import built_program

    program = built_program()
    assert program is not None
    subprocess.run([program, *words], check=True, capture_output=True)


def lines_of(path: Path, texts: Iterator[str]) -> None:
    """A file of lines."""
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")


def conformers(path: Path) -> None:
    """Training text of a few molecules."""
    lines_of(path, (json.dumps(record) for record in corpus()))


def smiles(path: Path) -> None:
    """One SMILES a line."""
    lines_of(path, iter(dict.fromkeys(record["canonical_smiles"] for record in corpus())))


def names(path: Path) -> None:
    """The molecules of an SDF by their titles."""
    lines_of(path, iter(["smiles,name", "CO,methanol"]))


def table(path: Path) -> None:
    """The corpus as the users' table of two data sets, as a frame of zstd whose only block is not compressed."""
    rows = [
        f'{at},"{record["embedded_smiles"]}",{("GEOM", "ZINC")[at % 2]}\n'
        for at, record in enumerate(corpus()[:6])
    ]
    content = ("name,enriched_text,dataset\n" + "".join(rows)).encode()
    assert len(content) < 1 << 16
    # RFC 8878: a single segment with its size in four bytes, and the header of the last block.
    head = b"\x28\xb5\x2f\xfd\xa0" + len(content).to_bytes(4, "little")
    path.write_bytes(head + (len(content) << 3 | 1).to_bytes(3, "little") + content)


def subset_table(path: Path) -> None:
    """The first molecule of the users' table in another one, of a test set."""
    rows = [f'{at},"{record["embedded_smiles"]}",loqi\n' for at, record in enumerate(corpus()[:2])]
    path.write_text("name,enriched_text,test_subset\n" + "".join(rows), encoding="utf-8")


def sdf(path: Path) -> None:
    """A conformer of methanol without its hydrogens' names: two heavy atoms, four hydrogens."""
    atoms = [
        (-0.3700, 0.0137, 0.0000, "C"),
        (0.9000, -0.5600, 0.0000, "O"),
        (-0.9300, -0.3000, 0.8900, "H"),
        (-0.9300, -0.3000, -0.8900, "H"),
        (-0.3000, 1.1000, 0.0000, "H"),
        (1.5400, 0.1600, 0.0000, "H"),
    ]
    bonds = [(1, 2), (1, 3), (1, 4), (1, 5), (2, 6)]
    text = ["methanol", "", "", f"{len(atoms):3}{len(bonds):3}  0  0  0  0  0  0  0  0999 V2000"]
    text += [f"{x:10.4f}{y:10.4f}{z:10.4f} {element:<3} 0  0" for x, y, z, element in atoms]
    text += [f"{first:3}{second:3}  1  0" for first, second in bonds]
    path.write_text("\n".join([*text, "M  END", "$$$$", ""]))


def store(path: Path) -> None:
    """drift's store of a few molecules."""
    text = path.with_suffix(".of.jsonl")
    conformers(text)
    drift("mine", text, "-o", path)


def texts(path: Path) -> None:
    """Lines as vLLM's examples write them, one text a molecule."""
    lines_of(path, (json.dumps({"smiles": one["canonical_smiles"], "text": answer(one)}) for one in corpus()))


def smoke_report(path: Path) -> None:
    """A report as 3DMolGen's smoke script writes it."""
    passes = [
        {
            "prompt_smiles": one["canonical_smiles"],
            "generated_smiles": one["canonical_smiles"],
            "decoded_text": answer(one),
        }
        for one in corpus()
    ]
    metadata = {"version": "v4.3_allowlist_smart", "processor_type": "qwen", "batch_size": 32}
    report = {
        "metadata": metadata,
        "num_passed": len(passes),
        "num_failed": 0,
        "passes": passes,
        "failures": [],
    }
    path.write_text(json.dumps(report))


def answer(record: dict[str, str]) -> str:
    """A prompt with its answer, as a model decodes to."""
    prompt = f"[SMILES]{record['canonical_smiles']}[/SMILES]"
    return f"{prompt}[CONFORMER]{record['embedded_smiles']}[/CONFORMER]<|endoftext|>"


def record_of_eval(path: Path) -> None:
    """The record of a small evaluation."""
    folder = path.parent / f".{path.stem}"
    drift("eval", "--samples", "2", "--lp", "none,automaton", "--quiet", "-o", folder)
    shutil.copy(folder / "record.json", path)


def copied(source: str) -> Callable[[Path], None]:
    """A file or folder of the repository, copied, so that what is written there stays there."""

    def make(path: Path) -> None:
        if (REPOSITORY / source).is_dir():
            shutil.copytree(REPOSITORY / source, path)
        else:
            shutil.copy(REPOSITORY / source, path)

    return make


def trace(name: str) -> Callable[[Path], None]:
    """A trace in the layout of torch.profiler, unpacked where its name says so."""

    def make(path: Path) -> None:
        packed = (REPOSITORY / "tests/fixtures/traces" / name).read_bytes()
        path.write_bytes(packed if path.suffix == ".gz" else gzip.decompress(packed))

    return make


def rdkit_folder(path: Path) -> None:
    """A folder laid out as GEOM's, with a file for each of eight shards at least."""
    with tarfile.open(REPOSITORY / "tests/fixtures/rdkit_folder.tar.gz") as archive:
        archive.extractall(path.parent, filter="data")
    for pickle in list((path / "drugs").glob("*.pickle")):
        for copy in (1, 2):
            shutil.copy(pickle, pickle.with_stem(f"{pickle.stem}_{copy}"))


def resized(path: Path) -> None:
    """A model with rows for the tokens of an extension."""
    drift("extend-model", "--model", REPOSITORY / "eval/qwen-like", "--tokenizer", EXTENDED, "-o", path)


def spare_rows(path: Path) -> None:
    """A model with rows of no token, as Qwen3 has them."""
    own = REPOSITORY / "eval/qwen-like"
    drift("extend-model", "--model", own, "--tokenizer", own, "--pad-to-multiple-of", "2048", "-o", path)


#: An extension of the tokenizer of ``eval/qwen-like``.
EXTENDED = REPOSITORY / "tokenizers/qwen-like-fused"

MAKERS: dict[str, Callable[[Path], None]] = {
    "MODEL": copied("eval/qwen-like"),
    "after.json": record_of_eval,
    "after.pt.trace.json": trace("graphs.pt.trace.json.gz"),
    "before.json": record_of_eval,
    "before.pt.trace.json": trace("processor.pt.trace.json.gz"),
    "conformers.h5": store,
    "conformers.jsonl": conformers,
    "conformers.sdf": sdf,
    "corpus.jsonl": conformers,
    "extended": copied("tokenizers/qwen-like-fused"),
    "geom.h5": store,
    "merged_test.csv": subset_table,
    "merged_train.csv.zst": table,
    "model": copied("eval/qwen-like"),
    "molecules.smi": smiles,
    "names.csv": names,
    "path/to/model": spare_rows,
    "rdkit_folder": rdkit_folder,
    "rdkit_folder.tar.gz": copied("tests/fixtures/rdkit_folder.tar.gz"),
    "resized": resized,
    "smoke_report.json": smoke_report,
    "test.h5": store,
    "test.smi": smiles,
    "test_confs.jsonl": conformers,
    "test.jsonl": conformers,
    "texts-*.jsonl": lambda path: texts(path.with_name("texts-0.jsonl")),
    "texts.jsonl": texts,
    "train.jsonl": conformers,
    "with-processor.pt.trace.json.gz": trace("processor.pt.trace.json.gz"),
    "without.pt.trace.json.gz": trace("graphs.pt.trace.json.gz"),
}
