//! Removes old tokens whose ids new tokens take, so that the embedding does not grow. They are tokens that a user names, or that no
//! text of a corpus uses.
//!
//! Only *leaves* are removed: tokens that are part of no merge. Then a text changes if and only if its tokens include a removed
//! token. A token that is part of merges would also affect texts in which it is merged further. (Users do this by hand; it follows
//! leaf pruning in arXiv 2512.03989.)

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::base::BaseTokenizer;
use super::json::{added_tokens, merged_pair};
use crate::design::measured::sample::whole_text;
use crate::parameter;
use drift_core::{Encoding, Error, Job, Result, Tokenizer};
use drift_data::corpus::Conformers;

/// Which old tokens may be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reuse {
    /// These tokens: their text as in the vocabulary, bare or as a JSON string, or their id, bare or as `id:N`.
    Named(Vec<String>),
    /// The tokens that no text of the corpus uses, largest ids first.
    Unused,
}

impl Reuse {
    /// Returns the name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Reuse::Named(_) => "named",
            Reuse::Unused => "unused",
        }
    }
}

/// A base without some of its tokens.
pub(in crate::design) struct PrunedBase {
    /// The remaining tokenizer.
    pub base: Tokenizer,
    /// The JSON of the remaining tokenizer.
    pub base_json: Value,
    /// The removed tokens, by id.
    pub gone: BTreeMap<u32, String>,
}

/// Removes at most `count` tokens from a base, none of which is in `kept`.
///
/// # Errors
/// If a named token does not exist, is an added token or not made by merges, is part of a merge that stays, or is in `kept`; or if
/// the corpus cannot be read.
pub(in crate::design) fn prune(
    base: BaseTokenizer<'_>,
    reuse: &Reuse,
    count: usize,
    kept: &HashSet<&str>,
    corpus: &dyn Conformers,
    encoding: Encoding,
    job: &Job,
) -> Result<PrunedBase> {
    let BaseTokenizer { tokenizer: base, json: base_json } = base;
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
    // A token may become a leaf only after a token made from it is removed.
    while (all || leaves.len() < count)
        && let Some((&id, _)) =
            // The largest id first: in a BPE vocabulary, it is the token that was learned last.
            waiting.iter().rev().find(|(_, text)| merges.may_go(text) && !kept.contains(&***text))
        && let Some(text) = waiting.remove(&id)
    {
        merges.remove(&text);
        leaves.push((id, text));
    }
    if let Some((id, text)) = waiting.first_key_value().filter(|_| all) {
        return Err(Error::parameter(parameter::REUSE, merges.why_not(*id, text), "leave it out"));
    }
    // More named tokens may be removable than are needed. Only as many are removed as there are new tokens to take their ids.
    let gone: BTreeMap<u32, String> = leaves.into_iter().take(count).collect();
    let json = without(base_json, &gone);
    let bytes = serde_json::to_vec(&json).map_err(|e| Error::internal(&base.name, e))?;
    let left = Tokenizer::from_bytes(&base.name, base.source.clone(), &bytes)?;
    Ok(PrunedBase { base: left, base_json: json, gone })
}

/// Returns the tokens with these names.
fn named(base: &Tokenizer, names: &[String]) -> Result<BTreeMap<u32, String>> {
    let vocabulary = base.vocabulary();
    let by_id = vocabulary.iter().map(|(text, id)| (*id, text)).collect();
    let tokens = NamedTokens { vocabulary: &vocabulary, by_id };
    names
        .iter()
        .map(|name| {
            tokens.find(name)?.ok_or_else(|| {
                let problem = format!("{} has no token {name:?}", base.name);
                Error::parameter(parameter::REUSE, problem, "give texts as in its vocabulary, or ids")
            })
        })
        .collect()
}

/// The tokens of a vocabulary, by text and by id.
struct NamedTokens<'v> {
    vocabulary: &'v HashMap<String, u32>,
    by_id: HashMap<u32, &'v String>,
}

impl NamedTokens<'_> {
    /// Returns the token of this name: its text, bare or as a JSON string, or its id, bare or as `id:N`.
    ///
    /// # Errors
    /// If it is the text of one token and the id of another.
    fn find(&self, name: &str) -> Result<Option<(u32, String)>> {
        let found = match (self.of_text(name), self.of_id(name)) {
            (Some((id, _)), Some((other, text))) if id != other => {
                let problem = format!("{name} is the text of token {id}, and the id of token {text:?}");
                let remedy = format!("write `id:{name}`, or the text in quotes, `\"{name}\"`");
                return Err(Error::parameter(parameter::REUSE, problem, remedy));
            }
            (text, id) => text.or(id),
        };
        Ok(found.or_else(|| self.of_id(name.strip_prefix("id:")?)).or_else(|| self.of_quoted(name)))
    }

    fn of_text(&self, text: &str) -> Option<(u32, String)> {
        Some((*self.vocabulary.get(text)?, text.to_owned()))
    }

    fn of_quoted(&self, quoted: &str) -> Option<(u32, String)> {
        self.of_text(&serde_json::from_str::<String>(quoted).ok()?)
    }

    fn of_id(&self, id: &str) -> Option<(u32, String)> {
        let id = id.parse().ok()?;
        Some((id, (*self.by_id.get(&id)?).clone()))
    }
}

/// Returns the ids that occur in the texts of a corpus, including prompts.
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

/// The merges of a base, by the tokens that they join and make.
struct Merges {
    /// For each token, the number of remaining merges that it is part of.
    parts: HashMap<String, usize>,
    /// For each token, the pairs that make it.
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

    /// Returns whether a token is made by merges, is part of no merge, and is not an added token, so that texts can be written without
    /// it.
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

    /// Removes a token together with the merges that make it.
    fn remove(&mut self, text: &str) {
        for part in self.made.remove(text).into_iter().flatten().flatten() {
            if let Some(uses) = self.parts.get_mut(&part) {
                *uses -= 1;
            }
        }
    }
}

/// Returns a `tokenizer.json` without the removed tokens.
fn without(json: &Value, gone: &BTreeMap<u32, String>) -> Value {
    let mut json = json.clone();
    let texts: HashSet<&str> = gone.values().map(String::as_str).collect();
    let added = added_tokens(&json);
    if let Some(vocabulary) = json["model"]["vocab"].as_object_mut() {
        // Unlisted added tokens get ids starting at the size of the vocabulary, which changes here, so they are listed first.
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
