//! Extends a tokenizer for the numbers of a skeleton, checks it, and counts the tokens of texts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use serde_json::{Value, json};

use super::cuts::{CutNumbers, cut_numbers, most_pieces};
use super::numbers::{CHARACTERS, NumberForm, SlotNumbers, escaped};
use super::report::{PromptCounts, SLOTS_SCHEMA, SlotCut, SlotGuarantees, SlotReport};
use crate::design::base_files::BaseFiles;
use crate::design::extension::base::{BaseTokenizer, BaseVocabulary};
use crate::design::extension::block_context::ids_around_blocks;
use crate::design::extension::checker::{Isolated, TokenizerPair};
use crate::design::extension::extend::{OTHER_BASE, WHOLE_NUMBERS, add_tokens, pre_tokenizer};
use crate::design::extension::guard::guard;
use crate::design::extension::json::{added_tokens, regex, split, splits, written};
use crate::design::extension::layout::{Alphabet, BaseLayout};
use crate::design::extension::new_tokens::list;
use crate::design::extension::plan::Aim;
use crate::design::extension::strip::another_way;
use crate::design::extension::texts::CONTEXTS;
use crate::design::report::trained::TrainedTokenizer;
use crate::design::report::vocabulary::EmbeddingReport;
use crate::design::rows::initial::Rows;
use crate::design::scheme::expression::CUT_MARK;
use crate::design::scheme::space::{BaseTokens, MAX_NEW_TOKENS};
use crate::parameter;
use drift_core::io::hash_bytes;
use drift_core::skeleton::{Neighbours, NumberPlace, Skeleton};
use drift_core::tokenizer::TextPart;
use drift_core::{Error, Job, Result, Tokenizer};
use drift_data::skeleton_tokens::{SkeletonTexts, SkeletonTokens};

/// A user's request for a tokenizer whose numbers of a skeleton take equally many tokens.
pub struct SlotRequest {
    /// The skeleton.
    pub skeleton: Skeleton,
    /// The file of prompts, for whose texts tokens are counted.
    pub prompts: PathBuf,
    /// The tokens of a number, or the most new tokens.
    pub aim: Aim,
}

/// Finds the numbers of texts: a tokenizer that removes them.
struct NumberRemover {
    tokenizer: Tokenizer,
    spaces: AddedSpaces,
}

