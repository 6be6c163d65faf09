//! Reads molecules from the pickles that GEOM and its users exchange.
//!
//! Layouts that occur in practice, all read by one walk over the values:
//!
//! - GEOM's `rdkit_folder/*/*.pickle`: a dictionary with `smiles` and `conformers`, a list of dictionaries, each
//!   with the molecule under `rd_mol`;
//! - test sets: a dictionary from SMILES to a list of molecules, or to a dictionary of either kind;
//! - a list of molecules, or of such dictionaries, or of pairs of SMILES and molecules.
//!
//! Each molecule gets the SMILES nearest to it on the path from the root: a `smiles` entry of the dictionary that contains it, its
//! key in a dictionary if the key can be a SMILES, or its neighbour in a tuple.

use crate::corpus::pickle::{NodeId, Object, Pickle, Role, Value};
use crate::corpus::rdkit::{self, RdkitMolecule};
use drift_core::error::escaped;

/// A molecule in a pickle.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundMolecule {
    /// The SMILES that the pickle gives it.
    pub smiles: Option<String>,
    /// SMILES of the isomers listed in `sub_smiles_counts` beside the molecule, with their counts. The molecule is one of them, and
    /// the pickle's own SMILES pools them.
    pub sub_smiles: Vec<(String, u64)>,
    /// The outermost key on the path to it that is text, is not the SMILES, and is not a layout word such as `conformers`.
    pub name: Option<String>,
    /// The molecule, or why it could not be read. An object of an unknown class is reported here too, because it may contain a
    /// molecule.
    pub molecule: Result<RdkitMolecule, String>,
    /// Its position in Python notation: `['CCO'][2]`. A long path is truncated at its front.
    pub place: String,
}

/// The keys under which a dictionary states its molecule, in order of preference.
const SMILES_KEYS: [&str; 5] = ["smiles", "geom_smiles", "canonical_smiles", "smi", "SMILES"];

/// The keys under which layouts store molecules, which are not names.
const LAYOUT_KEYS: [&str; 10] = [
    "conformers",
    "confs",
    "conformer",
    "rd_mol",
    "rdmol",
    "mol",
    "mols",
    "molecule",
    "molecules",
    "generations",
];

/// The key under which 3DMolGen's test sets count the isomers that a GEOM key pools.
const SUB_SMILES: &str = "sub_smiles_counts";

/// The largest number of isomers of one key that are considered.
const MOST_SUB_SMILES: usize = 64;

/// The number of steps of a path, and the number of characters of a key, in messages.
const SHOWN_STEPS: usize = 8;
const SHOWN_KEY: usize = 80;

/// Molecules that occur more than once in a pickle may be read again until this many times the pickle's size has been read.
const MOST_AGAIN: usize = 64;

/// Longer text, in bytes, is never taken for a SMILES or a key. A pickle can refer to one long text very often, and examining it
/// each time would take too long.
const LONGEST_TEXT: usize = 4096;

/// Returns the molecules of a pickle in file order. Each is read when the iterator reaches it, so that a large test set is never in
/// memory twice. A container that the pickle shares is visited once, a molecule at each of its positions.
pub(crate) fn molecules<'p, 'a>(pickle: &'p Pickle<'a>) -> impl Iterator<Item = FoundMolecule> + use<'p, 'a> {
    Walk::new(pickle)
}

struct Walk<'p, 'a> {
    pickle: &'p Pickle<'a>,
    /// The values still to visit, the next one at the end.
    todo: Vec<Visit>,
    /// One entry per value of the pickle: whether it has been put on `todo`.
    seen: Vec<bool>,
    /// The number of bytes of molecules that may still be read again.
    again: usize,
    /// The containers entered so far, for reporting positions: each by its parent and the step from there.
    trail: Vec<(usize, Step)>,
}

/// A value to visit, with its context.
#[derive(Clone, Copy)]
struct Visit {
    id: NodeId,
    smiles: Option<NodeId>,
    /// The value that counts its isomers.
    sub_smiles: Option<NodeId>,
    parent: usize,
    step: Step,
    /// Whether it has been visited before.
    is_again: bool,
}

#[derive(Clone, Copy)]
enum Step {
    Root,
    Index(usize),
    Key(NodeId),
    Part(&'static str),
}

impl<'p, 'a> Walk<'p, 'a> {
    fn new(pickle: &'p Pickle<'a>) -> Self {
        let seen = vec![false; pickle.value_count()];
        let again = pickle.length().saturating_mul(MOST_AGAIN);
        let mut walk = Self { pickle, todo: Vec::new(), seen, again, trail: Vec::new() };
        let root = Visit {
            id: pickle.root(),
            smiles: None,
            sub_smiles: None,
            parent: 0,
            step: Step::Root,
            is_again: false,
        };
        walk.plan(root);
        walk
    }

