//! Drift, drawn: a block of the corpus beside a placeholder, position by position.

use super::html::Section;
use super::token_row::{CellKind, TokenCell, TokenRow};
use drift_core::Encoding;
use drift_tune::placeholder::BlockDrift;

/// Adds the drawings of a result.
pub(super) fn drawn_blocks(section: &mut Section, drawn: &[BlockDrift], encoding: Encoding) {
    if drawn.is_empty() {
        return;
    }
    section.heading("The drift of a block").paragraph(
        "The first block of the corpus for which the numbers of tokens differ, in its context. A template has a slot for each \
         token of the placeholder; the model wants to write the tokens of the real block.",
    );
    for block in drawn {
        section.paragraph(&said(block)).tokens(&rows(block, encoding));
    }
}

/// Returns the rows of a drawing: the slots, what the model wants, and what is written.
fn rows(block: &BlockDrift, encoding: Encoding) -> Vec<TokenRow> {
    let (slots, tokens) = (block.slots.len(), block.tokens.len());
    let close = encoding.close().chars().next().map(|close| TokenCell::new(close, CellKind::Copy));
    let wanted = block.tokens.iter().enumerate();
    let wanted = wanted
        .map(|(at, token)| TokenCell::new(token, if at < slots { CellKind::Real } else { CellKind::Lost }));
    let kept = block.tokens.iter().take(slots).map(|token| TokenCell::new(token, CellKind::Free));
    let junk = (tokens..slots).map(|_| TokenCell::new("?", CellKind::Junk));
    let placeholder = block.slots.iter().map(|token| TokenCell::new(token, CellKind::Slot));
    vec![
        TokenRow { name: "the placeholder".to_owned(), cells: placeholder.chain(close.clone()).collect() },
        TokenRow { name: "the model wants".to_owned(), cells: wanted.collect() },
        TokenRow { name: "it can write".to_owned(), cells: kept.chain(junk).chain(close).collect() },
    ]
}

/// Returns what happens to the block, in words.
fn said(block: &BlockDrift) -> String {
    let (slots, tokens) = (block.slots.len(), block.tokens.len());
    let counts = format!("{slots} slots of `{}` for {tokens} tokens", block.placeholder);
    match slots.cmp(&tokens) {
        std::cmp::Ordering::Less => format!(
            "{counts}: of `{}` the template leaves `{}`, and nothing says so.",
            block.block,
            block.left()
        ),
        std::cmp::Ordering::Equal => format!("{counts}: `{}` is written whole.", block.block),
        std::cmp::Ordering::Greater => {
            format!("{counts}: after `{}` the model must write {} more.", block.block, slots - tokens)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stand_below_the_slots_that_they_take() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let kinds = |block: &BlockDrift| -> Vec<Vec<CellKind>> {
            let rows = rows(block, Encoding::FIXED).into_iter();
            rows.map(|row| row.cells.into_iter().map(|cell| cell.kind).collect()).collect()
        };
        use CellKind::{Copy, Free, Junk, Lost, Real, Slot};
        let lost = BlockDrift {
            placeholder: "0,".to_owned(),
            block: "-1,".to_owned(),
            slots: words(&["0", ","]),
            tokens: words(&["-", "1", ","]),
        };
        assert_eq!(kinds(&lost), [vec![Slot, Slot, Copy], vec![Real, Real, Lost], vec![Free, Free, Copy]]);
        assert!(said(&lost).contains("of `-1,` the template leaves `-1`"));
        let junk = BlockDrift { slots: lost.tokens.clone(), tokens: lost.slots.clone(), ..lost };
        assert_eq!(kinds(&junk)[2], [Free, Free, Junk, Copy]);
        assert!(said(&junk).contains("must write 1 more"));
    }
}
