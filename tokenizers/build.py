#!/usr/bin/env python3
"""Make the two embedded tokenizers, qwen-like and llama-like.

    pip install -r requirements.txt
    python build.py [--check]

Writes qwen-like/ and llama-like/ beside this script; the same bytes at each run. With --check nothing is written and
the exit status says whether the files are those that the script makes.

Both are byte-level BPE. A vocabulary has four parts:
1. the 256 bytes;
2. `BORDERS`: merges that cut the borders of coordinates and the atom symbols as the real tokenizers do, found by observing
   these from outside (borders.py);
3. merges learned here, from SMILES that this script writes and from `PROSE`; a pair that would cross a cut of part 2 is
   never learned;
4. llama-like only: every number of two or three digits.
"""

import argparse
import collections
import json
import pathlib
import random
import sys

from tokenizers import Regex, Tokenizer, pre_tokenizers

import borders

HERE = pathlib.Path(__file__).resolve().parent
SEED = 20261101
MOLECULES = 40_000
FROM_SMILES = 820
FROM_PROSE = 240

# In order of rank. llama-like has all of them, qwen-like all but `(|=`.
BORDERS = r"""
    #|[ (|$ )|) )|( )|. )|: )|[ +|+ +|: -|- -|> .|. .|, ,|- ,|, =|[ >|# >|$ >|% >|( (|[ (|: (|- >|\ @|@ A|L
    A|c A|g A|l A|m A|r A|s A|t B|e B|r C|H C|a C|e C|l C|o C|r C|s E|r E|s E|u F|e F|r G|e H|H H|e H|o I|n
    L|a L|i L|u M|o N|a N|e N|o O|H O|s P|H P|a P|o P|r P|t R|e S|H S|P S|c S|e S|i S|m S|n T|B T|H T|e T|h
    W|H [|A A|u [|B B|i B|a B|H [|C C|u C|d [|D [|F F|H [|G G|a [|H [|I I|r I|H [|K K|r K|H [|L [|M M|d [|N
    N|i N|d N|b N|H [|P P|u [|R R|u R|h R|a [|S S|r [|T T|i T|a [|U [|V [|W [|X [|Y [|Z [|b [|c [|n [|o [|p
    ]|( (|\ (|/ (|% ]|) )|/ )|- >|) -|% ]|- ]|. ]|/ /|% >|/ ]|: :|[ :|% >|: ]|= =|% >|= ]|[ a|s s|e s|i [|s
    t|e ))|) )|\ )|= )|% )|$ )|# ))|. .|[ (|. >|. .|% --|- --|> >|- >|[ [|* -|[ (/|[ *|- *|: ->|$ ->|[ ..|.
    .|- ,|. ,,|, -|. .|-- --|, -|, >|). >|): ]|)) ]|). ]|)[ ]|=[ ])|- ])|/ ].|[ ))|)) ))|[ ))|: ))|/ /|[ ))|-
    ))|( (|~ (|= (|# ))|). ).|[ ++|]= ,|... ,,|,, --|-- ..|., ..|.. ]|)). ++|] ]|\ \|[ ]|)( ]|< <|- ]|): +|]
    ]|))) ]|% ]|$ ++|+
""".split()

# `{}` takes a substituent, `R` and `Q` are ring digits. The next fragment follows the last character.
LINKS = """C CC CCC CCCC CCCCC C(C) C(C)(C) CC(C) C(CC) O S N N(C) N(CC) CO OC COC OCC OCCO CCO CCOC CN NC CNC CCN NCC CCNC
    CN(C) N(C)C N(C)CC CS SC CCS CSC C=C /C=C/ /C=C\\ C=CC C/C=C/C C#C C#CC C(=O) CC(=O) CCC(=O) C(=O)N NC(=O) CNC(=O)
    C(=O)NC C(=O)NCC NC(=O)C CC(=O)N C(=O)N(C) N(C)C(=O) C(=O)O OC(=O) CC(=O)O COC(=O) OCC(=O) OCC(=O)N C(=O)C S(=O)(=O)
    NS(=O)(=O) S(=O)(=O)N S(=O)(=O)N(C) CS(=O)(=O) S(=O) NC(=O)N NC(=S)N C(=S)N C(=N)N C=NN /C=N/N N=C C(=O)N/N=C/ C(=O)NN
    [C@@H](C) [C@H](C) [C@@H](O) [C@H](O) [C@@H](N) [C@H](N) [C@@H](CC(C)C) [C@H](CO) [C@](C)(O) [C@@](C)(O) [C@H](C)C
    C(O) C(N) C(F)(F) C(O)C C(C)C C(C#N) C(=O)C(=O)N OP(=O)(O) P(=O)(O)O [Si](C)(C) [Se] B(O) C({}) N({}) C(C)({}) CC({})
    C(=O)N({}) N({})C(=O) CN({})C [C@@H]({}) [C@H]({}) [C@@H]({})C(=O)N [C@H]({})NC(=O) C(=C({})C) [N+](C)(C) [NH2+] [NH+](C)
    """.split()
