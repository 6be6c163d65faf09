//! Mixed text without any block, generated from a seed. An extended tokenizer must encode it as its base does.
//!
//! The text contains code, markup, numbers, SMILES, prose in a dozen scripts, emoji, and texts that are nearly blocks. A text
//! depends only on its index, so any number of texts can be generated anywhere, on any number of threads. Pieces end in white
//! space, which no block contains, so no block can form between two pieces.

use std::sync::LazyLock;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The number of texts in a full run: a little over 10 MB, see the tests.
pub const MIXED_TEXTS: u64 = 2_700;

/// The minimum size of a text in bytes.
const TEXT_BYTES: usize = 4_000;

/// The seed of the random streams of texts.
const SEED: u64 = 0x6d69_7865_6420_7478;

/// The scripts of prose: the first and last letters of ranges, and the separator between words.
const SCRIPTS: [(&[(char, char)], &str); 14] = [
    (&[('a', 'z')], " "),
    (&[('a', 'z'), ('à', 'ö'), ('ø', 'ÿ'), ('ā', 'ž')], " "),
    (&[('α', 'ω'), ('ά', 'ώ')], " "),
    (&[('а', 'я'), ('ё', 'џ')], " "),
    (&[('ա', 'և')], " "),
    (&[('א', 'ת')], " "),
    (&[('ا', 'ي'), ('٠', '٩')], " "),
    (&[('अ', 'ह'), ('ा', 'ौ'), ('०', '९')], " "),
    (&[('ก', 'ฮ'), ('ะ', 'ู'), ('เ', '๋')], ""),
    (&[('ა', 'ჰ')], " "),
    (&[('一', '龥')], ""),
    (&[('ぁ', 'ん'), ('ァ', 'ヶ'), ('一', '丿')], ""),
    (&[('가', '힣')], " "),
    (&[('😀', '🙏'), ('🌀', '🌿'), ('\u{1f3fb}', '\u{1f3ff}'), ('\u{200d}', '\u{200d}')], ""),
];

static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    "the of and molecule energy isn't we'll It's der Grüße straße und nicht été l'eau façade \
     niño más coração IUPAC DNA e.g. etc. pH 25°C ±0.5 Å µm 10⁻³ H₂O x² ½"
        .split(' ')
        .collect()
});

static IDENTIFIERS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    "x i self fn let mut return vec std::vec HashMap get_item __init__ numpy np.array camelCase \
     SNAKE_CASE _tmp0 x1 y_2 impl template static_cast void* &'a"
        .split(' ')
        .collect()
});

const OPERATORS: [&str; 28] = [
    "=", "==", "!=", "<", ">", "<=", ">=", "<<", ">>", "->", "=>", "<-", "+", "-", "*", "/", "%", "&&", "||",
    "::", "..", "...", "?", "!", "~", "^", "<>", "<=>",
];

const PUNCTUATION: [&str; 20] = [
    "(", ")", "[", "]", "{", "}", "();", ");", "});", "{}", "[]", "[0]", ",", ";", ":", "\"", "'", "`", "//",
    "#",
];

const ATOMS: [&str; 30] = [
    "C", "c", "N", "n", "O", "o", "S", "s", "F", "Cl", "Br", "I", "P", "B", "[nH]", "[O-]", "[N+]", "[C@@H]",
    "[C@H]", "[13CH3]", "[2H]", "[Na+]", "[Fe+2]", "[NH3+]", "[C]", "[N]", "[O]", "[c]", "[S@@]", "*",
];

const LINKS: [&str; 18] =
    ["", "", "", "", "=", "#", "(", ")", "1", "2", "%12", "/", "\\", "-", ":", ".", "(=", ")("];

/// Texts that resemble blocks, but are no blocks, neither fixed nor stripped.
const NEAR: [&str; 26] = [
    "<1.0,2>",
    "<a,b,c>",
    "<>",
    "<,,>",
    "<1.0000,2.0000>",
    "<1.0000, 2.0000, 3.0000>",
    "<1.0000,2.0000,3.0000",
    "1.0000,2.0000,3.0000>",
    "<1.00000,2.00000,3.00000>",
    "<01.0000,2.0000,3.0000>",
    "<+1.0000,2.0000,3.0000>",
    "<--1.0000,2.0000,3.0000>",
    "<1.0000;2.0000;3.0000>",
    "<1,0000,2,0000,3,0000>",
    "<1.0000,2.0000,3.0000,4.0000>",
    "<1.0000,2.0000,x>",
    "<-.5,1.,2>",
    "< 0.0000,0.0000,0.0000>",
    "<0.0000,0.0000,0.0000 >",
    "<1.50,2.50,3.50>",
    "<1e3,2e3,3e3>",
    "<１.0000,2.0000,3.0000>",
    "[C]<1.2345,-6.7890>[C]",
    "<<1.0000,2.0000>>",
    "<-0.1234,5.6789,>",
    "<,5.6789,-1.0000>",
];

