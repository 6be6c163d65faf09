//! Parses single lines of V2000 and V3000 tables.

use std::str::FromStr;

use super::fields::{Fields, Keyword};
use super::table::{FileBond, Notes, Table, atom, coded_charge, mass};
use crate::corpus::atoms::Atoms;
use drift_core::chem::elements::atomic_number;
use drift_core::error::excerpt;

/// An atom of V2000: its symbol, its coordinates, and the fields that are used, as text: mass difference, charge, hydrogens,
/// valence.
type AtomText<'a> = (&'a str, [&'a str; 3], [&'a str; 4]);

/// `xxxxx.xxxxyyyyy.yyyyzzzzz.zzzz aaaddcccssshhhbbbvvv…`
fn fixed_columns(line: &str) -> Option<AtomText<'_>> {
    // Without the blank before the symbol, z is wider than its column, and its last digit would be lost.
    line.get(30..31).filter(|blank| *blank == " ")?;
    let symbol = line.get(31..34).or_else(|| line.get(31..))?.trim_ascii();
    let xyz = [line.get(0..10)?, line.get(10..20)?, line.get(20..30)?];
    Some((symbol, xyz, [34..36, 36..39, 42..45, 48..51].map(|field| line.get(field).unwrap_or(""))))
}

/// `x y z symbol dd ccc sss hhh bbb vvv …`, for writers that do not keep to the columns.
fn free_columns(line: &str) -> Option<AtomText<'_>> {
    let mut fields = line.split_ascii_whitespace();
    let xyz = [fields.next()?, fields.next()?, fields.next()?];
    let symbol = fields.next()?;
    let mut notes = [""; 6];
    notes.iter_mut().zip(fields).for_each(|(note, field)| *note = field);
    Some((symbol, xyz, [notes[0], notes[1], notes[3], notes[5]]))
}

/// Adds the atom of a V2000 line, parsed by columns or, for writers that do not keep to them, by fields.
pub(super) fn push_v2000(line: &str, atoms: &mut Atoms, table: &mut Table) -> Result<(), String> {
    let mut push = |(symbol, xyz, notes): AtomText<'_>| {
        let [difference, charge, hydrogens, valence] = notes.map(number);
        let element = element(symbol)?;
        let notes = Notes {
            charge: coded_charge(charge?),
            mass: mass(element, difference?)?,
            hydrogens: hydrogens?,
            ..Notes::default()
        };
        let atom = atom(element, symbol, notes)?;
        let valence = valence?;
        atoms.push_text(element, xyz)?;
        table.push(atom, valence, None);
        Ok(())
    };
    let columns = fixed_columns(line);
    let by_columns = columns.map(&mut push);
    // If the element and position of a line are in their columns, its other fields are too. Parsing by fields could give them
    // another meaning.
    let keeps = |(symbol, xyz, _): AtomText<'_>| {
        atomic_number(symbol).is_some() && xyz.iter().all(|text| text.trim_ascii().parse::<f64>().is_ok())
    };
    if let Some(outcome) = &by_columns
        && (outcome.is_ok() || columns.is_some_and(keeps))
    {
        return outcome.clone();
    }
    // If neither way gives an atom, the error of parsing by columns is reported.
    let by_fields = free_columns(line).map(push);
    by_fields.filter(Result::is_ok).or(by_columns).unwrap_or_else(|| Err(not_an_atom(line)))
}

/// Adds the bond of a V2000 line, `111222tttsss…`, parsed by columns or by fields.
pub(super) fn push_v2000_bond(line: &str, table: &mut Table) -> Result<(), String> {
    let column = |at: usize| line.get(at..at + 3)?.trim_ascii().parse().ok();
    let columns = || Some([column(0)?, column(3)?, column(6)?]);
    let [from, to, kind] = columns().or_else(|| numbers(line)).ok_or_else(|| not_a_bond(line))?;
    let stereo = column(9).or_else(|| numbers(line).map(|[_, _, _, stereo]: [u64; 4]| stereo));
    // 1 and 6 are wedges, 3 is a double bond drawn crossed. A wavy bond, 4, says nothing that a conformer could not.
    table.has_wedges |= matches!(stereo, Some(1 | 3 | 6));
    table.bond(FileBond { kind, atoms: [from, to], index: None })
}