/// What a base puts before a text, and before one that begins with a space.
type AddedSpaces = [&'static str; 2];

impl Isolated for NumberRemover {
    fn taken_apart(&self, text: &str) -> Result<String> {
        let mut text = text.to_owned();
        // What stood around a number may be one without it.
        loop {
            let space = self.spaces[usize::from(text.starts_with(' '))];
            let left = self.tokenizer.pre_tokens(&format!("{space}{text}"))?.concat();
            let left = left.strip_prefix(space).unwrap_or(&left);
            if left == text {
                return Ok(text);
            }
            text = left.to_owned();
        }
    }
}

impl NumberRemover {
    fn new([isolating, alone]: &[String; 2], spaces: AddedSpaces) -> Result<Self> {
        let mut split = split(&format!("{isolating}|\\A{alone}\\z"));
        split["behavior"] = "Removed".into();
        let model = json!({"type": "WordLevel", "vocab": {"x": 0}, "unk_token": "x"});
        let json = json!({"version": "1.0", "added_tokens": [], "pre_tokenizer": split, "model": model});
        let bytes = json.to_string().into_bytes();
        let tokenizer = Tokenizer::from_bytes("numbers", hash_bytes("numbers", &bytes), &bytes)?;
        Ok(NumberRemover { tokenizer, spaces })
    }
}

impl SlotRequest {
    /// Extends a base and checks the result.
    ///
    /// # Errors
    /// If the base cannot be extended, the goal cannot be reached, a check fails, or a prompt lacks what the skeleton needs.
    pub(in crate::design) fn extend(
        &self,
        base: &Tokenizer,
        base_json: &Value,
        beside: &BaseFiles,
        job: &Job,
    ) -> Result<(TrainedTokenizer<SlotReport>, Option<Rows>)> {
        let alphabet = Alphabet::from_json(base_json);
        let layout = layout(base, base_json)?;
        let spaces = [added_space(base, "x")?, added_space(base, " x")?];
        let numbers = SlotNumbers::of(&self.skeleton, !spaces[0].is_empty())?;
        let base_counts = self.count(base, job)?;
        let vocabulary = BaseVocabulary::of(base, alphabet);
        let (tokens, cut) = self.reach(&numbers, &vocabulary)?;
        job.check()?;
        let of_base = BaseTokenizer { tokenizer: base, json: base_json };
        let (json, new_tokens) = written_into(of_base, layout, &numbers, &cut, &vocabulary)?;
        let remover = NumberRemover::new(&numbers.patterns(), spaces)?;
        let name = format!("{}-{}-{tokens}", base.name, self.skeleton.name);
        let (extended, tokenizer_json) = written(&name, &json)?;
        refuse_added(base, base_json, &numbers)?;
        let (isolated, contexts) = (&remover, &CONTEXTS[..]);
        let pair = TokenizerPair { base, extended: &extended, isolated, contexts, alphabet };
        let known = extended.vocabulary();
        let check = SlotCheck { pair, numbers: &numbers, cut: &cut, vocabulary: &vocabulary, known };
        let guarantees = check.run(base_json, &new_tokens, job)?;
        let texts: Vec<(u32, String)> = new_tokens.iter().map(|new| new.0).zip(cut.new.clone()).collect();
        let new = list(base, &texts, &BTreeMap::new())?;
        let rows = beside.new_rows(base, &new)?;
        let counts = self.count(&extended, job)?;
        let embedding_rows = u64::from(extended.rows());
        let prompts = counts.prompts.into_iter().zip(base_counts.prompts);
        let report = SlotReport {
            schema: SLOTS_SCHEMA,
            provenance: base_counts.provenance,
            base: base.name.clone(),
            skeleton: self.skeleton.name.clone(),
            tokens_per_slot: tokens as u64,
            new_tokens: new_tokens.len() as u64,
            first_new_id: new_tokens.first().map(|token| token.0),
            embedding_rows,
            embedding: EmbeddingReport::new(embedding_rows, base.rows().into(), beside.model_rows()),
            rows: rows.as_ref().map(|rows| rows.report.clone()),
            slots: numbers.forms.iter().map(|form| check.example(form, &self.skeleton)).collect(),
            constant: counts.constant,
            prompts: prompts
                .map(|(own, base)| PromptCounts {
                    prompt: own.prompt,
                    tokens: own.tokens,
                    base_tokens: base.tokens,
                })
                .collect(),
            guarantees,
        };
        Ok((TrainedTokenizer { tokenizer_json, new_tokens: new, report, unchanged: false }, rows))
    }

    /// Counts the tokens of the prompts' texts.
    fn count(&self, tokenizer: &Tokenizer, job: &Job) -> Result<SkeletonTokens> {
        let (skeleton, prompts) = (self.skeleton.clone(), self.prompts.clone());
        SkeletonTexts { skeleton, prompts, tokenizer: tokenizer.clone(), begun: String::new() }.tokens(job)
    }

    /// Returns the tokens of a number and the cuts that reach the goal.
    fn reach(&self, numbers: &SlotNumbers, vocabulary: &BaseVocabulary<'_>) -> Result<(usize, CutNumbers)> {
        let most = most_pieces(numbers);
        let name = &self.skeleton.name;
        match self.aim {
            Aim::TokensPerBlock(tokens) if !(1..=most).contains(&tokens) => {
                let problem = format!("not every number of {name} has {tokens} parts that can be tokens");
                let remedy = if most == 1 { "give 1".to_owned() } else { format!("give 1 to {most}") };
                Err(Error::parameter(parameter::TOKENS_PER_BLOCK, problem, remedy))
            }
            Aim::TokensPerBlock(tokens) => {
                let found = cut_numbers(numbers, tokens, vocabulary).map(|cut| (tokens, cut));
                found.ok_or_else(|| {
                    let problem = format!(
                        "the numbers of {name} are too many for {tokens} tokens each: more than {MAX_NEW_TOKENS} new ones, \
                         or such that the base has in other texts"
                    );
                    let remedy = "give more tokens, or the slots of the skeleton smaller ranges";
                    Error::parameter(parameter::TOKENS_PER_BLOCK, problem, remedy)
                })
            }
            Aim::Budget(budget) => {
                let mut all =
                    (1..=most).filter_map(|tokens| Some((tokens, cut_numbers(numbers, tokens, vocabulary)?)));
                all.find(|(_, cut)| cut.new.len() as u64 <= budget).ok_or_else(|| {
                    let problem = format!("the numbers of {name} need more than {budget} new tokens");
                    Error::parameter(parameter::BUDGET, problem, "give more, or the slots smaller ranges")
                })
            }
        }
    }
}

/// Writes the tokens of numbers into a base. Returns its JSON, and the new tokens as its vocabulary spells them.
fn written_into(
    base: BaseTokenizer<'_>,
    mut layout: BaseLayout,
    numbers: &SlotNumbers,
    cut: &CutNumbers,
    vocabulary: &BaseVocabulary<'_>,
) -> Result<(Value, Vec<(u32, String)>)> {
    let mut json = base.json.clone();
    let new: Vec<String> = cut.new.iter().map(|piece| vocabulary.spelled(piece)).collect();
    let new_tokens = add_tokens(&mut json, &base.tokenizer.name, &new, &[])?;
    json["model"]["ignore_merges"] = true.into();
    // Like a split of the base it leaves numbers alone.
    layout.own.extend(guard(base, CHARACTERS, &new)?.as_deref().map(split));
    let [isolating, alone] = numbers.patterns();
    let mut patterns = [isolating, alone, cut.pattern(numbers)];
    if Alphabet::from_json(base.json) == Alphabet::Text {
        patterns = patterns.map(|pattern| pattern.replace(&escaped(" "), "\u{2581}"));
    }
    json["pre_tokenizer"] = pre_tokenizer(&layout, &patterns, None);
    Ok((json, new_tokens))
}

/// Returns the space that a base puts before a text, if it does.
///
/// # Errors
/// If its pre-tokenizer refuses a text.
fn added_space(base: &Tokenizer, text: &str) -> Result<&'static str> {
    let mut marks = 0;
    for part in base.sections(text)? {
        if let TextPart::Piece(piece) = part {
            marks += piece.matches('\u{2581}').count();
        }
    }
    Ok(if marks > text.matches(' ').count() { " " } else { "" })
}

