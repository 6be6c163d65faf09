//! Legal texts, edited in every way that goes wrong: what the verdicts are tried on.

use drift::corpus::{Conformer, EmbeddedConformers};
use drift::encoding::Encoding;
use drift::text::{skeleton, tagged, write};
use rand::Rng;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::support::batches;

/// An edited text.
pub(crate) struct Edited {
    pub kind: &'static str,
    pub prompt: String,
    pub text: String,
}

/// What stands between the tags, edited; `None` where there is nothing to edit.
type Inside = fn(&str, &mut ChaCha8Rng) -> Option<String>;

/// A place where `pattern` stands, drawn.
fn place(text: &str, pattern: &str, rng: &mut ChaCha8Rng) -> Option<usize> {
    let places: Vec<usize> = text.match_indices(pattern).map(|(at, _)| at).collect();
    (!places.is_empty()).then(|| places[rng.random_range(0..places.len())])
}

/// One of the places of `pattern`, rewritten.
fn swap(text: &str, pattern: &str, new: &str, rng: &mut ChaCha8Rng) -> Option<String> {
    let at = place(text, pattern, rng)?;
    Some(format!("{}{new}{}", &text[..at], &text[at + pattern.len()..]))
}

/// One of several rewritings that apply.
fn swap_any(text: &str, ways: &[(&str, &str)], rng: &mut ChaCha8Rng) -> Option<String> {
    let fitting: Vec<&(&str, &str)> = ways.iter().filter(|(old, _)| text.contains(old)).collect();
    let (old, new) = fitting.get(rng.random_range(0..fitting.len().max(1)))?;
    swap(text, old, new, rng)
}

/// A number of a block, drawn: a block, and the byte range of one of its parts.
fn number(text: &str, rng: &mut ChaCha8Rng) -> std::ops::Range<usize> {
    let open = place(text, "<", rng).unwrap();
    let close = open + text[open..].find('>').unwrap();
    let mut parts = Vec::new();
    let mut at = open + 1;
    for part in text[open + 1..close].split(',') {
        parts.push(at..at + part.len());
        at += part.len() + 1;
    }
    parts.swap_remove(rng.random_range(0..parts.len()))
}

fn renumber(text: &str, rng: &mut ChaCha8Rng, new: impl Fn(&str) -> String) -> Option<String> {
    let range = number(text, rng);
    Some(format!("{}{}{}", &text[..range.start], new(&text[range.clone()]), &text[range.end..]))
}

/// A place outside blocks and brackets where a digit stands.
fn ring_digit(text: &str, rng: &mut ChaCha8Rng) -> Option<usize> {
    let mut depth = 0i32;
    let mut places = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' | b'[' => depth += 1,
            b'>' | b']' => depth -= 1,
            b'0'..=b'9' if depth == 0 => places.push(at),
            _ => {}
        }
    }
    (!places.is_empty()).then(|| places[rng.random_range(0..places.len())])
}

/// Noise that a model or a broken file may hold.
const NOISE: [&str; 28] = [
    "[", "]", "<", ">", "(", ")", "=", "#", "1", "2", "%", "%12", ".", ",", "-", "+", "C", "[C]", "[nH]",
    "[H]", " ", "\u{ff08}", "\u{663}", "@", "/", "\\", ":", "<1,2,3>",
];

fn noise(text: &str, rng: &mut ChaCha8Rng) -> String {
    let mut out: Vec<char> = text.chars().collect();
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..=out.len());
        if rng.random_bool(0.5) && at < out.len() {
            out.remove(at);
        } else {
            out.splice(at..at, NOISE[rng.random_range(0..NOISE.len())].chars());
        }
    }
    out.into_iter().collect()
}

/// A SMILES with a few characters taken out, put in or exchanged.
pub(crate) fn mutated(smiles: &str, rng: &mut ChaCha8Rng) -> String {
    const CHARACTERS: [&str; 44] = [
        "C", "c", "N", "n", "O", "o", "S", "s", "P", "F", "Cl", "Br", "I", "B", "(", ")", "=", "#", "-", ":",
        ".", "/", "\\", "1", "2", "3", "%10", "[nH]", "[NH3+]", "[O-]", "[N+]", "[C@@H]", "[CH2]", "[13CH3]",
        "[H]", "[2H]", "[Si]", "[Na]", "[se]", "[S+]", "[n+]", "[P+]", "[B-]", "[Fe]",
    ];
    let mut out: Vec<char> = smiles.chars().collect();
    for _ in 0..rng.random_range(1..3) {
        let at = rng.random_range(0..out.len());
        let new = CHARACTERS[rng.random_range(0..CHARACTERS.len())].chars();
        match rng.random_range(0..3) {
            0 if out.len() > 1 => _ = out.remove(at),
            1 => _ = out.splice(at..at, new),
            _ => _ = out.splice(at..=at, new),
        }
    }
    out.into_iter().collect()
}

