//! Reads plain text with one conformer per line: `[SMILES]…[/SMILES][CONFORMER]…[/CONFORMER]<eos>` or bare enriched SMILES.
//!
//! The tags are those of 3DMolGen. Special tokens around the text (`<eos>`, `<|endoftext|>`, `</s>`) are ignored.

use std::sync::Arc;

use super::{Conformer, Context, Emit, Source, lines};
use drift_core::encoding::{Encoding, Fixed, Precision, Reading, TrailingZeros};
use drift_core::error::{Result, excerpt};
use drift_core::text::{self, CONFORMER_CLOSE, CONFORMER_OPEN, Enriched, SMILES_CLOSE, SMILES_OPEN};

/// Reads a stream with one text per line.
///
/// # Errors
/// If the stream is damaged, the job was cancelled, or `emit` fails.
pub(crate) fn read(source: Source<'_>, context: Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
    lines::read(source, context, emit, |line, reading| conformer(line, None, reading))
}

/// Whether a line begins with a tag or an atom, after any special tokens.
pub(super) fn begins_like_text(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(&line[..line.len().min(256)]);
    let mut start = without_leading_tokens(&line).bytes();
    start.next() == Some(b'[') && start.next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'*')
}

/// Parses a text with or without tags into a conformer. The molecule's name is `name`, else the tagged SMILES, else the skeleton.
pub(super) fn conformer(text: &str, name: Option<&str>, reading: Reading) -> Result<Conformer, String> {
    let (smiles, body) = untag(text)?;
    let parsed = parse(body, reading)?;
    let skeleton: Arc<str> = parsed.skeleton.into();
    let molecule = name.or(smiles).map_or_else(|| skeleton.clone(), Arc::from);
    reading.keep(&parsed.coordinates)?;
    Ok(Conformer { written: parsed.written, ..Conformer::new(molecule, skeleton, parsed.coordinates) })
}

/// Parses a text that states its own encoding or is written in the requested one; otherwise tries to parse it as decimals.
fn parse(body: &str, reading: Reading) -> Result<Enriched, String> {
    let wanted = match text::parse(body, reading) {
        Ok(parsed)
            if reading.texts.is_none()
                && reading.encoding.is_decimal()
                && looks_like_bins(body, &parsed, reading.precision()) =>
        {
            return Err(
                "its numbers look like bins, and it does not name its encoding; give the encoding".to_owned()
            );
        }
        Ok(parsed) => return Ok(parsed),
        Err(error) => error,
    };
    // Texts that do not name their encoding have commas.
    let usual = reading.encoding.is_decimal_blocks() && reading.encoding.separator() == ",";
    if usual && reading.texts.is_none_or(Encoding::is_decimal) {
        return Err(wanted.to_string());
    }
    if let Some(texts) = reading.texts {
        return Err(format!("{wanted}{}", what_it_would_be(body, texts)));
    }
    // Decimals are read as without a request, so that more of them than the encoding writes are refused or cut likewise.
    let precision = if reading.encoding.is_decimal() { reading.precision() } else { Precision::MOST };
    let decimals = Encoding::decimal(TrailingZeros::Removed, precision);
    let parsed =
        text::parse(body, Reading { texts: Some(decimals), ..reading }).map_err(|_| wanted.to_string())?;
    let plain = Reading { encoding: decimals, texts: None, ..reading };
    let coordinates = text::parse(body, plain).map_err(|e| e.to_string())?;
    if looks_like_bins(body, &coordinates, Precision::MOST) {
        return Err(format!("it looks like bins of another encoding than {}", reading.encoding));
    }
    Ok(parsed)
}

/// For a message: what a text seems to be that does not parse in the encoding it should have.
fn what_it_would_be(body: &str, wanted: Encoding) -> &'static str {
    let decimals = Encoding::decimal(TrailingZeros::Removed, Precision::MOST);
    match text::parse(body, Reading::new(decimals)) {
        Ok(parsed) if !looks_like_bins(body, &parsed, Precision::MOST) && !wanted.is_decimal() => {
            "; it is written in decimals"
        }
        Ok(_) => "; it looks like bins of another encoding",
        Err(_) => "",
    }
}

/// Whether text that parsed as decimals looks like bins: no block contains a decimal point, and some coordinate is farther from the
/// origin than a molecule could reach. False if the precision has no decimals, since then nothing distinguishes the two.
fn looks_like_bins(body: &str, parsed: &Enriched, precision: Precision) -> bool {
    let angstrom = precision.units_per_angstrom();
    let far = |values: &[Fixed; 3]| values.iter().any(|value| (value / angstrom).abs() >= 100);
    let mut blocks =
        body.split('<').skip(1).map(|rest| rest.split_once('>').map_or(rest, |(inside, _)| inside));
    precision != Precision::ZERO
        && parsed.coordinates.iter().any(far)
        && blocks.all(|block| !block.contains('.'))
}

/// Returns the tagged SMILES, if any, and the conformer's text without tags and special tokens.
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
        return Ok((smiles, without_trailing_tokens(rest)));
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

/// Whether `<inside>` is a special token rather than a block: it has letters, but no comma and no space.
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
            (body.to_owned(), "[C]<>=[O]<>"),
            (format!("{body}<|endoftext|>"), "[C]<>=[O]<>"),
            (format!("{body} </s><pad><pad>\t"), "[C]<>=[O]<>"),
            (format!("[CONFORMER]{body}[/CONFORMER]"), "[C]<>=[O]<>"),
            (format!("[SMILES]C=O[/SMILES][CONFORMER]{body}[/CONFORMER]<eos>"), "C=O"),
            (format!("<|begin_of_text|>[SMILES]C=O[/SMILES] [CONFORMER] {body} [/CONFORMER] <eos>"), "C=O"),
            (format!("[SMILES]C=O[/SMILES]{body}"), "C=O"),
            (format!("[SMILES][/SMILES]{body}"), "[C]<>=[O]<>"),
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
