//! Old tokens whose ids new tokens take, so that an embedding does not grow: those that a user names, or that no text of a corpus
//! uses.
//!
//! Only *leaves* go: tokens that are part of no merge. Then a text changes if and only if that token was among its tokens: a
//! token that merges lead beyond would show in other tokens too. (The users do so by hand; after arXiv 2512.03989, leaf pruning.)

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::json::{added_tokens, merged_pair};
use crate::design::measured::sample::whole_text;
use crate::parameter;
use drift_core::encoding::Encoding;
use drift_core::error::{Error, Result};
use drift_core::job::Job;
use drift_core::tokenizer::Tokenizer;
use drift_data::corpus::Conformers;

/// Which old tokens may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reuse {
    /// These, by id or text as in the vocabulary.
    Named(Vec<String>),
    /// Those that no text of the corpus uses, the newest first.
    Unused,
}

impl Reuse {
    /// As reports have it.
    pub fn name(&self) -> &'static str {
        match self {
            Reuse::Named(_) => "named",
            Reuse::Unused => "unused",
        }
    }
}

/// A base without some of its tokens.
pub(in crate::design) struct Pruned {
    /// What is left of it.
    pub base: Tokenizer,
    /// Its JSON.
    pub base_json: Value,
    /// The tokens that went, by id.
    pub gone: BTreeMap<u32, String>,
}

/// Takes at most `count` tokens out of a base, none of which is in `kept`.
///
/// # Errors
/// If a named token is none, is an added or a basic one, or is part of a merge that stays; if the corpus cannot be read.
pub(in crate::design) fn prune(
    (base, base_json): (&Tokenizer, &Value),
    reuse: &Reuse,
    (count, kept): (usize, &HashSet<&str>),
    (corpus, encoding): (&dyn Conformers, Encoding),
    job: &Job,
) -> Result<Pruned> {
    let mut merges = Merges::of(base, base_json)?;
    let mut waiting: BTreeMap<u32, String> = match reuse {
        Reuse::Named(names) => named(base, names)?,
        Reuse::Unused => {
            let used = used(base, corpus, encoding, job)?;
            let unused = base.vocabulary().into_iter().filter(|(_, id)| !used.contains(id));
            unused.map(|(text, id)| (id, text)).collect()
        }
    };
    let all = matches!(reuse, Reuse::Named(_));
    let mut leaves = Vec::new();
    // A token may be a leaf only once another that is made of it has gone.
    while (all || leaves.len() < count)
        && let Some((&id, _)) =
            // The largest id first: in a vocabulary of merges it is the token that was learned last.
            waiting.iter().rev().find(|(_, text)| merges.may_go(text) && !kept.contains(&***text))
        && let Some(text) = waiting.remove(&id)
    {
        merges.remove(&text);
        leaves.push((id, text));
    }
    if let Some((id, text)) = waiting.first_key_value().filter(|_| all) {
        return Err(Error::parameter(parameter::REUSE, merges.why_not(*id, text), "leave it out"));
    }
    // Of named tokens more may be free than are needed; only as many go as have a new token to take their id.
    let gone: BTreeMap<u32, String> = leaves.into_iter().take(count).collect();
    let json = without(base_json, &gone);
    let bytes = serde_json::to_vec(&json).map_err(|e| Error::internal(&base.name, e))?;
    let left = Tokenizer::from_bytes(&base.name, base.source.clone(), &bytes)?;
    Ok(Pruned { base: left, base_json: json, gone })
}

/// The tokens of these names.
fn named(base: &Tokenizer, names: &[String]) -> Result<BTreeMap<u32, String>> {
    let vocabulary = base.vocabulary();
    let by_id: HashMap<u32, &String> = vocabulary.iter().map(|(text, id)| (*id, text)).collect();
    let find = |name: &String| {
        // A text goes first: `12` is the token of that text, and an id only where no token is spelled so.
        let by_text = vocabulary.get(name).map(|id| (*id, name.clone()));
        let by_number = || name.parse().ok().and_then(|id| Some((id, (*by_id.get(&id)?).clone())));
        by_text.or_else(by_number).ok_or_else(|| {
            let problem = format!("{} has no token {name:?}", base.name);
            Error::parameter(parameter::REUSE, problem, "give texts as in its vocabulary, or ids")
        })
    };
    names.iter().map(find).collect()
}

/// The ids that the texts of a corpus take, prompts and all.
fn used(base: &Tokenizer, corpus: &dyn Conformers, encoding: Encoding, job: &Job) -> Result<HashSet<u32>> {
    let mut used = HashSet::new();
    corpus.read(job, &mut |batch| {
        for conformer in &batch.conformers {
            used.extend(base.ids(&whole_text(conformer, encoding))?);
        }
        Ok(())
    })?;
    Ok(used)
}

/// The merges of a base, by what they join and what they make.
struct Merges {
    /// How often each token is part of a merge that is left.
    parts: HashMap<String, usize>,
    /// The pairs that make a token.
    made: HashMap<String, Vec<[String; 2]>>,
    added: BTreeSet<String>,
}

impl Merges {
    fn of(base: &Tokenizer, json: &Value) -> Result<Self> {
        let mut merges = Merges {
            parts: HashMap::new(),
            made: HashMap::new(),
            added: added_tokens(json).into_iter().map(|(_, content)| content).collect(),
        };
        for merge in json["model"]["merges"].as_array().into_iter().flatten() {
            let pair = merged_pair(merge).ok_or_else(|| {
                Error::input(&base.name, "has a merge that is not a pair", "give a BPE tokenizer")
            })?;
            for part in &pair {
                *merges.parts.entry(part.clone()).or_default() += 1;
            }
            merges.made.entry(pair.concat()).or_default().push(pair);
        }
        Ok(merges)
    }

    /// Whether a token is made by merges, is part of none, and is no added token: texts can do without it.
    fn may_go(&self, text: &str) -> bool {
        let is_leaf = self.parts.get(text).is_none_or(|uses| *uses == 0);
        is_leaf && self.made.contains_key(text) && !self.added.contains(text)
    }

    fn why_not(&self, id: u32, text: &str) -> String {
        let token = format!("token {id}, {text:?},");
        if self.added.contains(text) {
            format!("{token} is an added token")
        } else if self.made.contains_key(text) {
            let uses = self.parts.get(text).unwrap_or(&0);
            format!("{token} is a part of {uses} other tokens, or a piece of a block")
        } else {
            format!("{token} is made by no merge: no text could be written without it")
        }
    }

    /// Takes a token out, and with it the merges that make it.
    fn remove(&mut self, text: &str) {
        for part in self.made.remove(text).into_iter().flatten().flatten() {
            if let Some(uses) = self.parts.get_mut(&part) {
                *uses -= 1;
            }
        }
    }
}

/// A `tokenizer.json` without tokens that were taken out.
fn without(json: &Value, gone: &BTreeMap<u32, String>) -> Value {
    let mut json = json.clone();
    let texts: HashSet<&str> = gone.values().map(String::as_str).collect();
    let added = added_tokens(&json);
    if let Some(vocabulary) = json["model"]["vocab"].as_object_mut() {
        // Added tokens that are not listed get ids from the size of the vocabulary on, which is another now.
        for (id, content) in added {
            vocabulary.entry(content).or_insert(id.into());
        }
        vocabulary.retain(|text, _| !texts.contains(text.as_str()));
    }
    if let Some(merges) = json["model"]["merges"].as_array_mut() {
        merges.retain(|merge| merged_pair(merge).is_none_or(|pair| !texts.contains(pair.concat().as_str())));
    }
    json
}