const INSIDE: [(&str, Inside); 44] = [
    ("legal", |t, _| Some(t.to_owned())),
    ("block dropped", |t, rng| {
        let open = place(t, "<", rng)?;
        Some(format!("{}{}", &t[..open], &t[open + t[open..].find('>')? + 1..]))
    }),
    ("block doubled", |t, rng| swap(t, ">", "><0.0000,0.0000,0.0000>", rng)),
    ("block emptied", |t, rng| {
        let open = place(t, "<", rng)?;
        Some(format!("{}<{}", &t[..open], &t[open + t[open..].find('>')?..]))
    }),
    ("number dropped", |t, rng| swap(t, ",", "", rng)),
    ("number cut to nothing", |t, rng| renumber(t, rng, |_| String::new())),
    ("number added", |t, rng| swap(t, ",", ",0.1234,", rng)),
    ("letters behind a number", |t, rng| renumber(t, rng, |n| format!("{n}abra"))),
    ("an atom behind a number", |t, rng| renumber(t, rng, |n| format!("{n}[c"))),
    ("letters alone", |t, rng| renumber(t, rng, |_| "amen".to_owned())),
    ("last point", |t, rng| renumber(t, rng, |_| "0.".to_owned())),
    ("two points", |t, rng| renumber(t, rng, |n| format!("{n}."))),
    ("no digit before the point", |t, rng| renumber(t, rng, |_| ".5".to_owned())),
    ("exponent", |t, rng| renumber(t, rng, |_| "1e2".to_owned())),
    ("two signs", |t, rng| renumber(t, rng, |_| "--1".to_owned())),
    ("text before a number", |t, rng| renumber(t, rng, |_| "COc1.1119".to_owned())),
    ("more decimals", |t, rng| renumber(t, rng, |n| format!("{n}57"))),
    ("fewer decimals", |t, rng| renumber(t, rng, |n| n[..n.len() - 2].to_owned())),
    ("digits of another script", |t, rng| renumber(t, rng, |_| "\u{661}\u{662}".to_owned())),
    ("letters of another script", |t, rng| renumber(t, rng, |n| format!("{n}\u{ff08}\u{441}"))),
    ("semicolons", |t, rng| swap(t, ",", ";", rng)),
    ("spaces in a block", |t, rng| swap(t, ",", ", ", rng)),
    ("line break in a block", |t, rng| swap(t, ",", ",\n", rng)),
    ("spaces between atoms", |t, rng| swap(t, ">", "> ", rng)),
    ("brackets broken", |t, rng| {
        swap_any(t, &[("]", ""), ("[", ""), ("[", "[["), ("]", "]]"), ("[C", "[C<")], rng)
    }),
    ("angles broken", |t, rng| swap_any(t, &[("<", ""), (">", ""), ("<", "<<"), (">", ">>")], rng)),
    ("ring digit changed", |t, rng| {
        let at = ring_digit(t, rng)?;
        Some(format!("{}{}{}", &t[..at], 1 + rng.random_range(0..9), &t[at + 1..]))
    }),
    ("ring digit dropped", |t, rng| {
        let at = ring_digit(t, rng)?;
        Some(format!("{}{}", &t[..at], &t[at + 1..]))
    }),
    ("bond changed", |t, rng| {
        swap_any(
            t,
            &[(">[", ">=["), (">[", ">#["), ("=[", "["), ("=[", "#["), (">[", ">-["), (">[", ">:[")],
            rng,
        )
    }),
    ("branch changed", |t, rng| {
        swap_any(t, &[("(", ""), (")", ""), (")", "()"), ("(", "(("), ("(", "(2")], rng)
    }),
    ("atom changed", |t, rng| {
        swap_any(t, &[("[C]", "[N]"), ("[N]", "[O]"), ("[O]", "[S]"), ("[c]", "[n]"), ("[F]", "[Cl]")], rng)
    }),
    ("aromatic changed", |t, rng| {
        swap_any(t, &[("[c]", "[C]"), ("[C]", "[c]"), ("[n]", "[nH]"), ("[nH]", "[n]")], rng)
    }),
    ("charge changed", |t, rng| {
        swap_any(
            t,
            &[("[N]", "[N+]"), ("[O]", "[O-]"), ("[C]", "[C-]"), ("+]", "]"), ("-]", "]"), ("[S]", "[S+]")],
            rng,
        )
    }),
    ("hydrogens changed", |t, rng| {
        swap_any(
            t,
            &[
                ("[C]", "[CH3]"),
                ("[C]", "[CH2]"),
                ("[C]", "[CH]"),
                ("[C]", "[CH5]"),
                ("[O]", "[OH]"),
                ("[N]", "[NH]"),
                ("[c]", "[cH]"),
            ],
            rng,
        )
    }),
    ("stereo changed", |t, rng| {
        swap_any(
            t,
            &[("@@", "@"), ("@H", "@@H"), ("/", "\\"), ("/", ""), ("[C@H]", "[CH]"), ("[C@@H]", "[C]")],
            rng,
        )
    }),
    ("isotope", |t, rng| {
        swap_any(t, &[("[C]", "[13CH3]"), ("[C]", "[13CH2]"), ("[C]", "[13C]"), ("[O]", "[18O]")], rng)
    }),
    ("atom map", |t, rng| swap_any(t, &[("[C]", "[CH2:1]"), ("[c]", "[cH:2]"), ("[c]", "[c:2]")], rng)),
    ("hydrogen as an atom", |t, rng| swap(t, ">", ">([H]<0.0000,0.0000,0.0000>)", rng)),
    ("nitro uncharged", |t, rng| {
        swap_any(t, &[("[N+]", "[N]"), ("[O-]", "[O]")], rng).map(|t| t.replace(")[O-]", ")=[O]"))
    }),
    ("five bonds", |t, rng| swap(t, ">", ">([C]<1.0000,0.0000,0.0000>)([C]<0.0000,1.0000,0.0000>)", rng)),
    ("fragment added", |t, _| Some(format!("{t}.[C]<0.0000,0.0000,0.0000>"))),
    ("written twice", |t, _| Some(format!("{t}{t}"))),
    ("special token inside", |t, rng| swap(t, ">", "><|endoftext|>", rng)),
    ("noise", |t, rng| Some(noise(t, rng))),
];

