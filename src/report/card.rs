//! The section of a model card that describes an extended tokenizer, in Markdown.

use std::fmt::Write;

use super::design_view::size_label;
use super::format::{hundredths, or_dash, percent, thousands};
use super::promises_view::unchanged_texts;
use drift_core::Encoding;
use drift_core::encoding::Precision;
use drift_tune::design::extension::plain::PlainText;
use drift_tune::design::report::vocabulary::{EmbeddingReport, VocabularyReport};
use drift_tune::design::scheme::grammar::in_words;
use drift_tune::design::{DesignReport, SchemeKind};

/// Returns the text of `MODEL_CARD.md`: how the tokenizer was made, what was checked, and how to fine-tune a model with it.
pub fn model_card(report: &DesignReport) -> String {
    let mut card = String::new();
    // Writing to a string cannot fail.
    let _ = head(&mut card, report)
        .and_then(|()| guarantees(&mut card, report))
        .and_then(|()| drift(&mut card, report))
        .and_then(|()| training(&mut card, &report.vocabulary, report.new_tokens))
        .and_then(|()| provenance(&mut card, report));
    card
}

fn head(card: &mut String, report: &DesignReport) -> std::fmt::Result {
    writeln!(
        card,
        "## Tokenizer\n\n`{}`, extended by drift with {} new tokens, so that every \
         coordinate block {}takes exactly {} tokens{}.\n",
        report.base,
        thousands(report.new_tokens),
        if report.range_angstrom.is_some() { "`<x,y,z>` " } else { "" },
        report.tokens_per_block,
        if report.encoding.open().is_empty() { "" } else { ", brackets included" }
    )?;
    let last = report
        .vocabulary
        .first_new_id
        .map(|first| (first, u64::from(first) + report.new_tokens.saturating_sub(1)));
    writeln!(card, "| | |\n| --- | --- |")?;
    writeln!(card, "| base | `{}` |", report.base)?;
    writeln!(card, "| kind | {}: {} |", report.kind.name(), kind(report.kind))?;
    let examples: Vec<String> =
        report.examples.iter().map(|example| format!("`{}`", example.replace('|', "\\|"))).collect();
    writeln!(card, "| a block is cut like | {} |", examples.join(", "))?;
    writeln!(card, "| which blocks | {}; all others keep the base's tokens |", which_blocks(report))?;
    let reused = report.vocabulary.reused_ids;
    if reused > 0 {
        writeln!(
            card,
            "| new tokens | {}, of which {reused} have the ids of removed tokens: `new_tokens.json` lists them |",
            report.new_tokens
        )?;
    } else if let Some((first, last)) = last {
        writeln!(
            card,
            "| new tokens | {}, ids {first} to {last}; `new_tokens.json` lists them with the base's ids of their texts |",
            report.new_tokens
        )?;
    }
    writeln!(card, "| logit processor | {} |", processor(report))
}

/// Describes the blocks that change.
fn which_blocks(report: &DesignReport) -> String {
    match report.range_angstrom {
        Some(range) => format!(
            "three numbers of {}, each below {} Å in magnitude",
            decimals(report.encoding, report.fewest_decimals),
            range.angstrom()
        ),
        None => format!("those of the encoding `{}`", report.encoding),
    }
}

/// Returns the number of decimals of the numbers in a changed block, in words.
fn decimals(encoding: Encoding, fewest: u64) -> String {
    let (precision, words) = (encoding.precision(), in_words(encoding.precision()));
    match (encoding.is_stripped(), fewest) {
        (false, _) => format!("exactly {words}"),
        (true, 0) => format!("at most {words}, without trailing zeros"),
        (true, _) => format!("{fewest} to {precision} decimals, without trailing zeros"),
    }
}

fn kind(kind: SchemeKind) -> &'static str {
    match kind {
        SchemeKind::Separate => "no token mixes a bracket with anything else",
        SchemeKind::Fused => "brackets may share a token with digits",
    }
}

fn processor(report: &DesignReport) -> String {
    match report.kind {
        SchemeKind::Separate => {
            let bins = report.examples.first().filter(|_| report.range_angstrom.is_none());
            if let Some(example) = bins {
                let block = example.replace('|', "");
                return format!(
                    "a position template, whose placeholder may be any block, such as that of `{block}`; or an automaton \
                     over the text"
                );
            }
            let number = match (report.encoding.is_stripped(), report.fewest_decimals) {
                (false, decimals) => format!("0.{}", "0".repeat(decimals as usize)),
                (true, 0) => "0".to_owned(),
                (true, fewest) => format!("0.{}1", "0".repeat(fewest as usize - 1)),
            };
            format!(
                "a position template, whose placeholder may be any block in the range, such as \
                 `{number},{number},{number}`; or an automaton over the text"
            )
        }
        SchemeKind::Fused => {
            "an automaton over the text; a position template cannot be used, since tokens mix brackets and digits"
                .to_owned()
        }
    }
}