/// Adds the atom of a V3000 line, `index type x y z aamap KEY=VALUE…`.
pub(super) fn push_v3000(line: &str, atoms: &mut Atoms, table: &mut Table) -> Result<(), String> {
    let mut fields = Fields::new(line);
    let mut next = || fields.next().ok_or_else(|| not_an_atom(line));
    let (index, symbol, xyz) = (next()?, next()?, [next()?, next()?, next()?]);
    let mut notes = Notes::default();
    for keyword in fields.filter_map(Keyword::of) {
        let value = keyword.value;
        // No upper case of each key: an atom may have many, and each would be allocated.
        match () {
            () if keyword.is("CHG") => notes.charge = number(value)?,
            () if keyword.is("MASS") => notes.mass = mass_number(value)?,
            () if keyword.is("RAD") => notes.radical = number(value)?,
            () if keyword.is("VAL") => notes.valence = number(value)?,
            () if keyword.is("RGROUPS") => return Err("`RGROUPS`: an R group is no atom".to_owned()),
            () if keyword.is("CLASS") => return Err("`CLASS`: a residue is no atom".to_owned()),
            // Queries for hydrogens, rings and unsaturation change nothing; the rest names atoms.
            () => {}
        }
    }
    let element = element(symbol)?;
    let atom = atom(element, symbol, notes)?;
    atoms.push_text(element, xyz)?;
    // If the index is not a number, bonds refer to the atom by its position.
    table.push(atom, notes.valence, index.parse().ok());
    Ok(())
}

/// Adds the bond of a V3000 line, `index type atom atom KEY=VALUE…`.
pub(super) fn push_v3000_bond(line: &str, table: &mut Table) -> Result<(), String> {
    let mut fields = Fields::new(line);
    let index = fields.next().and_then(|index| index.parse().ok());
    let mut next = || fields.next().and_then(|field| field.parse().ok()).ok_or_else(|| not_a_bond(line));
    let (kind, atoms) = (next()?, [next()?, next()?]);
    for keyword in fields.filter_map(Keyword::of) {
        if keyword.is("ENDPTS") {
            return Err("`ENDPTS`: a bond to several atoms has no order".to_owned());
        }
        table.has_wedges |= keyword.is("CFG") && matches!(keyword.value, "1" | "3");
    }
    table.bond(FileBond { kind, atoms, index })
}

/// Returns the first `N` fields of a line, if they are numbers.
pub(super) fn numbers<T: FromStr + Copy + Default, const N: usize>(line: &str) -> Option<[T; N]> {
    let (mut numbers, mut fields) = ([T::default(); N], line.split_ascii_whitespace());
    for number in &mut numbers {
        *number = fields.next()?.parse().ok()?;
    }
    Some(numbers)
}

fn element(symbol: &str) -> Result<u8, String> {
    atomic_number(symbol).ok_or_else(|| format!("{} is not an element", excerpt(symbol.as_bytes())))
}

/// Parses a field of a table; a blank field is 0.
fn number(field: &str) -> Result<i32, String> {
    let field = field.trim_ascii();
    if field.is_empty() {
        return Ok(0);
    }
    field.parse().map_err(|_| format!("not a whole number: {}", excerpt(field.as_bytes())))
}

/// Parses a mass number; some writers give the mass instead.
fn mass_number(value: &str) -> Result<i32, String> {
    match value.parse::<f64>() {
        // Whole masses and masses such as `13.003` both become the mass number.
        Ok(mass) if (0.0..1e6).contains(&mass) => Ok(mass as i32),
        _ => Err(format!("not a mass: {}", excerpt(value.as_bytes()))),
    }
}

fn not_an_atom(line: &str) -> String {
    format!("not an atom: {}", excerpt(line.as_bytes()))
}

fn not_a_bond(line: &str) -> String {
    format!("not a bond: {}", excerpt(line.as_bytes()))
}