/// The whole text, from a legal one with tags.
type Whole = fn(&str, &str, &mut ChaCha8Rng) -> String;

const WHOLE: [(&str, Whole); 13] = [
    ("prompt before", |prompt, t, _| format!("[SMILES]{prompt}[/SMILES]{t}")),
    ("another prompt before", |_, t, _| format!("[SMILES]CCO[/SMILES]{t}")),
    ("unclosed prompt before", |prompt, t, _| format!("[SMILES]{prompt}{t}")),
    ("unclosed", |_, t, _| t.replace("[/CONFORMER]", "")),
    ("unopened", |_, t, _| t.replace("[CONFORMER]", "")),
    ("without tags", |_, t, _| t.replace("[CONFORMER]", "").replace("[/CONFORMER]", "")),
    ("empty", |_, _, _| tagged("")),
    ("cut off", |_, t, rng| t[..rng.random_range(11..t.len() - 12)].to_owned()),
    ("cut off and closed", |_, t, rng| format!("{}[/CONFORMER]", &t[..rng.random_range(12..t.len() - 12)])),
    ("twice with tags", |_, t, _| format!("{t}{t}")),
    ("garbage behind", |_, t, _| format!("{t} the end <1,2> [C]")),
    ("garbage before", |_, t, _| format!("well: {t}")),
    ("padding and end of text", |prompt, t, _| {
        format!("<|endoftext|>[SMILES]{prompt}[/SMILES]{t}<|endoftext|><|endoftext|>")
    }),
];

/// Legal texts of the embedded corpus, with their prompts, one a molecule.
pub(crate) fn legal() -> Vec<(String, String)> {
    let batches = batches(&EmbeddedConformers::default());
    let some = batches.iter().flat_map(|batch| batch.iter().step_by(5));
    let text = |one: &Conformer| write(&one.skeleton, &one.coordinates, Encoding::FIXED);
    let mut all: Vec<_> = some.map(|one| (skeleton::smiles(&one.skeleton), text(one))).collect();
    all.dedup_by(|a, b| a.0 == b.0);
    all
}

/// `each` texts of every kind, the same for the same seed.
pub(crate) fn edited(each: usize, seed: u64) -> Vec<Edited> {
    let legal = legal();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut out = Vec::new();
    for (kind, edit) in INSIDE {
        let mut done = 0;
        for _ in 0..100 * each {
            let (prompt, text) = &legal[rng.random_range(0..legal.len())];
            if let Some(text) = edit(text, &mut rng).filter(|_| done < each) {
                done += 1;
                out.push(Edited { kind, prompt: prompt.clone(), text: tagged(&text) });
            }
        }
        assert_eq!(done, each, "{kind}");
    }
    for (kind, edit) in WHOLE {
        for _ in 0..each {
            let (prompt, text) = &legal[rng.random_range(0..legal.len())];
            out.push(Edited { kind, prompt: prompt.clone(), text: edit(prompt, &tagged(text), &mut rng) });
        }
    }
    out
}

/// Kinds of edits.
pub(crate) const KINDS: usize = INSIDE.len() + WHOLE.len();
