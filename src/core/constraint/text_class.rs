//! The part of an answer that a token belongs to: an atom, a bond, a number, or only brackets. Used to log the probability of each
//! part.

use serde::{Deserialize, Serialize};

/// The class of a token's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextClass {
    /// Only `[`, `]`, `<` and `>`.
    Bracket,
    /// Bonds, branches, ring digits and dots.
    Bond,
    /// The text between `[` and `]`.
    Atom,
    /// The text between `<` and `>`, signs and commas included.
    Number,
    /// `[CONFORMER]` or `[/CONFORMER]`, EOS, or text outside of both tags.
    Tag,
}

crate::named!(TextClass { Bracket: "bracket", Bond: "bond", Atom: "atom", Number: "number", Tag: "tag" });

/// Returns the class of every byte of an answer, `[CONFORMER]…[/CONFORMER]`.
pub fn byte_classes(text: &str) -> Vec<TextClass> {
    let bytes = text.as_bytes();
    let mut classes = Vec::with_capacity(bytes.len());
    let mut inside = TextClass::Bond;
    while let Some(&byte) = bytes.get(classes.len()) {
        let rest = &text.as_bytes()[classes.len()..];
        // A tag is recognised only outside of brackets and blocks.
        let tag = [crate::text::CONFORMER_OPEN, crate::text::CONFORMER_CLOSE]
            .into_iter()
            .find(|tag| inside == TextClass::Bond && rest.starts_with(tag.as_bytes()));
        if let Some(tag) = tag {
            classes.extend(std::iter::repeat_n(TextClass::Tag, tag.len()));
            continue;
        }
        let (class, then) = match (inside, byte) {
            (TextClass::Bond, b'[') => (TextClass::Bracket, TextClass::Atom),
            (TextClass::Bond, b'<') => (TextClass::Bracket, TextClass::Number),
            (TextClass::Atom, b']') | (TextClass::Number, b'>') => (TextClass::Bracket, TextClass::Bond),
            // Generated text may contain unmatched closing brackets.
            (TextClass::Bond, b']' | b'>') => (TextClass::Bracket, TextClass::Bond),
            _ => (inside, inside),
        };
        classes.push(class);
        inside = then;
    }
    classes
}

/// Returns the class of a token that covers `range` of an answer: the highest class among its bytes, in the order tag, number, atom,
/// bond, bracket. So `]<-`, which decides a sign, is a number, and `>[` is a bracket.
pub fn token_class(bytes: &[TextClass], range: std::ops::Range<usize>) -> TextClass {
    // EOS covers no byte and counts as a tag.
    bytes.get(range).and_then(|bytes| bytes.iter().max()).copied().unwrap_or(TextClass::Tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_tokens_are_classed() {
        let text = "[CONFORMER][C]<-1,2,3>=[13CH3]<4,5,6>1[/CONFORMER]";
        let bytes = byte_classes(text);
        let class = |part: &str| {
            let at = text.find(part).unwrap();
            token_class(&bytes, at..at + part.len())
        };
        for (part, expected) in [
            ("[CONFORMER]", TextClass::Tag),
            ("[C", TextClass::Tag),
            ("C]<", TextClass::Atom),
            ("]<-", TextClass::Number),
            ("1,2", TextClass::Number),
            (">=[", TextClass::Bond),
            ("13CH3", TextClass::Atom),
            ("3]<", TextClass::Atom),
            (">1", TextClass::Bond),
            ("[/CONFORMER]", TextClass::Tag),
        ] {
            assert_eq!(class(part), expected, "{part}");
        }
        assert_eq!(token_class(&bytes, 11..12), TextClass::Bracket);
        assert_eq!(token_class(&bytes, text.len()..text.len()), TextClass::Tag);
    }
}