RINGS = """cRccc({})ccR cRcccc({})cR cRccccR{} cRc({})cccR cRcc({})ccR{} cRc({})ccccR{} cRccc({})c({})cR cRcc({})cc({})cR
    cRc(F)cccR{} cRccc(Cl)ccR cRcc(OC)cc({})cR cRccncR cRcccncR cRccnc({})cR cRncccnR cRnc({})ncR{} cRcnc({})ncR cRnc({})ccnR
    nRccccR=O nRcccR cRccc[nH]R cRc[nH]ccR cRcc({})n[nH]R cRnn({})ccR cRn[nH]c({})nR cRnc({})noR cRnoc({})nR cRnnc({})oR
    cRnnc({})sR cRcscR cRccsR cRcsc({})nR cRnc({})csR cRc({})sccR cRcocR cRccoR cRoc({})ccR cRcc({})onR cRnnnnR{} nRcc({})nnR
    nRcnccR nRnc({})ccR nRc({})ncR{} nRc(=O)n({})cR cRc(=O)[nH]c(=O)[nH]R CRCCCCCR CRCCCCR CRCCR CRCC({})CCR CRCCC({})CCR CRCCNCCR
    CRCCN({})CCR CRCCCN({})CR CRCCCNR{} CRCCCCNR{} NRCCN({})CCR NRCCOCCR NRCCCCR NRCCCR NRCCCCCR NRCCC({})CCR NRCC({})CR CRCOCCOR
    CRCCOCCR CRCCOCR CR=CCCCCR CRCC=CCR CR(=O)CCCCR NRC(=O)CCCR NRC(=O)NCR=O NRC(=O)C({})CR=O CRSCC(=O)NR{} [C@@H]RCCCNR{}
    [C@H]RCCN({})CR [C@@H]RCC[C@H]({})CCR [C@@]R(C)CCCCR [C@]R({})CCNCR cRcccQc(cR)OCOQ cRcccQ[nH]cccQcR cRcccQnccccQcR
    cRcccQnc({})[nH]cQcR cRcccQoc({})ccQcR cRcccQsc({})ncQcR cRccccQcccccRQ cRcccQc(cR)OCCOQ cRncQcccccQc(=O)n({})R
    cRc[nH]cQcccccQR cRncQc({})ncncQn({})R cRcc(=O)cQcccccQoR CRCcQcccccQCN({})R [n+]Rccc({})ccR cRcc[n+]([O-])ccR
    CRCQCCCRCQ""".split()
ENDS = """C CC CCC C(C)C C(C)(C)C CC(C)C CCCC F Cl Br I O OC OCC OC(C)=O N NC N(C)C N(CC)CC NC(C)=O NC(N)=O S SC C#N C#C C=C CC=C
    C(F)(F)F OC(F)(F)F OC(F)F C(F)F C(=O)O C(=O)[O-] C(=O)OC C(=O)OCC C(N)=O C(=O)N(C)C C(C)=O C=O [N+](=O)[O-] [NH3+] [NH+](C)C
    [N+](C)(C)C S(C)(=O)=O S(N)(=O)=O S(=O)(=O)[O-] S(=O)(=O)O C(=O)NN C(=N)N NC(=N)N N=[N+]=[N-] NO C(=O)NO ON=C P(=O)(O)O OP(=O)(O)O
    B(O)O [Si](C)(C)C [N+]#[C-] [2H] C([2H])([2H])[2H] [13CH3] CO CCO CCN CN CCCl CCBr CC(=O)O CC#N CCOC COC COCC CSC CC(N)=O CcRcccccR
    CcRccc(F)ccR cRcccccR cRccc(Cl)ccR cRccnccR""".split()
