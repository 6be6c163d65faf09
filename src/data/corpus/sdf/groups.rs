//! Data groups (Sgroups of type `DAT`) that change the molecule. RDKit and ChemAxon write zero-order bonds, hydrogens, charges and
//! dative bonds as such groups; all other groups only describe the molecule (`processSGroups` in `MolFileParser.cpp`).

use std::collections::BTreeMap;

use super::fields::{Fields, Keyword};
use super::table::{Refusal, Table, charge, hydrogens};
use drift_core::chem::Order;
use drift_core::error::excerpt;

/// The most bytes of groups that a molecule may have.
const MAX_GROUP_BYTES: usize = 1 << 20;

/// A group, as far as it may change the molecule.
#[derive(Debug, Clone, Default)]
struct Group {
    is_data: bool,
    /// The name of its data.
    field: String,
    /// The type of its query.
    query: String,
    /// The indices of its atoms and bonds in the file.
    atoms: Vec<u64>,
    bonds: Vec<u64>,
    data: Vec<String>,
    /// Data whose last line has not been read.
    begun: String,
    /// The line of the file where it is first mentioned.
    line: u64,
}

/// The groups of a molecule by their indices.
#[derive(Debug, Default)]
pub(super) struct DataGroups {
    groups: BTreeMap<u64, Group>,
    /// The bytes of their lines.
    bytes: usize,
}

impl DataGroups {
    /// Reads a line `M  STY`, `M  SAL`, `M  SBL`, `M  SDT`, `M  SCD` or `M  SED` of V2000. `number` is the number of the line.
    ///
    /// # Errors
    /// A reason: the line is damaged, or the groups are too large.
    pub(super) fn v2000(&mut self, line: &str, number: u64) -> Result<(), String> {
        self.count(line)?;
        let kind = columns(line, 3, 6);
        if kind == "STY" {
            return self.types(line, number);
        }
        let index = columns(line, 6, 10).trim().parse().map_err(|_| damaged(line))?;
        let group = self.group(index, number);
        match kind {
            "SAL" => group.atoms.extend(numbers(columns(line, 13, line.len())).ok_or_else(|| damaged(line))?),
            "SBL" => group.bonds.extend(numbers(columns(line, 13, line.len())).ok_or_else(|| damaged(line))?),
            "SDT" => {
                group.field = columns(line, 11, 41).trim().to_owned();
                group.query = columns(line, 63, 65).trim().to_owned();
            }
            _ => {
                group.begun.push_str(columns(line, 11, 80));
                if kind == "SED" {
                    let data = std::mem::take(&mut group.begun);
                    group.data.push(data.trim_end().to_owned());
                }
            }
        }
        Ok(())
    }