fn guarantees(card: &mut String, report: &DesignReport) -> std::fmt::Result {
    let run = &report.guarantees;
    writeln!(card, "\n### Checked before it was written\n")?;
    writeln!(
        card,
        "- Each of the {} spellings of a number, in all three positions of a block and in {} contexts, {} blocks: always {} \
         tokens.",
        thousands(run.numbers),
        thousands(run.contexts),
        thousands(run.blocks),
        report.tokens_per_block
    )?;
    writeln!(card, "- {} old tokens keep their id and text.", thousands(run.unchanged_tokens))?;
    writeln!(card, "- Each of the {} new tokens occurs in some block.", thousands(run.reached_tokens))?;
    writeln!(card, "- Blocks decode to themselves ({} bytes).", thousands(run.decoded_bytes))?;
    writeln!(
        card,
        "- Blocks out of the range or of another spelling are encoded as by the base ({} texts).",
        thousands(run.fallbacks)
    )?;
    let how = match run.plain_text {
        PlainText::Proved => "proved from the base's pre-tokenizers and vocabulary, and run",
        PlainText::Tried => "not proved for this base's pre-tokenizers, but run",
    };
    writeln!(
        card,
        "- {} takes the same tokens as before: {how} on {} texts, {} bytes.",
        unchanged_texts(report.vocabulary.reused_ids),
        thousands(run.plain_texts),
        thousands(run.plain_bytes)
    )
}

fn drift(card: &mut String, report: &DesignReport) -> std::fmt::Result {
    writeln!(card, "\n### Drift and coverage\n")?;
    writeln!(
        card,
        "Drift is the difference between the tokens of a placeholder and those of a coordinate. In the range it is {} for \
         every block. Measured on {} conformers, {} blocks; over all of them, those out of the range too, a block is {} tokens \
         off on average.\n",
        report.drift,
        thousands(report.corpus.conformers),
        thousands(report.corpus.blocks),
        hundredths(report.corpus.drift_tokens_per_block)
    )?;
    writeln!(
        card,
        "| heavy atoms | conformers | blocks in the range | tokens a conformer | the same, base |"
    )?;
    writeln!(card, "| --- | --- | --- | --- | --- |")?;
    for size in &report.corpus.by_size {
        let (conformers, coverage) = (thousands(size.conformers), percent(size.coverage));
        let own = hundredths(size.tokens_per_conformer);
        let base = or_dash(size.base_tokens_per_conformer, hundredths);
        writeln!(card, "| {} | {conformers} | {coverage} | {own} | {base} |", size_label(size.from))?;
    }
    let (own, base) = (
        hundredths(report.vocabulary.tokens_per_conformer),
        or_dash(report.vocabulary.base_tokens_per_conformer, hundredths),
    );
    let (conformers, coverage) = (thousands(report.corpus.conformers), percent(report.vocabulary.coverage));
    writeln!(card, "| all | {conformers} | {coverage} | {own} | {base} |")
}

/// Describes how to fine-tune a model with the new tokens.
pub(super) fn training(
    card: &mut String,
    vocabulary: &VocabularyReport,
    new_tokens: u64,
) -> std::fmt::Result {
    let (embedding, needed) = (&vocabulary.embedding, vocabulary.embedding_rows);
    writeln!(card, "\n### Adding the tokens to a trained model\n")?;
    writeln!(card, "    drift extend-model --model MODEL --tokenizer DIR -o EXTENDED\n")?;
    writeln!(
        card,
        "writes the whole checkpoint, with rows for the new tokens in the embedding and the LM head; `transformers` loads it \
         as it is. By hand:\n"
    )?;
    writeln!(card, "{}\n", rows_needed(embedding, needed))?;
    let Some(rows) = &vocabulary.rows else {
        return writeln!(card, "Initial rows are made from the model that `--model` names; none was given.");
    };
    writeln!(
        card,
        "`embedding_rows.safetensors` contains rows for the new ids, made from those of `{}`. After loading `model`{}:\n",
        rows.model,
        if embedding.fits == Some(true) { "" } else { " and resizing it" }
    )?;
    writeln!(card, "```python\n{}```\n", loading_script(rows.tables.len() > 1))?;
    for (at, variant) in rows.variants.iter().enumerate() {
        let how = if at == 0 {
            "the mean of the old rows of a token's text, with their mean norm"
        } else {
            "composed digit by digit, each place weighing twice the next, with the same norm"
        };
        writeln!(
            card,
            "- `{}`: {how}. {} of {} new tokens share their row with another.",
            variant.name,
            thousands(variant.shared_rows),
            thousands(new_tokens)
        )?;
    }
    Ok(())
}

