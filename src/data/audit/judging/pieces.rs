//! Finds the conformers of a text: with or without tags, behind worked examples, several in one text.

use std::borrow::Cow;

use drift_core::text::{CONFORMER_CLOSE, CONFORMER_OPEN, SMILES_CLOSE, SMILES_OPEN, tagged};

/// Special tokens of 3DMolGen's models that may end a text without tags.
const ENDS: [&str; 6] = ["<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "<|pad|>", "</s>"];

/// Returns the text behind the worked examples of a prompt. An example is a whole document, `[SMILES]…[CONFORMER]…[/CONFORMER]`, and a
/// line break. So a `[SMILES]` behind `[/CONFORMER]` and a line break begins the next document, and the last of these is the target.
pub(crate) fn without_examples(text: &str) -> &str {
    let begins = |(at, _): &(usize, &str)| {
        let before = text[..*at].trim_end();
        before.ends_with(CONFORMER_CLOSE) && text[before.len()..*at].contains('\n')
    };
    text.rmatch_indices(SMILES_OPEN).find(begins).map_or(text, |(at, _)| &text[at..])
}

/// Returns the conformers of a text, each between its tags, in the form that [`judge`](super::super::judge()) takes. There is at least
/// one, which may be empty.
///
/// - Text before the answer is dropped: worked examples and the prompt.
/// - A text with `[/CONFORMER]` but no opening tag has its opening tag in the prompt.
/// - A text without conformer tags is one conformer, without the special tokens behind it.
/// - A conformer that is opened and not closed stays unclosed: its text did not end.
pub(crate) fn conformers_in(text: &str) -> Vec<Cow<'_, str>> {
    let text = without_examples(text);
    let prompt = text.split_once(SMILES_OPEN).and_then(|(_, rest)| rest.split_once(SMILES_CLOSE));
    let answer = prompt.map_or(text, |(_, rest)| rest);
    let mut opened = answer.match_indices(CONFORMER_OPEN).map(|(at, _)| at).peekable();
    // Text before the first opening tag is a conformer only if it closes one that the prompt opened.
    let head = &answer[..opened.peek().copied().unwrap_or(answer.len())];
    let mut conformers = Vec::new();
    if head.contains(CONFORMER_CLOSE) {
        conformers.push(Cow::Owned(format!("{CONFORMER_OPEN}{}", closed(head))));
    } else if opened.peek().is_none() {
        conformers.push(Cow::Owned(tagged(without_end(head))));
    }
    while let Some(at) = opened.next() {
        let end = opened.peek().copied().unwrap_or(answer.len());
        conformers.push(Cow::Borrowed(closed(&answer[at..end])));
    }
    conformers
}

/// Returns the text up to and including the closing tag, if there is one.
fn closed(text: &str) -> &str {
    text.find(CONFORMER_CLOSE).map_or(text, |at| &text[..at + CONFORMER_CLOSE.len()])
}

/// Returns a text without trailing white space and special tokens.
fn without_end(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(rest) = ENDS.iter().find_map(|end| text.strip_suffix(end)) {
        text = rest.trim_end();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_and_without_tags() {
        let one = "[CONFORMER][C]<1,2,3>[/CONFORMER]";
        for text in [
            one,
            "[C]<1,2,3>",
            " [C]<1,2,3><|im_end|>\n",
            "[C]<1,2,3>[/CONFORMER]<|endoftext|>",
            "<|pad|>[SMILES]C[/SMILES][CONFORMER][C]<1,2,3>[/CONFORMER]<|endoftext|>",
            "[SMILES]C[/SMILES][C]<1,2,3>",
            "[SMILES]CO[/SMILES][CONFORMER][C]<9,9,9>[O]<8,8,8>[/CONFORMER]\n[SMILES]C[/SMILES][CONFORMER][C]<1,2,3>[/CONFORMER]",
        ] {
            assert_eq!(conformers_in(text), [one], "{text}");
        }
        assert_eq!(conformers_in("[CONFORMER][C]<1,2"), ["[CONFORMER][C]<1,2"]);
        assert_eq!(conformers_in(""), ["[CONFORMER][/CONFORMER]"]);
    }

    #[test]
    fn several_conformers_of_one_text() {
        let text = "[CONFORMER]a[/CONFORMER][CONFORMER]b[/CONFORMER] [CONFORMER]c";
        let expected = ["[CONFORMER]a[/CONFORMER]", "[CONFORMER]b[/CONFORMER]", "[CONFORMER]c"];
        assert_eq!(conformers_in(text), expected);
        // The first was opened by the prompt.
        assert_eq!(conformers_in(&text["[CONFORMER]".len()..]), expected);
        // What is no example stays: another molecule behind the answer, without a line break.
        assert_eq!(without_examples("[CONFORMER]a[/CONFORMER][SMILES]C[/SMILES]").len(), 42);
    }
}
