//! Formulas: `Na2Cl2`, `Ba(NO3)2`, or an object from elements to numbers.

use serde_json::Value;

use crate::chem::elements;

/// The most items of a prompt: as many atoms as drift reads of a SMILES.
pub(super) const MOST_ITEMS: u32 = 1_000_000;

/// Returns the elements of a formula with their numbers, in the order in which they first occur.
pub(super) fn formula(value: &Value) -> Option<Vec<(Box<str>, u32)>> {
    let mut counts: Vec<(Box<str>, u32)> = Vec::new();
    for (element, count) in rows(value)? {
        match counts.iter_mut().find(|(known, _)| *known == element) {
            Some((_, known)) => *known += count,
            None => counts.push((element, count)),
        }
    }
    Some(counts)
}

/// Returns the elements of a formula with their numbers as they stand in it: an element may come again behind others.
pub(super) fn rows(value: &Value) -> Option<Vec<(Box<str>, u32)>> {
    let mut counts = Vec::new();
    match value {
        Value::String(text) => {
            let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
            if add_formula(text.as_bytes(), 1, 0, &mut counts)? != text.len() {
                return None;
            }
        }
        Value::Object(map) => {
            for (element, count) in map {
                let whole = count
                    .as_f64()
                    .filter(|n| n.fract() == 0.0 && (1.0..=f64::from(MOST_ITEMS)).contains(n))?;
                add(&mut counts, element, whole as u32)?;
            }
        }
        _ => return None,
    }
    let all: u64 = counts.iter().map(|(_, count)| u64::from(*count)).sum();
    (1..=u64::from(MOST_ITEMS)).contains(&all).then_some(counts)
}

/// The depth to which parentheses may be nested.
const DEEPEST: usize = 8;

/// Adds a formula, times a number, up to its end or a closing parenthesis; returns where it ends.
fn add_formula(text: &[u8], times: u32, depth: usize, counts: &mut Vec<(Box<str>, u32)>) -> Option<usize> {
    let mut at = 0;
    while at < text.len() && text[at] != b')' {
        if text[at] == b'(' {
            // The group is read once for its length, and again with the number behind it.
            let inner = &text[at + 1..];
            let length = (depth < DEEPEST).then(|| add_formula(inner, 0, depth + 1, &mut Vec::new()))??;
            if inner.get(length) != Some(&b')') {
                return None;
            }
            at += length + 2;
            let group_times = times.checked_mul(number(text, &mut at)?)?;
            add_formula(inner, group_times, depth + 1, counts)?;
            continue;
        }
        let end = at + 1 + text[at + 1..].iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        let element = std::str::from_utf8(&text[at..end]).ok()?;
        at = end;
        let count = number(text, &mut at)?;
        add(counts, element, times.checked_mul(count)?)?;
    }
    Some(at)
}

/// Returns the number at a place, or 1.
fn number(text: &[u8], at: &mut usize) -> Option<u32> {
    let digits = text[*at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&text[*at..*at + digits]).ok()?;
    *at += digits;
    if digits == 0 { Some(1) } else { number.parse().ok().filter(|n| (1..=MOST_ITEMS).contains(n)) }
}

fn add(counts: &mut Vec<(Box<str>, u32)>, element: &str, count: u32) -> Option<()> {
    (elements::atomic_number(element).and_then(elements::symbol) == Some(element)).then_some(())?;
    match counts.last_mut() {
        Some((known, last)) if **known == *element => {
            *last = last.checked_add(count).filter(|n| *n <= MOST_ITEMS)?
        }
        _ => counts.push((element.into(), count)),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_read_with_groups() {
        let read = |text: &str| {
            let counts = formula(&Value::String(text.to_owned()))?;
            Some(
                counts
                    .iter()
                    .map(|(element, count)| format!("{element}{count}"))
                    .collect::<Vec<_>>()
                    .join(" "),
            )
        };
        assert_eq!(read("Na2Cl2").unwrap(), "Na2 Cl2");
        assert_eq!(read("K1 P1 H2 O4").unwrap(), "K1 P1 H2 O4");
        assert_eq!(read("KP(HO2)2").unwrap(), "K1 P1 H2 O4");
        assert_eq!(read("Ba(NO3)2").unwrap(), "Ba1 N2 O6");
        assert_eq!(read("Ca5((PO4)3(OH))1").unwrap(), "Ca5 P3 O13 H1");
        for wrong in
            ["", "Xx", "na", "Na0", "Na(", "Na)", "2Na", "Na2.5", "Na99999999999", "(((((((((Na)))))))))"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        let of = |text: &str| rows(&Value::String(text.to_owned())).unwrap();
        let found: String =
            of("CH3C(H2)1OH").iter().map(|(element, count)| format!("{element}{count}")).collect();
        assert_eq!(found, "C1H3C1H2O1H1");
        assert_eq!(formula(&Value::String("H900000OH900000".to_owned())), None);
        let map = serde_json::json!({"Na": 2.0, "Cl": 2});
        assert_eq!(formula(&map).unwrap(), [("Na".into(), 2), ("Cl".into(), 2)]);
        assert_eq!(formula(&serde_json::json!({"Na": 1.5})), None);
    }
}
