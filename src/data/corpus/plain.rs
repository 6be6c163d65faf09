//! Parses plain text of one conformer: `[SMILES]…[/SMILES][CONFORMER]…[/CONFORMER]<eos>` or bare enriched SMILES.
//!
//! The tags are those of 3DMolGen. Special tokens around the text (`<eos>`, `<|endoftext|>`, `</s>`) are ignored.

use std::sync::Arc;

use super::Conformer;
use drift_core::Encoding;
use drift_core::encoding::{Precision, Reading, TrailingZeros};
use drift_core::error::excerpt;
use drift_core::text::{self, CONFORMER_CLOSE, CONFORMER_OPEN, EnrichedText, SMILES_CLOSE, SMILES_OPEN};

/// Returns whether a line begins with a tag or an atom, after any special tokens.
pub(super) fn begins_like_text(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(&line[..line.len().min(256)]);
    let mut start = without_leading_tokens(&line).bytes();
    start.next() == Some(b'[') && start.next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'*')
}

/// Parses a text with or without tags into a conformer. The molecule's name is `name`, else the tagged SMILES, else the SMILES of the
/// text's own skeleton.
pub(super) fn conformer(text: &str, name: Option<&str>, reading: Reading) -> Result<Conformer, String> {
    let (smiles, body) = untag(text)?;
    let own = reading.texts.unwrap_or(reading.encoding);
    let letters = [own.open(), own.separator(), own.close()].concat();
    let parsed = match letters.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        // The last slot looks like a special token, so nothing is taken away from a text that is whole as it is.
        true => parse(body, reading).or_else(|_| parse(without_trailing_tokens(body), reading))?,
        false => parse(without_trailing_tokens(body), reading)?,
    };
    let skeleton: Arc<str> = parsed.skeleton.into();
    let molecule = name.or(smiles).map_or_else(|| text::skeleton::smiles(&skeleton).into(), Arc::from);
    reading.keep(&parsed.coordinates)?;
    Ok(Conformer {
        written: parsed.written,
        encoding: reading.as_written.then_some(parsed.encoding),
        ..Conformer::new(molecule, skeleton, parsed.coordinates)
    })
}

/// Decimals of any length, for texts that do not state their encoding.
fn decimals() -> Encoding {
    Encoding::decimal(TrailingZeros::Removed, Precision::MOST)
}

/// Parses a text that states its own encoding or is written in the requested one; otherwise tries to parse it as decimals.
fn parse(body: &str, reading: Reading) -> Result<EnrichedText, String> {
    let own = reading.texts.unwrap_or(reading.encoding);
    let wanted = match text::parse(body, reading) {
        Ok(_) if reading.texts.is_none() && is_binned(body, own) => {
            return Err(
                "its numbers look like bins, and it does not name its encoding; give the encoding".to_owned()
            );
        }
        Ok(parsed) => return Ok(parsed),
        Err(error) => error.to_string(),
    };
    if let Some(texts) = reading.texts {
        let hint = if texts.is_decimal_blocks() { "" } else { what_it_would_be(body, texts) };
        return Err(format!("{wanted}{hint}"));
    }
    // The separator is seen in the text.
    let spaced = own.is_decimal_blocks() && own.separator() == " ";
    let others = match own.is_decimal_blocks() {
        true => vec![own.with_spaces(!spaced)],
        false => vec![decimals(), decimals().with_spaces(true)],
    };
    let as_other = |texts: &Encoding| {
        Some((*texts, text::parse(body, Reading { texts: Some(*texts), ..reading }).ok()?))
    };
    match others.iter().find_map(as_other) {
        Some((texts, _)) if is_binned(body, texts) => {
            Err(format!("it looks like bins of another encoding than {}", reading.encoding))
        }
        Some((_, parsed)) => Ok(parsed),
        None => Err(wanted),
    }
}

/// For a message: what a text seems to be that does not parse in the encoding it should have.
fn what_it_would_be(body: &str, wanted: Encoding) -> &'static str {
    match text::parse(body, Reading::new(decimals())) {
        Ok(_) if !is_binned(body, decimals()) && !wanted.is_decimal() => "; it is written in decimals",
        Ok(_) => "; it looks like bins of another encoding",
        Err(_) => "",
    }
}

/// [`looks_like_bins`] for the slots of a text.
fn is_binned(body: &str, encoding: Encoding) -> bool {
    let contents: Vec<&str> = encoding.slot_ranges(body).into_iter().map(|range| &body[range]).collect();
    looks_like_bins(&contents, encoding)
}

/// Returns whether the contents of slots that parse as decimals look like bins: none contains a decimal point, and some coordinate is
/// farther from the origin than a molecule could reach. False if the numbers have no decimals, since then nothing distinguishes the two.
pub(crate) fn looks_like_bins(contents: &[&str], encoding: Encoding) -> bool {
    let far = |number: &str| number.trim_start_matches('-').len() >= 3 && number.parse::<i64>().is_ok();
    encoding.decimals() > 0
        && contents.iter().all(|content| !content.contains('.'))
        && contents.iter().any(|content| content.split(encoding.separator()).any(far))
}