IONS = ".[Na+] .[K+] .[Cl-] .[Br-] .Cl .O .[Li+] .[Ca+2] .[I-] .[Zn+2] .[Mg+2]".split()

# So that a vocabulary also holds common words, as any real one does: a logit processor has to keep a model away from them.
PROSE = """
A molecule is a graph of atoms and bonds, and a conformer is one way to place these atoms in space. The same molecule has
many conformers: single bonds turn, rings pucker, and each change of shape has an energy. A language model can write a
conformer as a text in which every atom is followed by three numbers, its coordinates. The text must name the same atoms
in the same order as the prompt did, with the same bonds between them, or the answer is of no use to anyone. That is a
strict demand for a model that writes one token after another, and so there are programs that help it: they look at what
has been written, decide which tokens may come next, and take all the others away before the model draws one of them.
How long is a number? For people this is a question about digits, for a model it is a question about tokens. Some
tokenizers cut a number into single digits, others into groups of two or three, and the point, the comma and the sign are
joined with what stands beside them whenever the training text had them together often enough. If a program expects more
tokens than the number needs, the places that are left over have to be filled with something, and the model will put there
whatever seems likely: more digits, a letter, part of a word. If it expects fewer, the end of the last number is lost. In
both cases the model then reads its own mistake and goes on from there, which is worse than the mistake itself. These
errors are small when they begin and large when they are found, because nobody looks at every line of the output.
The first thing to do is to count. Take a large number of real conformers, write them as the training data were written,
cut them with the tokenizer that will be used, and keep the length of every block where it stands, never alone. The second
thing is to choose a placeholder, or better none at all, and to say how good the choice is and how much better any other
choice could have been. The third is to measure again with a model that was not part of the choice: start from the same
seed, write the same molecules with and without help, and compare bond lengths, angles and the distance to the reference.
Report what was measured, on which machine, with how many samples, and what the range of error is. Numbers without a range
are opinions. When two results differ by less than their error, say that they are equal and take the simpler method.
Good tools are quiet: they read the file that they are given, check it, tell the user what is wrong with it and where, and
return a result that is the same on every machine and in every year. They should work without a network, without a key and
without asking. Water is a small molecule; it has two hydrogen atoms and one oxygen atom. Carbon has four neighbours,
nitrogen three, and the shape around each of them follows from this. A protein is a long chain, a drug is a short one with
rings, a crystal repeats itself. Heat makes all of them move. What we draw on paper is only a picture of the average.
"""

BPE_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TAGS = ["[SMILES]", "[/SMILES]", "[CONFORMER]", "[/CONFORMER]"]


def pick(draw, items):
    return items[int(draw.random() * len(items))]


def molecule(draw):
    """A random text in the manner of SMILES: chains and rings, substituents up to two levels deep."""

    def filled(fragment, depth, ring):
        numbered = fragment.replace("R", str(ring)).replace("Q", str(ring + 1))
        parts = numbered.split("{}")
        return parts[0] + "".join(chain(depth + 1, ring + 2) + part for part in parts[1:])

    def chain(depth, ring):
        text = ""
        for _ in range(1 + int(draw.random() * (4 if depth == 0 else 2))):
            fragment = pick(draw, RINGS if draw.random() < 0.35 else LINKS)
            if depth >= 2 and "{}" in fragment:
                continue
            text += filled(fragment, depth, ring)
        end = pick(draw, ENDS).replace("R", str(ring))
        return text + end if depth > 0 or draw.random() < 0.8 else text

    text = chain(0, 1)
    if draw.random() < 0.03:
        text += pick(draw, IONS)
    return text


