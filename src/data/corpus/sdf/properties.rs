//! Lines between the bonds and the end of a V2000 molecule, as RDKit's reader interprets them.

use super::groups::DataGroups;
use super::table::{Table, charge, hydrogens, isotope, radicals};
use drift_core::chem::Order;
use drift_core::error::excerpt;

/// Lines of text that follow a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextLines(pub usize);

/// A number and its value, as property lines list them; a blank value is `None`.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The number of an atom or a bond, from 1.
    number: u64,
    value: Option<i32>,
}

impl Table {
    /// Applies a line behind the bonds of a V2000 molecule, or adds it to the groups. Returns the number of following lines that are arbitrary text.
    ///
    /// # Errors
    /// A reason: the line is damaged, refers to atoms or bonds that do not exist, or says that the molecule is a query.
    pub(super) fn property(&mut self, line: &str, groups: &mut DataGroups) -> Result<TextLines, String> {
        let kind = line.strip_prefix("M  ").and_then(|rest| rest.get(..3));
        match (kind, line.bytes().next()) {
            (Some("CHG" | "RAD"), _) => {
                if !std::mem::replace(&mut self.listed, true) {
                    // Like RDKit, discards the charges of the atom lines also at the first line of radicals.
                    self.structure.atoms.iter_mut().for_each(|atom| atom.charge = 0);
                }
                self.atom_properties(line)?;
            }
            (Some("ISO" | "ZCH" | "HYD"), _) => self.atom_properties(line)?,
            (Some("ZBO"), _) => self.bond_orders(line)?,
            (Some("STY" | "SAL" | "SBL" | "SDT" | "SCD" | "SED"), _) => groups.v2000(line, self.line)?,
            (Some("ALS"), _) => return Err("`M  ALS`: a list of elements is a query, not an atom".to_owned()),
            (Some("RGP"), _) => return Err("`M  RGP`: an R group is no atom".to_owned()),
            (Some("CRS"), _) => return Err("`M  CRS`: crossing bonds of a polymer are not read".to_owned()),
            (Some("MRV"), _) if line.starts_with("M  MRV SMA") => {
                return Err("`M  MRV SMA`: a SMARTS pattern is a query, not an atom".to_owned());
            }
            // An alias and an abbreviation.
            (_, Some(b'A' | b'G')) => return Ok(TextLines(1)),
            (_, Some(b'S')) => return skipped_lines(line),
            // What remains names atoms, draws brackets, or restricts what a query matches without changing the molecule.
            (_, Some(b'M' | b'V') | None) => {}
            _ if line.trim().is_empty() => {}
            _ => {
                let shown = excerpt(line.as_bytes());
                return Err(format!("more bonds than announced, or a list of elements: {shown}"));
            }
        }
        Ok(TextLines(0))
    }

    /// Applies `M  CHG`, `M  RAD`, `M  ISO`, `M  ZCH` or `M  HYD`.
    fn atom_properties(&mut self, line: &str) -> Result<(), String> {
        let kind = &line[3..6];
        for Entry { number, value } in entries(line)? {
            let at = self.atom(number);
            let at = at.ok_or_else(|| format!("`M  {kind}` of atom {number}, which is missing"))?;
            let atom = &mut self.structure.atoms[at];
            match (kind, value) {
                // A blank or negative isotope or number of hydrogens is ignored.
                ("ISO" | "HYD", None | Some(..0)) => {}
                ("ISO", Some(mass)) => atom.isotope = isotope(mass)?,
                ("HYD", Some(count)) => {
                    atom.hydrogens = hydrogens(count)?;
                    // RDKit ignores a stated valence beside it.
                    self.valences[at] = 0;
                }
                ("RAD", value) => atom.radicals = radicals(value.unwrap_or(0))?,
                (_, value) => atom.charge = charge(value.unwrap_or(0))?,
            }
        }
        Ok(())
    }

    /// Applies `M  ZBO`, the orders of bonds that are usually 0 (A. M. Clark, J. Chem. Inf. Model. 51 (2011) 3149).
    fn bond_orders(&mut self, line: &str) -> Result<(), String> {
        for Entry { number, value } in entries(line)? {
            let order = match value.unwrap_or(0) {
                0 => Order::Any,
                1 => Order::Single,
                2 => Order::Double,
                3 => Order::Triple,
                4 => Order::Quadruple,
                other => return Err(format!("`M  ZBO`: a bond of order {other}")),
            };
            let bond = self.bond_at(number);
            let bond = bond.ok_or_else(|| format!("`M  ZBO` of bond {number}, which is missing"))?;
            self.set_order(bond, order);
        }
        Ok(())
    }
}

/// Returns the lines to skip after `S  SKP`; other lines that begin with `S` have none.
fn skipped_lines(line: &str) -> Result<TextLines, String> {
    let Some(count) = line.strip_prefix("S  SKP") else { return Ok(TextLines(0)) };
    let count = count.trim().parse();
    count.map(TextLines).map_err(|_| format!("not a number: {}", excerpt(line.as_bytes())))
}

/// Parses `M  XXXnn8 aaa vvv …`, pairs of numbers and values. Parses by columns, or by fields for writers that do not keep to the
/// columns.
fn entries(line: &str) -> Result<Vec<Entry>, String> {
    let text = &line[6..];
    let found = by_columns(text).or_else(|| by_fields(text));
    found.ok_or_else(|| format!("not a property: {}", excerpt(line.as_bytes())))
}

fn by_fields(text: &str) -> Option<Vec<Entry>> {
    let mut fields = text.split_ascii_whitespace();
    let count: usize = fields.next()?.parse().ok()?;
    let mut entry = || {
        let number = fields.next()?.parse().ok()?;
        Some(Entry { number, value: Some(fields.next()?.parse().ok()?) })
    };
    // Each entry takes some bytes of the text, so their number is bounded.
    (0..count.min(text.len() + 1)).map(|_| entry()).collect()
}

fn by_columns(text: &str) -> Option<Vec<Entry>> {
    let count: usize = text.get(..3)?.trim().parse().ok()?;
    let entry = |at: usize| {
        let (start, end) = (3 + 8 * at, 11 + 8 * at);
        let value = text.get(start + 4..end.min(text.len())).unwrap_or("").trim();
        let value = if value.is_empty() { None } else { Some(value.parse().ok()?) };
        Some(Entry { number: text.get(start..start + 4)?.trim().parse().ok()?, value })
    };
    let rest = text.get(3 + 8 * count..).unwrap_or("");
    if rest.trim().is_empty() { (0..count).map(entry).collect() } else { None }
}