/// Returns the tagged SMILES, if any, and the conformer's text without tags; special tokens may follow it.
fn untag(text: &str) -> Result<(Option<&str>, &str), String> {
    let mut rest = without_leading_tokens(text);
    let mut smiles = None;
    if let Some(after) = rest.strip_prefix(SMILES_OPEN) {
        let (inside, after) =
            after.split_once(SMILES_CLOSE).ok_or_else(|| format!("{SMILES_OPEN} without {SMILES_CLOSE}"))?;
        smiles = Some(inside.trim()).filter(|s| !s.is_empty());
        rest = after.trim_start();
    }
    let Some(after) = rest.strip_prefix(CONFORMER_OPEN) else {
        return Ok((smiles, rest.trim_end()));
    };
    let (body, after) = after
        .split_once(CONFORMER_CLOSE)
        .ok_or_else(|| format!("{CONFORMER_OPEN} without {CONFORMER_CLOSE}"))?;
    match without_leading_tokens(after) {
        "" => Ok((smiles, body.trim())),
        more => Err(format!("text after {CONFORMER_CLOSE}: {}", excerpt(more.as_bytes()))),
    }
}

fn without_leading_tokens(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        match text.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
            Some((inside, after)) if is_special(inside) => text = after,
            _ => return text,
        }
    }
}

fn without_trailing_tokens(mut text: &str) -> &str {
    loop {
        text = text.trim_end();
        match text.strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) {
            Some((before, inside)) if is_special(inside) => text = before,
            _ => return text,
        }
    }
}

/// Returns whether `<inside>` is a special token rather than a block: it has letters, but no comma and no space.
fn is_special(inside: &str) -> bool {
    inside.len() <= 64
        && inside.bytes().any(|b| b.is_ascii_alphabetic())
        && inside.bytes().all(|b| b.is_ascii_graphic() && b != b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_special_tokens_are_left_out() {
        let body = "[C]<1.0,2,3>=[O]<0,0,-0.5>";
        for (text, molecule) in [
            (body.to_owned(), "C=O"),
            (format!("{body}<|endoftext|>"), "C=O"),
            (format!("{body} </s><pad><pad>\t"), "C=O"),
            (format!("[CONFORMER]{body}[/CONFORMER]"), "C=O"),
            (format!("[SMILES]C=O[/SMILES][CONFORMER]{body}[/CONFORMER]<eos>"), "C=O"),
            (format!("<|begin_of_text|>[SMILES]C=O[/SMILES] [CONFORMER] {body} [/CONFORMER] <eos>"), "C=O"),
            (format!("[SMILES]C=O[/SMILES]{body}"), "C=O"),
            (format!("[SMILES][/SMILES]{body}"), "C=O"),
        ] {
            let conformer =
                conformer(&text, None, Reading::default()).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!((&*conformer.molecule, &*conformer.skeleton), (molecule, "[C]<>=[O]<>"), "{text}");
            assert_eq!(conformer.coordinates[1], [0, 0, -5_000]);
            assert!(begins_like_text(text.as_bytes()));
        }
        assert_eq!(&*conformer(body, Some("name"), Reading::default()).unwrap().molecule, "name");
    }

    #[test]
    fn texts_without_an_encoding_have_commas_whatever_is_written() {
        let body = "[C]<1.0000,2.5000,3.0000>[O]<0.0000,0.0000,-0.5000>";
        let spaces: Encoding = "stripped-spaces".parse().unwrap();
        let read = conformer(body, None, Reading::new(spaces)).unwrap();
        assert_eq!(read.coordinates, [[10_000, 25_000, 30_000], [0, 0, -5_000]]);
        let spaced = body.replace(',', " ");
        assert_eq!(conformer(&spaced, None, Reading::new(spaces)).unwrap().coordinates, read.coordinates);
        // More decimals than asked for are refused, or cut, as with commas.
        let long = "[C]<1.00005,2,3>";
        assert!(conformer(long, None, Reading::new(spaces)).is_err());
        let cut = Reading { cut: true, ..Reading::new(spaces) };
        assert_eq!(conformer(long, None, cut).unwrap().coordinates, [[10_000, 20_000, 30_000]]);
    }

    #[test]
    fn numbers_with_a_point_are_no_bins_however_large() {
        let bins = "[C]<190,12,5>[O]<3,0,204>";
        assert!(conformer(bins, None, Reading::default()).unwrap_err().contains("look like bins"));
        for decimals in ["[C]<0.0000,0.0000,100.0000>", "[C]<190,12,5>[O]<3,0,204.0>"] {
            assert!(conformer(decimals, None, Reading::default()).is_ok(), "{decimals}");
        }
        // A point outside the blocks says nothing of them.
        let salt = "[Na+]<190,12,5>.[Cl-]<3,0,204>";
        assert!(conformer(salt, None, Reading::default()).is_err());
        let whole = Reading::new(Encoding::decimal(TrailingZeros::Removed, Precision::ZERO));
        assert!(conformer(bins, None, Reading { texts: None, ..whole }).is_ok());
    }

    #[test]
    fn broken_texts_are_refused() {
        for (text, reason) in [
            ("[SMILES]C=O", "[SMILES] without [/SMILES]"),
            ("[CONFORMER][C]<1,2,3>", "[CONFORMER] without [/CONFORMER]"),
            ("[CONFORMER][C]<1,2,3>[/CONFORMER][SMILES]", "text after [/CONFORMER]: `[SMILES]`"),
            ("[SMILES]C[/SMILES]<eos>", "byte 0: no atom"),
            ("[C]<1,2>", "byte 4: block contains 2 numbers, not three"),
            ("[C]<1,2,nan>", "byte 4: number `nan`: not a number of the form -?digits[.digits]"),
        ] {
            assert_eq!(conformer(text, None, Reading::default()).unwrap_err(), reason, "{text}");
        }
    }
}
