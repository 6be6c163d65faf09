//! How cases are made of seeds: bytes, tokens of a format, splices, sizes and counts, nodes of JSON, containers in
//! containers. All of it is drawn from one random stream, so a case is its number.

use std::io::{Read, Write};

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

/// The largest case, in bytes: larger ones are cut.
const MOST_BYTES: usize = 256 << 10;

/// Numbers that parsers get wrong.
const NUMBERS: [&str; 22] = [
    "0",
    "-1",
    "-0",
    "1",
    "255",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e-320",
    "1e999",
    "NaN",
    "-inf",
    "0x10",
    "1_000",
    "",
    "123456789012345678901234567890123456789012345678901234567890",
];

/// Characters that do not belong on a line, or look like others.
const CHARACTERS: [&str; 12] = [
    "\0",
    "\r",
    "\n\n",
    "\t",
    "\u{1b}[31m",
    "\u{feff}",
    "\u{202e}",
    "\u{2028}",
    "é",
    "😀",
    "\u{fffd}",
    "\u{200b}",
];

/// Integers that binary formats get wrong.
const INTEGERS: [u64; 16] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    1 << 20,
    1 << 31,
    1 << 40,
    1 << 62,
    i64::MAX as u64,
    u64::MAX,
];

/// One of several.
pub(crate) fn pick<'a, T>(random: &mut ChaCha8Rng, all: &'a [T]) -> &'a T {
    &all[random.random_range(0..all.len())]
}

fn index(random: &mut ChaCha8Rng, length: usize) -> usize {
    random.random_range(0..length.max(1)).min(length)
}

/// A range of at most `most` bytes.
fn range(random: &mut ChaCha8Rng, length: usize, most: usize) -> std::ops::Range<usize> {
    let start = index(random, length);
    let end = start + random.random_range(0..=most.min(length - start));
    start..end
}

/// A text: tokens as often as bytes.
pub(crate) fn text(random: &mut ChaCha8Rng, seeds: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut bytes = pick(random, seeds).clone();
    for _ in 0..rounds(random) {
        bytes = match random.random_range(0..10) {
            0..3 => one_of_bytes(random, bytes),
            3..6 => number(random, bytes),
            6 => insert(random, bytes, words),
            7 => insert(random, bytes, &CHARACTERS),
            8 => lines(random, bytes),
            _ => splice(random, bytes, seeds),
        };
    }
    cut(bytes)
}

/// A binary file: sizes and counts as often as bytes.
pub(crate) fn binary(random: &mut ChaCha8Rng, seeds: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut bytes = pick(random, seeds).clone();
    for _ in 0..rounds(random) {
        bytes = match random.random_range(0..12) {
            0..6 => one_of_bytes(random, bytes),
            6..9 => integer(random, bytes),
            9 => insert(random, bytes, words),
            10 => number(random, bytes),
            _ => splice(random, bytes, seeds),
        };
    }
    cut(bytes)
}

/// A JSON document: nodes as often as bytes; what is no JSON any more is taken as text.
pub(crate) fn json(random: &mut ChaCha8Rng, seeds: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let seed = pick(random, seeds);
    let (true, Ok(mut document)) = (random.random_bool(0.7), serde_json::from_slice::<Value>(seed)) else {
        return text(random, seeds, words);
    };
    for _ in 0..rounds(random) {
        change_node(random, &mut document, words);
    }
    cut(document.to_string().into_bytes())
}

/// Containers: what is inside is changed, or what is around it.
pub(crate) fn container(random: &mut ChaCha8Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let seed = pick(random, seeds).clone();
    let inside = gunzip(&seed).unwrap_or(seed);
    let inside =
        if random.random_bool(0.7) { binary(random, &[inside], &["ustar\0", "0000644"]) } else { inside };
    let inside = if random.random_bool(0.5) { with_checksum(inside) } else { inside };
    let mut bytes = match random.random_range(0..7) {
        0 => inside,
        1 | 2 => gzip(&inside),
        3 => gzip(&tar(&[("a/one", &inside), ("two", &gzip(&inside))])),
        4 => tar(&[("one.tar", &tar(&[("x", &inside)])), ("two", &inside)]),
        5 => gzip(&gzip(&inside)),
        _ => [gzip(&inside), gzip(pick(random, seeds).as_slice())].concat(),
    };
    if random.random_bool(0.4) {
        bytes = binary(random, &[bytes], &["\x1f\u{8b}\x08"]);
    }
    cut(bytes)
}