/// Returns the layout of a base.
fn layout(base: &Tokenizer, json: &Value) -> Result<BaseLayout> {
    if splits(&json["pre_tokenizer"]).into_iter().filter_map(regex).any(|regex| regex.starts_with(CUT_MARK)) {
        return Err(another_way(&base.name));
    }
    let layout =
        BaseLayout::from_json(json).map_err(|problem| Error::input(&base.name, problem, OTHER_BASE))?;
    let is_text = Alphabet::from_json(json) == Alphabet::Text;
    let mut own = layout.own.iter().filter(|member| member["type"] == "Split" && regex(member).is_none());
    // Where spaces are marked, a split by spaces finds none.
    let may_cut = own.any(|member| !is_text || member["pattern"]["String"] != " ")
        || layout.before.iter().any(|member| member["type"] != "Metaspace" || member["split"] != false);
    if may_cut {
        let problem = "has a pre-tokenizer that may cut white space off numbers";
        return Err(Error::input(&base.name, problem, OTHER_BASE));
    }
    Ok(layout)
}

/// Refuses a base one of whose added tokens may be a part of a number.
fn refuse_added(base: &Tokenizer, json: &Value, numbers: &SlotNumbers) -> Result<()> {
    match added_tokens(json).into_iter().find(|added| numbers.may_hold(&added.1)) {
        None => Ok(()),
        Some((_, content)) => {
            let problem = format!("the added token `{}` can be a part of a number", content.escape_debug());
            // Such tokens are matched before the white space of a number could be isolated with it.
            let is_space = content.trim().is_empty();
            let remedy =
                if is_space { "give a skeleton with other white space before numbers" } else { OTHER_BASE };
            Err(Error::input(&base.name, problem, remedy))
        }
    }
}

/// An extension that is checked.
struct SlotCheck<'c> {
    pair: TokenizerPair<'c>,
    numbers: &'c SlotNumbers,
    cut: &'c CutNumbers,
    vocabulary: &'c BaseVocabulary<'c>,
    /// The ids of the extended vocabulary.
    known: HashMap<String, u32>,
}

