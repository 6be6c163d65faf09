//! Options: what a placeholder comes to in replay, the number of its FREE tokens after each kind of atom.
//!
//! F depends on the placeholder and on what stands before the block: `]<-` keeps its `-` apart, other endings may
//! merge it. Atoms after which every placeholder takes the same F form one *left group*; two placeholders with the
//! same F in every left group do the same harm and are one option.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::grammar::{Shape, Space, tie_key};
use crate::error::{Error, Result};
use crate::tokenizer::{Counter, MAX_BLOCK_TOKENS};

/// F by left group.
pub type Vector = Vec<u8>;

/// One option and the placeholders that come to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholders {
    /// F by left group.
    pub vector: Vector,
    /// The placeholder of the search space that comes to it, best by the order of ties; `None` for options that only
    /// bounds need.
    pub best: Option<(Shape, String)>,
}

/// Left groups and options of one tokenizer over the atoms of a corpus.
pub struct Options {
    /// Left group of each atom, by its text with brackets.
    groups: HashMap<Box<str>, u8>,
    /// One atom of each group.
    representatives: Vec<Box<str>>,
    /// All options: those of the search space first, then those of extra candidates, then shifts for bounds.
    pub list: Vec<Placeholders>,
    by_vector: HashMap<Vector, usize>,
    /// Option of each shape.
    by_shape: HashMap<Shape, usize>,
}

/// Placeholders whose F tells left groups apart.
const PROBES: [&str; 4] = ["0.0000,0.0000,0.0000", "-0.0000,0.0000,0.0000", "0,0,0", "-10,0,0"];

impl Options {
    /// Groups `atoms` and counts every placeholder of the search space, the `candidates`, and whatever integers bounds
    /// need.
    ///
    /// # Errors
    /// If a candidate cannot be encoded.
    pub fn new(
        counter: &Counter<'_>,
        space: Space,
        atoms: &BTreeSet<Box<str>>,
        candidates: &[String],
    ) -> Result<Self> {
        let mut signatures: BTreeMap<Vector, u8> = BTreeMap::new();
        let mut groups = HashMap::new();
        let mut representatives: Vec<Box<str>> = Vec::new();
        for atom in atoms {
            let mut signature = Vec::new();
            for probe in PROBES.iter().copied().chain(candidates.iter().map(String::as_str)) {
                signature.push(free_tokens(counter, probe, atom)?);
            }
            let next = u8::try_from(signatures.len()).map_err(|_| {
                let problem = "more than 256 kinds of atoms that merge differently with a block";
                Error::input(&counter.tokenizer().name, problem, "this tokenizer cannot be fitted")
            })?;
            let group = *signatures.entry(signature).or_insert_with(|| {
                representatives.push(atom.clone());
                next
            });
            groups.insert(atom.clone(), group);
        }
        let mut options = Options {
            groups,
            representatives,
            list: Vec::new(),
            by_vector: HashMap::new(),
            by_shape: HashMap::new(),
        };
        for shape in space.all() {
            let text = space.text(shape);
            let vector = options.vector(counter, &text)?;
            let index = options.insert(vector, Some((shape, text)));
            options.by_shape.insert(shape, index);
        }
        for candidate in candidates {
            let vector = options.vector(counter, candidate)?;
            options.insert(vector, None);
        }
        options.close_under_shifts();
        Ok(options)
    }

    /// F of any placeholder by left group.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn vector(&self, counter: &Counter<'_>, placeholder: &str) -> Result<Vector> {
        self.representatives.iter().map(|atom| free_tokens(counter, placeholder, atom)).collect()
    }

    /// How many left groups there are.
    pub fn group_count(&self) -> usize {
        self.representatives.len()
    }

    /// The left group of an atom; atoms that were not in the corpus have none.
    pub fn group(&self, atom: &str) -> Option<u8> {
        self.groups.get(atom).copied()
    }

    /// The option of a vector.
    pub fn find(&self, vector: &Vector) -> Option<usize> {
        self.by_vector.get(vector).copied()
    }

    /// The option of a shape.
    pub fn of_shape(&self, shape: Shape) -> usize {
        self.by_shape[&shape]
    }

    /// The options that a placeholder of the search space comes to.
    pub fn attainable(&self) -> impl Iterator<Item = (usize, &str)> {
        self.list
            .iter()
            .enumerate()
            .filter_map(|(index, option)| Some((index, option.best.as_ref()?.1.as_str())))
    }

    fn insert(&mut self, vector: Vector, placeholder: Option<(Shape, String)>) -> usize {
        let index = *self.by_vector.entry(vector.clone()).or_insert_with(|| {
            self.list.push(Placeholders { vector, best: None });
            self.list.len() - 1
        });
        let best = &mut self.list[index].best;
        if let Some(new) = placeholder
            && best.as_ref().is_none_or(|old| tie_key(&new.1) < tie_key(&old.1))
        {
            *best = Some(new);
        }
        index
    }

    /// Adds every vector that differs from a known one by the same integer in all left groups: a bound over these
    /// holds for placeholders outside the search space too.
    fn close_under_shifts(&mut self) {
        let known: Vec<Vector> = self.list.iter().map(|option| option.vector.clone()).collect();
        for vector in known {
            let lowest = vector.iter().copied().min().unwrap_or(0);
            let highest = vector.iter().copied().max().unwrap_or(0);
            let span = MAX_BLOCK_TOKENS as u8 - (highest - lowest).min(MAX_BLOCK_TOKENS as u8);
            for base in 0..span {
                self.insert(vector.iter().map(|f| f - lowest + base).collect(), None);
            }
        }
    }
}

/// F of a placeholder after an atom, in the middle of a text.
fn free_tokens(counter: &Counter<'_>, placeholder: &str, atom: &str) -> Result<u8> {
    let mut counts = Vec::with_capacity(3);
    counter.count(&format!("[C]<{placeholder}>{atom}<{placeholder}>[C]<{placeholder}>"), &mut counts)?;
    match counts.get(1) {
        Some(&count) if counts.len() == 3 && usize::from(count) < MAX_BLOCK_TOKENS => Ok(count as u8),
        _ => Err(Error::input(
            format!("placeholder `{placeholder}`"),
            "not the inside of one block, or too long",
            "give three numbers such as 0.0000,0.0000,0.0000",
        )),
    }
}