fn cut(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(MOST_BYTES);
    bytes
}

/// Few changes find most: a case with many is refused at the first.
fn rounds(random: &mut ChaCha8Rng) -> usize {
    *pick(random, &[1, 1, 1, 2, 2, 3, 5, 9])
}

fn one_of_bytes(random: &mut ChaCha8Rng, mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len();
    let at = index(random, length);
    match random.random_range(0..8) {
        0 | 1 if at < length => bytes[at] ^= 1 << random.random_range(0..8),
        2 if at < length => bytes[at] = random.random(),
        3 if at < length => bytes[at] ^= 0xff >> random.random_range(0..2),
        4 => {
            let count = random.random_range(1..9);
            let noise: Vec<u8> = (0..count).map(|_| random.random()).collect();
            bytes.splice(at..at, noise);
        }
        5 => drop(bytes.drain(range(random, length, 64))),
        6 => {
            let part = bytes[range(random, length, 256)].to_vec();
            let times = *pick(random, &[1, 1, 2, 10, 200]);
            bytes.splice(at..at, part.repeat(times));
        }
        7 if random.random_bool(0.5) => bytes.truncate(at),
        _ => {
            let from = range(random, length, 64);
            let part = bytes[from].to_vec();
            let end = (at + part.len()).min(bytes.len());
            bytes.splice(at..end, part);
        }
    }
    bytes
}

/// Replaces a number of the text.
fn number(random: &mut ChaCha8Rng, mut bytes: Vec<u8>) -> Vec<u8> {
    let is_part = |b: u8| b.is_ascii_digit() || b"+-.".contains(&b);
    let begins: Vec<usize> = (0..bytes.len())
        .filter(|&at| {
            bytes[at].is_ascii_digit() && (at == 0 || !is_part(bytes[at - 1]) || random.random_bool(0.1))
        })
        .collect();
    if begins.is_empty() {
        return one_of_bytes(random, bytes);
    }
    let start = *pick(random, &begins);
    let end = bytes[start..].iter().position(|&b| !is_part(b)).map_or(bytes.len(), |length| start + length);
    let new = match random.random_range(0..5) {
        0 => random.random_range(0..200u32).to_string(),
        1 => "9".repeat(*pick(random, &[3, 9, 19, 40, 400])),
        // As wide as it was: formats of columns.
        2 => format!("{:>1$}", pick(random, &NUMBERS), end - start),
        _ => (*pick(random, &NUMBERS)).to_owned(),
    };
    bytes.splice(start..end, new.into_bytes());
    bytes
}

/// Inserts a word, or puts it in the place of as many bytes.
fn insert(random: &mut ChaCha8Rng, mut bytes: Vec<u8>, words: &[&str]) -> Vec<u8> {
    if words.is_empty() {
        return one_of_bytes(random, bytes);
    }
    let word = *pick(random, words);
    let word =
        if random.random_bool(0.05) { word.repeat(random.random_range(2..3_000)) } else { word.to_owned() };
    let at = index(random, bytes.len());
    let end = if random.random_bool(0.5) { at } else { (at + word.len()).min(bytes.len()) };
    bytes.splice(at..end, word.into_bytes());
    bytes
}

/// Doubles, drops, swaps or joins lines.
fn lines(random: &mut ChaCha8Rng, bytes: Vec<u8>) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return bytes;
    }
    let (a, b) = (index(random, lines.len()), index(random, lines.len()));
    match random.random_range(0..5) {
        0 => lines.insert(a, lines[b].clone()),
        1 => drop(lines.remove(a)),
        2 => lines.swap(a, b),
        3 => drop(lines[a].pop()),
        _ => {
            let end = *pick(random, &[&b"\r\n"[..], b"\r", b"\n\n\n", b" \n"]);
            lines.iter_mut().for_each(|line| {
                if line.last() == Some(&b'\n') {
                    line.pop();
                    line.extend_from_slice(end);
                }
            });
        }
    }
    lines.concat()
}

/// The beginning of one and the end of another.
fn splice(random: &mut ChaCha8Rng, bytes: Vec<u8>, seeds: &[Vec<u8>]) -> Vec<u8> {
    let other = pick(random, seeds);
    let (a, b) = (index(random, bytes.len()), index(random, other.len()));
    let near =
        |bytes: &[u8], at: usize| bytes[at..].iter().position(|&b| b == b'\n').map_or(at, |n| at + n + 1);
    let (a, b) = if random.random_bool(0.5) { (near(&bytes, a), near(other, b)) } else { (a, b) };
    [&bytes[..a], &other[b..]].concat()
}