impl SlotCheck<'_> {
    fn run(&self, base_json: &Value, new_tokens: &[(u32, String)], job: &Job) -> Result<SlotGuarantees> {
        let Self { pair, numbers, .. } = self;
        let unchanged_tokens = pair.vocabulary(new_tokens)?;
        let plain_text = match pair.alphabet {
            Alphabet::Bytes => pair.plain_pieces(base_json, new_tokens)?,
            Alphabet::Text => {
                let plain_text = pair.plain_sections(base_json)?;
                self.sections_behind()?;
                plain_text
            }
        };
        let (mut count, reached) = (0, Mutex::new(HashSet::new()));
        let mut like_numbers = Vec::new();
        for form in &numbers.forms {
            let all = &form.numbers;
            for place in numbers.places.iter().filter(|place| place.slot == form.slot) {
                for around in surroundings(place) {
                    job.check()?;
                    all.par_iter().try_for_each(|number| {
                        let ids = self.number(form, &place.space, number, &around)?;
                        reached.lock().unwrap_or_else(PoisonError::into_inner).extend(ids);
                        Ok(())
                    })?;
                    count += all.len() as u64;
                }
                for number in all.iter().step_by(all.len().div_ceil(50)) {
                    let text = format!("{}{number}", place.space);
                    like_numbers.extend([
                        format!("x{text}0"),
                        format!("{text}{number}"),
                        format!("a{text}.x"),
                    ]);
                    like_numbers.extend([format!("({text})"), format!("x{number}x"), format!("1{number}.")]);
                }
            }
        }
        let reached = reached.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some((id, piece)) = new_tokens.iter().find(|(id, _)| !reached.contains(id)) {
            return Err(pair.broken(&format!("no number reaches new token {id}, {piece:?}")));
        }
        for text in &self.cut.new {
            let own = [format!("x{text}"), format!("{text}x"), format!("1.{text}"), text.clone()];
            like_numbers.extend(own);
        }
        like_numbers.par_iter().try_for_each(|text| {
            let is_other = pair.isolated.taken_apart(text)? == *text;
            if is_other { pair.same_ids(text).map(|_| ()) } else { Ok(()) }
        })?;
        let (plain_texts, plain_bytes) = pair.plain_texts(plain_text, job)?;
        Ok(SlotGuarantees {
            unchanged_tokens,
            reached_tokens: new_tokens.len() as u64,
            numbers: count,
            plain_texts: plain_texts + like_numbers.len() as u64,
            plain_bytes,
            plain_text,
        })
    }

    /// Checks that a number in a place takes exactly its pieces. Returns their ids.
    fn number(
        &self,
        form: &NumberForm,
        space: &str,
        number: &str,
        [before, after]: &[String; 2],
    ) -> Result<Vec<u32>> {
        let Self { pair, cut, vocabulary, known, .. } = self;
        let text = format!("{space}{number}");
        let pieces = cut.pieces(form, space, &text);
        if pieces.len() > 1 && vocabulary.may_not_be_added(&text) {
            return Err(Error::input(
                &pair.base.name,
                format!("`{}`: {WHOLE_NUMBERS}", text.escape_debug()),
                OTHER_BASE,
            ));
        }
        let ids = pieces.iter().map(|piece| known.get(&vocabulary.spelled(piece)).copied());
        let ids = ids.collect::<Option<Vec<u32>>>().ok_or_else(|| pair.broken("a piece is missing"))?;
        let whole = format!("{before}{}{after}", self.written(before, &text));
        let around = match pair.alphabet {
            Alphabet::Bytes => vec![pair.base.ids(before)?, pair.base.ids(after)?],
            Alphabet::Text => ids_around_blocks(pair.base, &whole, &vocabulary.spelled(&text))?,
        };
        let expected = around.join(&ids[..]);
        if pair.extended.ids(&whole)? != expected || !pair.decodes(&expected, &whole)? {
            return Err(pair.broken(&format!("{whole:?} does not take the pieces of its number")));
        }
        Ok(ids)
    }

    /// Returns the text of a number behind another text, without the space that the base adds.
    fn written<'t>(&self, before: &str, text: &'t str) -> &'t str {
        let begins = before.is_empty() && self.numbers.adds_space;
        text.strip_prefix(' ').filter(|_| begins).unwrap_or(text)
    }

    /// Checks texts behind a number, for all that may stand behind numbers.
    fn sections_behind(&self) -> Result<()> {
        let mut known_after = BTreeSet::new();
        for place in self.numbers.places.iter().filter(|place| known_after.insert(&place.after)) {
            let Some(form) = self.numbers.forms.iter().find(|form| form.slot == place.slot) else { continue };
            let around = &surroundings(place)[0];
            let ids = self.number(form, &place.space, &form.numbers[0], around)?;
            let (before, text) = (&around[0], format!("{}{}", place.space, form.numbers[0]));
            let around = [&**before, self.written(before, &text), &self.vocabulary.spelled(&text)];
            self.pair.sections_behind(around, &ids)?;
        }
        Ok(())
    }

    fn example(&self, form: &NumberForm, skeleton: &Skeleton) -> SlotCut {
        let space = self.numbers.spaces(form).into_iter().next_back().unwrap_or_default();
        let number = &form.numbers[form.numbers.len() / 2];
        let example = self.cut.pieces(form, space, &format!("{space}{number}")).join("|");
        SlotCut { slot: skeleton.slots[form.slot].name.clone(), decimals: form.decimals as u64, example }
    }
}

/// Returns texts that may stand before and behind a number of a place: the first and the last of each.
fn surroundings(place: &NumberPlace) -> Vec<[String; 2]> {
    let mut all: Vec<[String; 2]> = Vec::new();
    for before in first_and_last(&place.before) {
        all.extend(first_and_last(&place.after).into_iter().map(|after| [before.clone(), after]));
    }
    all.dedup();
    all
}

fn first_and_last(neighbours: &Neighbours) -> Vec<String> {
    let Some(neighbours) = neighbours else { return vec![String::new(), "x".to_owned()] };
    let ends = [neighbours.first(), neighbours.last()].into_iter().flatten();
    ends.map(|byte| byte.map_or_else(String::new, |byte| char::from(byte).to_string())).collect()
}