    /// Schedules a value if it can contain a molecule and has not been visited; a molecule is scheduled at each occurrence.
    fn plan(&mut self, visit: Visit) {
        let holds = matches!(
            self.pickle[visit.id],
            Value::List(_) | Value::Tuple(_) | Value::Set(_) | Value::Dict(_) | Value::Object(_)
        );
        let is_new = holds && !std::mem::replace(&mut self.seen[visit.id.index()], true);
        if is_new || holds && self.is_molecule(visit.id) {
            self.todo.push(Visit { is_again: !is_new, ..visit });
        }
    }

    fn is_molecule(&self, id: NodeId) -> bool {
        matches!(&self.pickle[id], Value::Object(object) if object.class.role() == Some(Role::Molecule))
    }

    /// Visits a container: its contents are scheduled next, in order.
    fn enter(&mut self, visit: Visit) {
        let parent = self.trail.len();
        self.trail.push((visit.parent, visit.step));
        let planned = self.todo.len();
        let from = |smiles| Visit { smiles, parent, ..visit };
        match &self.pickle[visit.id] {
            Value::List(items) | Value::Set(items) => self.plan_items(items, from(visit.smiles)),
            Value::Tuple(items) => {
                let mut named = items.iter().copied().filter(|&id| self.is_smiles(id));
                // If two texts of a tuple could be SMILES, neither is certain to be that of the molecule.
                let smiles = named.next().filter(|_| named.next().is_none());
                self.plan_items(items, from(smiles.or(visit.smiles)));
            }
            Value::Dict(entries) => self.plan_entries(entries, from(visit.smiles)),
            Value::Object(object) => self.plan_object(object, from(visit.smiles)),
            _ => {}
        }
        // Values are taken from the end of the list.
        self.todo[planned..].reverse();
    }

    fn plan_items(&mut self, items: &[NodeId], visit: Visit) {
        for (index, &id) in items.iter().enumerate() {
            self.plan(Visit { id, step: Step::Index(index), ..visit });
        }
    }

    fn plan_entries(&mut self, entries: &[(NodeId, NodeId)], visit: Visit) {
        // A dictionary's own SMILES entry takes precedence over the key under which the dictionary is stored.
        let own = SMILES_KEYS.iter().find_map(|name| {
            let (_, value) = entries.iter().find(|(key, _)| self.text(*key) == Some(name))?;
            self.text(*value).map(|_| *value)
        });
        let counted =
            entries.iter().find(|(key, _)| self.text(*key) == Some(SUB_SMILES)).map(|(_, value)| *value);
        let visit = Visit { sub_smiles: counted.or(visit.sub_smiles), ..visit };
        for &(key, id) in entries {
            let named = self.is_smiles(key).then_some(key);
            self.plan(Visit { id, smiles: named.or(own).or(visit.smiles), step: Step::Key(key), ..visit });
        }
    }

    fn plan_object(&mut self, object: &Object, visit: Visit) {
        self.plan_entries(&object.entries, visit);
        self.plan_items(&object.items, visit);
        self.plan(Visit { id: object.args, step: Step::Part("args"), ..visit });
        if let Some(state) = object.state {
            self.plan(Visit { id: state, step: Step::Part("state"), ..visit });
        }
    }

    fn is_smiles(&self, id: NodeId) -> bool {
        self.text(id).is_some_and(may_be_smiles)
    }

    /// Returns the text of a value, if it is short enough to be a SMILES or a key.
    fn text(&self, id: NodeId) -> Option<&'p str> {
        let length = match &self.pickle[id] {
            Value::Str(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => return None,
        };
        if length <= LONGEST_TEXT { self.pickle.text(id) } else { None }
    }

    /// Returns the first argument of the object's class.
    fn argument(&self, object: &Object) -> Option<&'p Value<'a>> {
        match &self.pickle[object.args] {
            Value::Tuple(args) => args.first().map(|&id| &self.pickle[id]),
            _ => None,
        }
    }

    /// Reads the molecule of an object: its bytes are the first argument of the object's class.
    fn found(&mut self, visit: Visit, object: &Object) -> FoundMolecule {
        let molecule = match self.argument(object) {
            Some(Value::Bytes(bytes)) if visit.is_again && bytes.len() > self.again => {
                Err("the same molecule again: the pickle repeats molecules too often".to_owned())
            }
            Some(Value::Bytes(bytes)) => {
                // A molecule is read at each of its positions, but one that is referred to very often would take too long.
                self.again -= if visit.is_again { bytes.len() } else { 0 };
                rdkit::parse(bytes).map_err(|e| e.to_string())
            }
            _ => Err("the pickled molecule contains no bytes in RDKit's format".to_owned()),
        };
        self.told(visit, molecule)
    }

    /// Combines a molecule with its context.
    fn told(&self, visit: Visit, molecule: Result<RdkitMolecule, String>) -> FoundMolecule {
        let smiles = visit.smiles.and_then(|id| self.text(id)).map(str::to_owned);
        let sub_smiles = visit.sub_smiles.map_or_else(Vec::new, |id| self.counts(id));
        FoundMolecule { smiles, sub_smiles, name: self.name(visit), molecule, place: self.place(visit) }
    }