def byte_letters():
    """The letter that stands for each byte in a byte-level vocabulary: itself if printable, else one from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    spare = iter(range(0x100, 0x200))
    return [chr(b) if b in printable else chr(next(spare)) for b in range(256)]


def pre_tokenizer(digits):
    split = pre_tokenizers.Split(Regex(BPE_PATTERN % digits), "isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def words(digits, texts):
    """The pre-tokens that hold a letter, with their counts."""
    splitter = pre_tokenizer(digits)
    counts = collections.Counter()
    for text in texts:
        counts.update(w for w, _ in splitter.pre_tokenize_str(text) if any(c.isalpha() for c in w))
    return counts


def learned(digits, merges):
    """The merges of part 3, and how often the last one was seen in each text."""
    draw = random.Random(SEED)
    smiles, rare_smiles = learn(words(digits, (molecule(draw) for _ in range(MOLECULES))), merges, FROM_SMILES)
    prose, rare_prose = learn(words(digits, [PROSE]), merges + smiles, FROM_PROSE)
    return smiles + prose, (rare_smiles, rare_prose)


def learn(counts, merges, number):
    """The next `number` merges after `merges`: always the most frequent pair, and of several the smallest.

    What `merges` makes of the strings of borders.py stays as it is: a pair that stands there on both sides of a cut is left out.
    """
    rank = {m: i for i, m in enumerate(merges)}
    fixed = [borders.merge(s, rank) for s in borders.strings()]
    banned = {pair for cuts in fixed for pair in zip(cuts, cuts[1:])}
    whole = {"".join(cuts) for cuts in fixed if len(cuts) > 1}
    known = {a + b for a, b in merges}
    texts = sorted(counts)
    split = [borders.merge(w, rank) for w in texts]
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, symbols in enumerate(split):
        for pair in zip(symbols, symbols[1:]):
            pairs[pair] += counts[texts[i]]
            where[pair].add(i)
    chosen = []
    while len(chosen) < number:
        usable = ((n, p) for p, n in pairs.items() if n > 0 and p not in banned and "".join(p) not in whole)
        best = min(((-n, p) for n, p in usable if "".join(p) not in known), default=None)
        if best is None:
            sys.exit(f"the text gives {len(chosen)} merges only")
        pair = best[1]
        chosen.append(pair)
        known.add("".join(pair))
        for i in sorted(where[pair]):
            old, new, j = split[i], [], 0
            while j < len(old):
                if old[j : j + 2] == pair:
                    new.append(old[j] + old[j + 1])
                    j += 2
                else:
                    new.append(old[j])
                    j += 1
            for p in zip(old, old[1:]):
                pairs[p] -= counts[texts[i]]
            split[i] = tuple(new)
            for p in zip(new, new[1:]):
                pairs[p] += counts[texts[i]]
                where[p].add(i)
    return chosen, -best[0]


def model(merges, numbers, ignore_merges):
    """The `model` of a tokenizer.json; `numbers` come after the bytes, then a token for each merge that makes a new one."""
    tokens = byte_letters() + numbers
    tokens += [a + b for a, b in merges]
    vocab = {t: i for i, t in enumerate(dict.fromkeys(tokens))}
    part = None if ignore_merges else ""
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": part,
        "end_of_word_suffix": part,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": ignore_merges,
        "vocab": vocab,
        "merges": [list(m) for m in merges],
    }


def added(first, special, plain, normalized):
    def entry(i, content, is_special, is_normalized):
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": is_normalized, "special": is_special}
        return {"id": first + i, "content": content, **flags}

    return [entry(i, t, True, False) for i, t in enumerate(special)] + [
        entry(len(special) + i, t, False, normalized) for i, t in enumerate(plain)
    ]


def byte_level(add_prefix_space, trim_offsets, use_regex):
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": trim_offsets,
        "use_regex": use_regex,
    }


def split_json(digits, trim_offsets):
    pattern = {"type": "Split", "pattern": {"Regex": BPE_PATTERN % digits}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [pattern, byte_level(False, trim_offsets, False)]}


def document(normalizer, digits, trim_offsets, post_processor, decoder, added_tokens, bpe):
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_tokens,
        "normalizer": normalizer,
        "pre_tokenizer": split_json(digits, trim_offsets),
        "post_processor": post_processor,
        "decoder": decoder,
        "model": bpe,
    }


def config(eos, bos, pad, extra):
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": bos,
        "eos_token": eos,
        "pad_token": pad,
        "unk_token": None,
        "additional_special_tokens": extra,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 4096,
        "model_input_names": ["input_ids", "attention_mask"],
    }


def qwen_like():
    merges = [m for m in pairs_of(BORDERS) if m != ("(", "=")]
    more, least = learned(r"\p{N}", merges)
    bpe = model(merges + more, [], ignore_merges=False)
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokens = added(len(bpe["vocab"]), special, TAGS, normalized=True)
    level = byte_level(False, False, False)
    made = document({"type": "NFC"}, r"\p{N}", False, level, level, tokens, bpe)
    return made, config("<|endoftext|>", None, "<|endoftext|>", ["<|im_start|>", "<|im_end|>"]), least


def llama_like():
    merges = pairs_of(BORDERS)
    more, least = learned(r"\p{N}{1,3}", merges)
    # `ignore_merges` finds a number without merges; these are for programs that do not know it.
    two = [f"{n:02}" for n in range(100)]
    three = [f"{n:03}" for n in range(1000)]
    digits = [(t[0], t[1]) for t in two]
    digits += [m for t in three for m in ((t[:2], t[2]), (t[0], t[1:]))]
    bpe = model(merges + digits + more, two + three, ignore_merges=True)
    start, end, pad = "<|begin_of_text|>", "<|end_of_text|>", "<|finetune_right_pad_id|>"
    tokens = added(len(bpe["vocab"]), [start, end, pad, *TAGS], [], normalized=False)

    def token(type_id):
        return {"SpecialToken": {"id": start, "type_id": type_id}}

    def sequence(name, type_id):
        return {"Sequence": {"id": name, "type_id": type_id}}

    template = {
        "type": "TemplateProcessing",
        "single": [token(0), sequence("A", 0)],
        "pair": [token(0), sequence("A", 0), token(1), sequence("B", 1)],
        "special_tokens": {start: {"id": start, "ids": [tokens[0]["id"]], "tokens": [start]}},
    }
    post = {"type": "Sequence", "processors": [byte_level(True, False, True), template]}
    made = document(None, r"\p{N}{1,3}", True, post, byte_level(True, True, True), tokens, bpe)
    return made, config(end, start, pad, TAGS), least


def pairs_of(listed):
    return [tuple(m.split("|")) for m in listed]


def dump(document):
    """JSON with one vocabulary entry, merge or added token a line."""

    def line(value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def lines(value):
        if isinstance(value, dict):
            return "{\n" + ",\n".join(f"{line(k)}:{line(v)}" for k, v in value.items()) + "\n}"
        return "[\n" + ",\n".join(map(line, value)) + "\n]"

    def entry(key, value):
        if key == "model":
            value = {k: lines(v) if isinstance(v, (dict, list)) else line(v) for k, v in value.items()}
            return "{\n" + ",\n".join(f"{line(k)}:{v}" for k, v in value.items()) + "\n}"
        return lines(value) if key == "added_tokens" else line(value)

    return "{\n" + ",\n".join(f"{line(k)}:{entry(k, v)}" for k, v in document.items()) + "\n}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file differs")
    check = parser.parse_args().check
    same = True
    for name, make in (("qwen-like", qwen_like), ("llama-like", llama_like)):
        made, settings, least = make()
        text = dump(made)
        loaded = json.loads(Tokenizer.from_str(text).to_str())
        if loaded != made:
            sys.exit(f"{name}: the library reads another tokenizer than was written")
        size = len(made["model"]["vocab"]) + len(made["added_tokens"])
        length = len(text.encode())
        print(f"{name}: {size} tokens, {len(made['model']['merges'])} merges, {length} bytes")
        print(f"  the last pairs learned were seen {least[0]} and {least[1]} times")
        for file, content in (("tokenizer.json", text), ("tokenizer_config.json", json.dumps(settings, indent=2) + "\n")):
            path = HERE / name / file
            if check:
                if not path.exists() or path.read_bytes() != content.encode():
                    print(f"{path} differs", file=sys.stderr)
                    same = False
            else:
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content.encode())
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
