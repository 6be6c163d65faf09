//! Blocks of the corpus beside a placeholder, token by token: what the page of `fit` draws.

use super::borders::inside;
use super::forcing::Choice;
use super::report::{BlockDrift, CandidateReport};
use drift_core::text::{self, skeleton};
use drift_core::tokenizer::BlockTokens;
use drift_core::{Encoding, Result, Tokenizer};
use drift_data::corpus::Conformer;

/// The largest number of placeholders beside the chosen one for which a block is drawn.
const OTHERS: usize = 3;

/// The conformers from which blocks are drawn, encoded.
pub(super) struct DrawnBlocks<'c> {
    tokenizer: &'c Tokenizer,
    encoding: Encoding,
    texts: Vec<DrawnText<'c>>,
}

/// A conformer with the tokens of its blocks.
struct DrawnText<'c> {
    conformer: &'c Conformer,
    text: String,
    blocks: Vec<BlockTokens>,
}

impl<'c> DrawnBlocks<'c> {
    /// Encodes the first conformers of a corpus.
    ///
    /// # Errors
    /// If the tokenizer cannot encode one.
    pub(super) fn new(tokenizer: &'c Tokenizer, encoding: Encoding, first: &'c [Conformer]) -> Result<Self> {
        let texts = first.iter().map(|conformer| {
            let mut text = String::new();
            text::append(&conformer.skeleton, &conformer.coordinates, encoding, &mut text);
            let text = text::tagged(&text);
            let blocks = inside(tokenizer, &text, encoding)?.blocks;
            Ok(DrawnText { conformer, text, blocks })
        });
        Ok(DrawnBlocks { tokenizer, encoding, texts: texts.collect::<Result<_>>()? })
    }

    /// Blocks beside the chosen placeholder: one that loses tokens and one with junk, or else one that fits. Then one beside each of a
    /// few other candidates that drift and force nothing.
    ///
    /// # Errors
    /// As [`DrawnBlocks::first`].
    pub(super) fn beside(
        &self,
        chosen: &Choice,
        candidates: &[CandidateReport],
        forcing: &[Choice],
    ) -> Result<Vec<BlockDrift>> {
        let (text, free) = (&*chosen.placeholder, u32::from(chosen.free));
        let mut drawn = Vec::new();
        drawn.extend(self.first(text, |tokens| tokens > free)?);
        drawn.extend(self.first(text, |tokens| tokens < free)?);
        if drawn.is_empty() {
            drawn.extend(self.first(text, |tokens| tokens == free)?);
        }
        let others = candidates.iter().filter(|other| *other.placeholder != *text);
        let others = others.filter(|other| forcing.iter().all(|one| one.placeholder != other.placeholder));
        for CandidateReport { placeholder, free_tokens, .. } in others.take(OTHERS) {
            drawn.extend(self.first(placeholder, |tokens| tokens != *free_tokens)?);
        }
        Ok(drawn)
    }

    /// Returns the first block whose number of tokens `matches`, beside a placeholder; `None` if there is none.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the template.
    pub(super) fn first(
        &self,
        placeholder: &str,
        matches: impl Fn(u32) -> bool,
    ) -> Result<Option<BlockDrift>> {
        let found = self.texts.iter().find_map(|text| {
            let at = text.blocks.iter().position(|block| matches(u32::from(block.free)))?;
            Some((text, at))
        });
        let Some((real, at)) = found else { return Ok(None) };
        let template = skeleton::fill(&real.conformer.skeleton, placeholder, self.encoding);
        let template = text::tagged(&template);
        let forced = inside(self.tokenizer, &template, self.encoding)?.blocks;
        let ranges = self.encoding.slot_ranges(&real.text);
        let (Some(range), Some(slots)) = (ranges.get(at), forced.get(at)) else { return Ok(None) };
        let block = real.text[range.clone()].to_owned();
        Ok(Some(BlockDrift {
            placeholder: placeholder.to_owned(),
            slots: pieces(placeholder, slots),
            tokens: pieces(&block, &real.blocks[at]),
            block,
        }))
    }
}

/// Returns the text of each token of a block.
fn pieces(block: &str, tokens: &BlockTokens) -> Vec<String> {
    let ends = tokens.ends.iter().take(usize::from(tokens.free)).map(|end| usize::from(*end));
    let mut start = 0;
    let pieces = ends.map(|end| {
        let piece = String::from_utf8_lossy(block.as_bytes().get(start..end).unwrap_or_default());
        start = end;
        piece.into_owned()
    });
    pieces.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_block_that_loses_a_token_is_drawn() {
        let tokenizer = Tokenizer::load(std::path::Path::new("qwen-like")).unwrap();
        let coordinates = vec![[12_345, 0, 5_000], [-5_421, 12_034, -131]];
        let conformer = Conformer::new("CO".into(), "[C]<>[O]<>".into(), coordinates);
        let conformers = [conformer];
        let drawn = DrawnBlocks::new(&tokenizer, Encoding::FIXED, &conformers).unwrap();
        let lost = drawn.first("0.0000,0.0000,0.0000", |tokens| tokens > 20).unwrap().unwrap();
        assert_eq!((lost.slots.len(), lost.tokens.len()), (20, 21));
        assert_eq!((&*lost.block, &*lost.left()), ("-0.5421,1.2034,-0.0131", "-0.5421,1.2034,-0.013"));
        assert_eq!(lost.tokens.concat(), lost.block);
        assert_eq!(drawn.first("0.0000,0.0000,0.0000", |tokens| tokens > 22).unwrap(), None);
    }
}