    /// Returns the keys of a dictionary, or of a `Counter` made from one, that can be SMILES, with their counts.
    fn counts(&self, id: NodeId) -> Vec<(String, u64)> {
        let entries = match &self.pickle[id] {
            Value::Dict(entries) => entries,
            Value::Object(object) if !object.entries.is_empty() => &object.entries,
            Value::Object(object) => match self.argument(object) {
                Some(Value::Dict(entries)) => entries,
                _ => return Vec::new(),
            },
            _ => return Vec::new(),
        };
        let count = |id: &NodeId| match &self.pickle[*id] {
            Value::Int(count) => u64::try_from(*count).unwrap_or(0),
            _ => 0,
        };
        let counted = |(key, value): &(NodeId, NodeId)| {
            let key = self.text(*key).filter(|key| may_be_smiles(key))?;
            Some((key.to_owned(), count(value)))
        };
        entries.iter().filter_map(counted).take(MOST_SUB_SMILES).collect()
    }

    /// Returns the steps from a value up to the root.
    fn steps(&self, visit: Visit) -> impl Iterator<Item = Step> {
        let up = move |&(parent, _): &(usize, Step)| self.trail.get(parent).copied();
        let steps = std::iter::successors(Some((visit.parent, visit.step)), up).map(|(_, step)| step);
        steps.take_while(|step| !matches!(step, Step::Root))
    }

    /// Returns the text of the outermost key that is neither the SMILES nor a layout word.
    fn name(&self, visit: Visit) -> Option<String> {
        let key = |step| match step {
            Step::Key(key) if Some(key) != visit.smiles => self.text(key),
            _ => None,
        };
        let names = self.steps(visit).filter_map(key).filter(|key| !LAYOUT_KEYS.contains(key));
        names.last().map(str::to_owned)
    }

    fn place(&self, visit: Visit) -> String {
        let mut steps: Vec<String> =
            self.steps(visit).take(SHOWN_STEPS).map(|step| self.shown(step)).collect();
        if self.steps(visit).nth(SHOWN_STEPS).is_some() {
            steps.push("…".to_owned());
        }
        steps.reverse();
        steps.concat()
    }

    fn shown(&self, step: Step) -> String {
        match step {
            Step::Root => String::new(),
            Step::Index(index) => format!("[{index}]"),
            Step::Part(name) => format!(".{name}"),
            Step::Key(key) => match (&self.pickle[key], self.text(key)) {
                (Value::Int(number), _) => format!("[{number}]"),
                (_, Some(text)) => {
                    let shown = escaped(&text.chars().take(SHOWN_KEY).collect::<String>());
                    format!("['{shown}']")
                }
                _ => "[?]".to_owned(),
            },
        }
    }
}

impl Iterator for Walk<'_, '_> {
    type Item = FoundMolecule;

    fn next(&mut self) -> Option<FoundMolecule> {
        while let Some(visit) = self.todo.pop() {
            let Value::Object(object) = &self.pickle[visit.id] else {
                self.enter(visit);
                continue;
            };
            if let Some(name) = self.pickle.unknown(object.class) {
                // Nothing of it is executed or read.
                let reason = format!(
                    "an object of {name}, which drift does not know: it reads RDKit molecules, NumPy arrays and Python's own \
                     containers, and runs nothing"
                );
                return Some(self.told(visit, Err(reason)));
            }
            match object.class.role() {
                Some(Role::Molecule) => return Some(self.found(visit, object)),
                _ => self.enter(visit),
            }
        }
        None
    }
}

/// Returns whether a key can be a SMILES rather than a name such as `conformers` or `pos`: every atom outside brackets is of the organic
/// subset, brackets and parentheses match, and aromatic atoms come with a ring. This only separates keys of known kinds of files; it does
/// not validate SMILES.
fn may_be_smiles(key: &str) -> bool {
    let mut rest = key.as_bytes();
    let (mut atoms, mut aromatic, mut ring, mut open) = (0usize, false, false, 0usize);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'C' | b'B' => {
                let second = if byte == b'C' { b'l' } else { b'r' };
                rest = rest.strip_prefix(&[second]).unwrap_or(rest);
                atoms += 1;
            }
            b'N' | b'O' | b'P' | b'S' | b'F' | b'I' | b'*' => atoms += 1,
            b'b' | b'c' | b'n' | b'o' | b'p' | b's' => (atoms, aromatic) = (atoms + 1, true),
            b'[' => {
                let Some(end) = rest.iter().position(|&byte| byte == b']') else { return false };
                if end == 0 || !rest[..end].iter().all(u8::is_ascii_graphic) {
                    return false;
                }
                rest = &rest[end + 1..];
                atoms += 1;
            }
            // Only an atom can begin a SMILES.
            _ if atoms == 0 => return false,
            b'0'..=b'9' | b'%' => ring = true,
            b'(' => open += 1,
            b')' if open > 0 => open -= 1,
            b'-' | b'=' | b'#' | b'$' | b':' | b'/' | b'\\' | b'.' => {}
            _ => return false,
        }
    }
    atoms > 0 && open == 0 && (ring || !aromatic)
}

#[cfg(test)]
mod tests;