/// Writes an integer over some bytes, in either order of bytes, or changes a small one that is there.
fn integer(random: &mut ChaCha8Rng, mut bytes: Vec<u8>) -> Vec<u8> {
    let width = *pick(random, &[1usize, 2, 4, 8]);
    if bytes.len() < width {
        return bytes;
    }
    let at = random.random_range(0..=bytes.len() - width);
    let little = random.random_bool(0.6);
    let mut field = [0; 8];
    field[..width].copy_from_slice(&bytes[at..at + width]);
    if !little {
        field[..width].reverse();
    }
    let old = u64::from_le_bytes(field);
    let new = match random.random_range(0..4) {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => old.wrapping_mul(*pick(random, &[2, 1 << 8, 1 << 16])),
        _ => *pick(random, &INTEGERS),
    };
    field = new.to_le_bytes();
    if !little {
        field[..width].reverse();
    }
    bytes[at..at + width].copy_from_slice(&field[..width]);
    bytes
}

/// Changes a node of a document: a value, a name, an entry too many or too few.
fn change_node(random: &mut ChaCha8Rng, document: &mut Value, words: &[&str]) {
    let other = node(random, document).clone();
    let deep = random.random_range(1..120);
    let word = if words.is_empty() { "" } else { *pick(random, words) };
    let kind = random.random_range(0..10);
    let new = match kind {
        0 => Value::Null,
        1 => serde_json::from_str(pick::<&str>(random, &NUMBERS)).unwrap_or(Value::from(0)),
        2 => Value::from(*pick(random, &NUMBERS)),
        3 => Value::from(*pick(random, &CHARACTERS)),
        4 => other.clone(),
        5 => Value::from("x".repeat(random.random_range(0..5_000))),
        6 => (0..deep).fold(other.clone(), |inner, _| Value::Array(vec![inner])),
        _ => serde_json::from_str(word).unwrap_or(Value::from(word)),
    };
    let at = random.random_range(0..1 << 20);
    match node(random, document) {
        Value::Object(map) if !map.is_empty() && random.random_bool(0.6) => {
            let key = map.keys().nth(at % map.len()).unwrap().clone();
            match random.random_range(0..4) {
                0 => drop(map.shift_remove(&key)),
                1 => drop(map.insert(word.to_owned(), new)),
                _ => drop(map.insert(key, new)),
            }
        }
        Value::Array(list) if !list.is_empty() && random.random_bool(0.6) => {
            let place = at % list.len();
            match random.random_range(0..4) {
                0 => drop(list.remove(place)),
                1 => list.insert(place, new),
                2 => list.insert(place, list[place].clone()),
                _ => list[place] = new,
            }
        }
        Value::Number(number) if random.random_bool(0.5) => {
            let changed = number.as_i64().map_or(0, |number| number.wrapping_add(random.random_range(-2..3)));
            *number = changed.into();
        }
        place => *place = new,
    }
}

/// A node of a document: each step down takes a random entry.
fn node<'a>(random: &mut ChaCha8Rng, document: &'a mut Value) -> &'a mut Value {
    let mut at = document;
    loop {
        let count = match &*at {
            Value::Object(map) => map.len(),
            Value::Array(list) => list.len(),
            _ => 0,
        };
        if count == 0 || random.random_bool(0.2) {
            return at;
        }
        let entry = random.random_range(0..count);
        at = match at {
            Value::Object(map) => map.values_mut().nth(entry).unwrap(),
            Value::Array(list) => &mut list[entry],
            _ => unreachable!("a value without entries has none to go to"),
        };
    }
}

/// Compressed.
pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// Decompressed; none if it is not gzip.
pub(crate) fn gunzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes).take(1 << 24).read_to_end(&mut content).ok()?;
    Some(content)
}

/// An archive.
pub(crate) fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, name, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

/// An archive whose first header has its checksum put right, so that a change of the header is looked at.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() >= 512 && &bytes[257..262] == b"ustar" {
        bytes[148..156].fill(b' ');
        let sum: u32 = bytes[..512].iter().map(|&b| u32::from(b)).sum();
        bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    bytes
}
