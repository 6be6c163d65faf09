//! Whether some text of a molecule can contain a string. The question is answered by the grammar of texts, not by a set of
//! characters.
//!
//! The language here is slightly larger than that of real texts. So a negative answer is certain, and a positive one is not. A text
//! is a prompt, in which any SMILES characters may be adjacent, then tags, atoms in brackets with their slots, and the links
//! between them.

use std::collections::BTreeSet;

use crate::encoding::{Encoding, Slots};

/// A position in a text, before its next character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// In a tag or in a prompt.
    Prompt,
    /// Between slots: bonds, ring closures, branches.
    Link,
    /// Inside the brackets of an atom.
    Atom,
    /// Inside the opening text of a slot, behind this many bytes of it.
    Open(usize),
    /// Among the numbers of a slot.
    Inside,
    /// Inside the closing text of a slot, behind this many bytes of it.
    Close(usize),
}

/// Returns whether a prompt, a tag or a text between tags may contain a string.
pub fn may_hold(content: &str, encoding: Encoding) -> bool {
    let opens = (0..encoding.open().len().max(1)).map(Place::Open);
    let closes = (0..encoding.close().len().max(1)).map(Place::Close);
    // The string may begin anywhere in a text.
    let start = [Place::Prompt, Place::Link, Place::Atom, Place::Inside];
    let mut places: BTreeSet<Place> = start.into_iter().chain(opens).chain(closes).collect();
    for byte in content.bytes() {
        let mut next = BTreeSet::new();
        for place in places {
            step(place, byte, encoding, &mut next);
        }
        places = next;
    }
    !places.is_empty()
}

/// Adds the possible places after a byte.
fn step(place: Place, byte: u8, encoding: Encoding, next: &mut BTreeSet<Place>) {
    match place {
        Place::Prompt => {
            if of_smiles(byte) {
                next.insert(Place::Prompt);
            }
            if byte == b']' {
                next.insert(Place::Link);
            }
        }
        Place::Link => {
            if byte == b'[' {
                // A bracket opens an atom or a tag.
                next.extend([Place::Atom, Place::Prompt]);
            }
            if b"-=#$:/\\.~()%0123456789".contains(&byte) {
                next.insert(Place::Link);
                if encoding.slots() == Slots::Symbols {
                    next.insert(Place::Open(0));
                }
            }
        }
        Place::Atom => {
            if byte.is_ascii_alphanumeric() || b"@+-*:".contains(&byte) {
                next.insert(Place::Atom);
            }
            if byte == b']' {
                // A tag has no slot behind it.
                next.extend([Place::Open(0), Place::Link]);
            }
        }
        Place::Open(at) => match Delimiter::after(encoding.open(), at, byte) {
            Delimiter::Within(at) => _ = next.insert(Place::Open(at)),
            Delimiter::Complete => _ = next.insert(Place::Inside),
            Delimiter::Differs => {}
            Delimiter::Absent => step(Place::Inside, byte, encoding, next),
        },
        Place::Inside => {
            if byte.is_ascii_digit()
                || b"-.".contains(&byte)
                || encoding.separator().as_bytes().contains(&byte)
            {
                next.insert(Place::Inside);
            }
            step(Place::Close(0), byte, encoding, next);
        }
        Place::Close(at) => match Delimiter::after(encoding.close(), at, byte) {
            Delimiter::Within(at) => _ = next.insert(Place::Close(at)),
            Delimiter::Complete => _ = next.insert(Place::Link),
            Delimiter::Differs => {}
            Delimiter::Absent => step(Place::Link, byte, encoding, next),
        },
    }
}

/// The opening or closing text of a slot after one more byte.
enum Delimiter {
    /// This many bytes of it are read.
    Within(usize),
    Complete,
    /// It has another byte there.
    Differs,
    /// It has no byte there: the encoding has no such text.
    Absent,
}

impl Delimiter {
    /// Reads a byte behind the first `at` bytes of the delimiter.
    fn after(delimiter: &str, at: usize, byte: u8) -> Self {
        match delimiter.as_bytes().get(at) {
            Some(known) if *known != byte => Delimiter::Differs,
            Some(_) if at + 1 == delimiter.len() => Delimiter::Complete,
            Some(_) => Delimiter::Within(at + 1),
            None => Delimiter::Absent,
        }
    }
}

/// Characters of prompts and tags.
fn of_smiles(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"[]()=#$:/\\.@+-%*~_".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_text_holds_is_told_from_what_some_hold() {
        let bins: Encoding = "binned-v2:-13,13,0.104".parse().unwrap();
        for content in [">>TITLE<<", "<<", ">>", "><", "<C", "C>", "]>", "<[", "<1]", "1<2", "(<", "a<1"] {
            assert!(!may_hold(content, Encoding::FIXED), "{content}");
        }
        for content in [
            "]<-1",
            ">[",
            "[C]",
            "C",
            "<1.0",
            "0,-",
            "00>=[O]<",
            "[SMILES]",
            ">[/CONFORMER]",
            "](",
            "CC",
            "@@H]",
        ] {
            assert!(may_hold(content, Encoding::FIXED), "{content}");
        }
        for content in ["<", ">", ">>TITLE<<", "1,", "]<"] {
            assert!(!may_hold(content, bins), "{content}");
        }
        for content in ["]125", "001[C]", "12(", "]1", "[nH]"] {
            assert!(may_hold(content, bins), "{content}");
        }
        let codes: Encoding = "fsq:4096".parse().unwrap();
        assert!(may_hold("(<45>[O]<6", codes) && !may_hold(">>", codes));
    }

    #[test]
    fn every_part_of_a_text_is_held() {
        let text = "[SMILES]C/C=C\\N[/SMILES][CONFORMER][13CH3]<-1.0000,2.5000,0.0000>/[C@@H]<1.0000,0.0000,2.0000>%12[/CONFORMER]";
        for start in 0..text.len() {
            for end in start..=text.len() {
                assert!(may_hold(&text[start..end], Encoding::FIXED), "{}", &text[start..end]);
            }
        }
    }
}