/// Returns a script that copies the rows into a model of transformers; into the LM head only if it is a separate table.
fn loading_script(head: bool) -> String {
    let mut script = String::from(
        "from safetensors.torch import load_file\nrows = load_file(\"embedding_rows.safetensors\")\n\
         model.get_input_embeddings().weight.data[rows[\"ids\"]] = rows[\"embed_tokens.digits\"]\n",
    );
    if head {
        script.push_str(
            "model.get_output_embeddings().weight.data[rows[\"ids\"]] = rows[\"lm_head.digits\"]\n",
        );
    }
    script
}

/// Returns whether the embedding must be resized, and to how many rows.
pub(super) fn rows_needed(embedding: &EmbeddingReport, needed: u64) -> String {
    let resize = format!(
        "`model.resize_token_embeddings({})`, the next multiple of 64 ({} for 128)",
        embedding.resize_to.multiple_of_64, embedding.resize_to.multiple_of_128
    );
    let needed = thousands(needed);
    match (embedding.model_rows, embedding.spare_rows, embedding.fits) {
        (Some(rows), Some(spare), Some(true)) => format!(
            "The vocabulary needs {needed} rows; the embedding has {}, of which the base leaves {} unused: do not resize it.",
            thousands(rows),
            thousands(spare)
        ),
        (Some(rows), Some(spare), _) => format!(
            "The vocabulary needs {needed} rows; the embedding has {}, of which the base leaves {} unused. Resize it: {resize}.",
            thousands(rows),
            thousands(spare)
        ),
        _ => format!(
            "The vocabulary needs {needed} rows. If the model's embedding has fewer, resize it: {resize}."
        ),
    }
}

fn provenance(card: &mut String, report: &DesignReport) -> std::fmt::Result {
    let model =
        report.vocabulary.rows.as_ref().map_or(String::new(), |rows| format!(" --model {}", rows.model));
    let reuse = match report.reuse {
        None => "",
        Some("unused") => " --reuse unused",
        Some(_) => " --reuse FILE",
    };
    let seed =
        if report.search.seed == 0 { String::new() } else { format!(" --seed {}", report.search.seed) };
    writeln!(
        card,
        "\n### Made by\n\n    drift train-tokenizer --base {} --kind {} --tokens-per-block {} {}{model}{reuse}{seed} -o DIR\n",
        report.base,
        report.kind.name(),
        report.tokens_per_block,
        asked_blocks(report)
    )?;
    if reuse.ends_with("FILE") {
        writeln!(card, "FILE names the removed tokens, which `new_tokens.json` lists.\n")?;
    }
    let made = &report.provenance;
    writeln!(card, "{} {} ({}), from", made.program, made.version, made.revision)?;
    for input in &made.inputs {
        writeln!(card, "- `{}`, {} bytes, SHA-256 `{}`", input.name, thousands(input.bytes), input.sha256)?;
    }
    Ok(())
}

/// Returns the flags that select the blocks that change.
fn asked_blocks(report: &DesignReport) -> String {
    let (encoding, precision) = (report.encoding, report.encoding.precision());
    let range = report.range_angstrom.map(|range| format!("--range {}", range.angstrom()));
    // The flags for decimals can only describe blocks in brackets with commas; others need `--encoding`.
    let named = match encoding.is_decimal_blocks() && encoding.separator() == "," {
        true if encoding.is_stripped() => Some("--dialect stripped".to_owned()),
        true => None,
        false => Some(format!("--encoding {encoding}")),
    };
    let decimals =
        encoding.is_decimal_blocks() && encoding.separator() == "," && precision != Precision::FOUR;
    let decimals = decimals.then(|| format!("--decimals {precision}"));
    let fewest = encoding.is_stripped().then(|| format!("--fewest-decimals {}", report.fewest_decimals));
    [range, named, decimals, fewest].into_iter().flatten().collect::<Vec<_>>().join(" ")
}