    /// Reads a line of the block `SGROUP` of V3000: `index type index KEY=VALUE …`.
    ///
    /// # Errors
    /// A reason: a list of atoms or bonds is damaged, or the groups are too large.
    pub(super) fn v3000(&mut self, line: &str, number: u64) -> Result<(), String> {
        self.count(line)?;
        let mut fields = Fields::new(line);
        // The line `DEFAULT` has no index.
        let Some(Ok(index)) = fields.next().map(str::parse) else { return Ok(()) };
        let group = self.group(index, number);
        group.is_data = fields.next().is_some_and(|kind| kind.eq_ignore_ascii_case("DAT"));
        for keyword in fields.filter_map(Keyword::of) {
            let list = || {
                list(keyword.value)
                    .ok_or_else(|| format!("not a list: {}", excerpt(keyword.value.as_bytes())))
            };
            match &*keyword.name.to_ascii_uppercase() {
                "ATOMS" => group.atoms.extend(list()?),
                "XBONDS" | "CBONDS" => group.bonds.extend(list()?),
                "FIELDNAME" => group.field = keyword.value.to_owned(),
                "QUERYTYPE" => group.query = keyword.value.to_owned(),
                "FIELDDATA" => group.data.push(keyword.value.to_owned()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Changes the atoms and bonds of the table as the groups state, in the order of their indices.
    ///
    /// # Errors
    /// If a group names missing atoms or bonds, has values that no atom can have, or makes an atom a query.
    pub(super) fn apply(self, table: &mut Table) -> Result<(), Refusal> {
        if self.groups.is_empty() {
            return Ok(());
        }
        let aromatic = table.aromatic_atoms();
        for group in self.groups.values().filter(|group| group.is_data) {
            group.apply(table, &aromatic).map_err(|reason| Refusal { line: group.line, reason })?;
        }
        Ok(())
    }

    /// Reads the types of `M  STYnn8 sss ttt …`.
    fn types(&mut self, line: &str, number: u64) -> Result<(), String> {
        let mut fields = columns(line, 9, line.len()).split_ascii_whitespace();
        while let Some(index) = fields.next() {
            let index = index.parse().map_err(|_| damaged(line))?;
            self.group(index, number).is_data = fields.next() == Some("DAT");
        }
        Ok(())
    }

    fn group(&mut self, index: u64, line: u64) -> &mut Group {
        self.groups.entry(index).or_insert_with(|| Group { line, ..Group::default() })
    }

    /// Counts the bytes of a line, so that a molecule with groups without end does not fill memory.
    fn count(&mut self, line: &str) -> Result<(), String> {
        self.bytes += line.len();
        match self.bytes {
            0..=MAX_GROUP_BYTES => Ok(()),
            _ => Err("more than 1 MiB of substance groups".to_owned()),
        }
    }
}

impl Group {
    fn apply(&self, table: &mut Table, aromatic: &[bool]) -> Result<(), String> {
        match &*self.field {
            "ZBO" => {
                for index in &self.bonds {
                    let bond = table.bond_at(*index).ok_or_else(|| self.missing("bond", *index))?;
                    table.set_order(bond, Order::Any);
                }
            }
            "HYD" => {
                for (atom, count) in self.values(table)? {
                    table.structure.atoms[atom].hydrogens = hydrogens(count)?;
                }
            }
            "ZCH" => {
                for (atom, value) in self.values(table)? {
                    table.structure.atoms[atom].charge = charge(value)?;
                }
            }
            "MRV_IMPLICIT_H" => {
                for count in self.data.iter().filter_map(|data| data.strip_prefix("IMPL_H")) {
                    let count = hydrogens(self.value(count)?)?;
                    for index in &self.atoms {
                        let atom = table.atom(*index).ok_or_else(|| self.missing("atom", *index))?;
                        // Like RDKit, only on atoms with aromatic bonds, whose hydrogens nothing else states.
                        if aromatic[atom] {
                            table.structure.atoms[atom].hydrogens = count;
                        }
                    }
                }
            }
            "MRV_COORDINATE_BOND_TYPE" => {
                let number = self.data.first().and_then(|data| data.trim().parse::<usize>().ok());
                // The data is the number of the bond. Like RDKit, a bond with an order keeps it.
                if let Some(bond) =
                    number.and_then(|number| number.checked_sub(1)).filter(|bond| table.is_open(*bond))
                {
                    table.set_order(bond, Order::Dative);
                }
            }
            _ if matches!(&*self.query, "SMARTSQ" | "SQ") && !self.data.is_empty() => {
                return Err(format!("data group `{}`: a SMARTS pattern is a query, not an atom", self.field));
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the positions of its atoms with the values of its data, `3;;1`; a blank value is 0. Like RDKit, data with too few values
    /// is ignored.
    fn values(&self, table: &Table) -> Result<Vec<(usize, i32)>, String> {
        let mut found = Vec::new();
        for data in &self.data {
            let values: Vec<&str> = data.trim().split(';').collect();
            if values.len() < self.atoms.len() {
                continue;
            }
            for (index, value) in self.atoms.iter().zip(values) {
                let atom = table.atom(*index).ok_or_else(|| self.missing("atom", *index))?;
                found.push((atom, if value.trim().is_empty() { 0 } else { self.value(value)? }));
            }
        }
        Ok(found)
    }

    fn value(&self, text: &str) -> Result<i32, String> {
        let number = text.trim().parse();
        number.map_err(|_| {
            format!("data group `{}`: not a whole number: {}", self.field, excerpt(text.as_bytes()))
        })
    }

    fn missing(&self, what: &str, index: u64) -> String {
        format!("data group `{}` of {what} {index}, which is missing", self.field)
    }
}

/// Returns the columns of a line from `from` to before `to`, as far as the line has them.
fn columns(line: &str, from: usize, to: usize) -> &str {
    line.get(from..to.min(line.len())).unwrap_or("")
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split_ascii_whitespace().map(|field| field.parse().ok()).collect()
}

/// Returns the numbers of `(count number …)`.
fn list(text: &str) -> Option<Vec<u64>> {
    let all = numbers(text.strip_prefix('(')?.strip_suffix(')')?)?;
    let (count, numbers) = all.split_first()?;
    (*count == numbers.len() as u64).then(|| numbers.to_vec())
}

fn damaged(line: &str) -> String {
    format!("not a substance group: {}", excerpt(line.as_bytes()))
}