/// Returns the text of an index.
pub fn mixed_text(index: u64) -> String {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    // Each text has its own stream, so that it does not depend on the texts generated before it.
    random.set_stream(index);
    let mut text = String::with_capacity(TEXT_BYTES + 512);
    while text.len() < TEXT_BYTES {
        match random.random_range(0..10) {
            0 | 1 => code(&mut random, &mut text),
            2 => markup(&mut random, &mut text),
            3 => numbers(&mut random, &mut text),
            4 => smiles(&mut random, &mut text),
            5 => near_blocks(&mut random, &mut text),
            6 => words(&mut random, &mut text),
            _ => prose(&mut random, &mut text),
        }
        text.push_str(pick(&mut random, &[" ", " ", "\n", "\n\n", "\r\n", "\t", "  ", "   \n"]));
    }
    text
}

fn pick<'a>(random: &mut ChaCha8Rng, options: &[&'a str]) -> &'a str {
    options[random.random_range(0..options.len())]
}

/// Writes a line of code: identifiers, operators and numbers, with and without spaces.
fn code(random: &mut ChaCha8Rng, text: &mut String) {
    text.push_str(&" ".repeat(4 * random.random_range(0..4)));
    for _ in 0..random.random_range(2..12) {
        match random.random_range(0..5) {
            0 => text.push_str(pick(random, &PUNCTUATION)),
            // An operator is followed by a name: `<` before a number could begin a block.
            1 | 2 => {
                text.push_str(pick(random, &OPERATORS));
                text.push_str(pick(random, &IDENTIFIERS));
            }
            3 => {
                text.push_str(pick(random, &[" ", " ", " > ", " < ", "=", "("]));
                number(random, text);
            }
            _ => {
                text.push_str(pick(random, &IDENTIFIERS));
                text.push_str(pick(random, &["", " ", " ", "."]));
            }
        }
    }
}

/// Writes elements with attributes, or JSON.
fn markup(random: &mut ChaCha8Rng, text: &mut String) {
    for _ in 0..random.random_range(1..5) {
        let name = pick(random, &IDENTIFIERS);
        if random.random_bool(0.5) {
            text.push_str(&format!("<{name} class=\"{}\">", pick(random, &WORDS)));
            number(random, text);
            text.push_str(&format!("</{name}>"));
        } else {
            text.push_str(&format!("{{\"{name}\": ["));
            number(random, text);
            text.push_str(", ");
            number(random, text);
            text.push_str("]}, ");
        }
    }
}

/// Writes rows of numbers in every spelling.
fn numbers(random: &mut ChaCha8Rng, text: &mut String) {
    let between = pick(random, &[",", ", ", " ", "\t", ";", "|", "-", "..", ":"]);
    for _ in 0..random.random_range(1..16) {
        number(random, text);
        text.push_str(between);
    }
}

/// Writes a number with any number of digits, signs and decimals.
fn number(random: &mut ChaCha8Rng, text: &mut String) {
    text.push_str(pick(random, &["", "", "", "-", "+", "0x", "$", "v"]));
    for _ in 0..random.random_range(1..6) {
        text.push(char::from(random.random_range(b'0'..=b'9')));
    }
    if random.random_bool(0.6) {
        text.push('.');
        for _ in 0..random.random_range(0..7) {
            text.push(char::from(random.random_range(b'0'..=b'9')));
        }
    }
    text.push_str(pick(random, &["", "", "", "", "e-5", "%", "f32", "px", " Å", "°"]));
}

/// Writes atoms and bonds that resemble SMILES but need not be molecules, some with tags or empty blocks.
fn smiles(random: &mut ChaCha8Rng, text: &mut String) {
    let (open, close) =
        [("", ""), ("[SMILES]", "[/SMILES]"), ("[CONFORMER]", "[/CONFORMER]")][random.random_range(0..3)];
    let block = pick(random, &["", "", "", "<>", "<x>"]);
    text.push_str(open);
    for _ in 0..random.random_range(3..40) {
        text.push_str(pick(random, &ATOMS));
        text.push_str(block);
        text.push_str(pick(random, &LINKS));
    }
    text.push_str(close);
}

fn near_blocks(random: &mut ChaCha8Rng, text: &mut String) {
    for _ in 0..random.random_range(1..5) {
        text.push_str(pick(random, &NEAR));
        text.push_str(pick(random, &[" ", "\n", " [C]", " x", "\t"]));
    }
}

fn words(random: &mut ChaCha8Rng, text: &mut String) {
    for _ in 0..random.random_range(4..24) {
        text.push_str(pick(random, &WORDS));
        text.push_str(pick(
            random,
            &[" ", " ", " ", " ", ", ", ". ", "! ", " – ", "; ", " (", ") ", "\u{a0}"],
        ));
    }
}

/// Writes words of random letters from one script.
fn prose(random: &mut ChaCha8Rng, text: &mut String) {
    let (letters, between) = SCRIPTS[random.random_range(0..SCRIPTS.len())];
    for _ in 0..random.random_range(3..16) {
        for at in 0..random.random_range(1..9) {
            let (first, last) = letters[random.random_range(0..letters.len())];
            let letter = random.random_range(first..=last);
            if at == 0 && random.random_bool(0.2) {
                text.extend(letter.to_uppercase());
            } else {
                text.push(letter);
            }
        }
        text.push_str(between);
        if random.random_bool(0.1) {
            text.push_str(pick(
                random,
                &["。", "، ", "? ", "! ", ": ", "। ", "\u{301} ", "\u{200b}", "«", "» "],
            ));
        }
    }
}
