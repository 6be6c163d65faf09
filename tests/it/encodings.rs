//! Encodings: what is derived from one definition says the same, and every verb takes any of them.

use drift::encoding::parts::{Row, SlotPart, count, expression};
use drift::encoding::{Encoding, IntegersBelow};

fn matches(expression: &str, text: &str) -> bool {
    fancy_regex::Regex::new(&format!("^(?:{expression})$")).unwrap().is_match(text).unwrap()
}

#[test]
fn expressions_are_the_strings_and_nothing_else() {
    for below in [1, 2, 9, 10, 11, 15, 99, 100, 101, 250, 841, 977, 1_000, 1_001, 1_234] {
        for part in [
            SlotPart::Integer { below },
            SlotPart::Padded { below, width: 3 },
            SlotPart::Padded { below, width: 4 },
        ] {
            let expression = part.expression();
            let strings = part.strings();
            assert_eq!(strings.len() as u64, part.count());
            assert!(strings.iter().all(|text| matches(&expression, text)), "{part:?} {expression}");
            let others = (below..below + 1_100).map(|value| format!("{value:03}"));
            let others = others.chain(["00".into(), "007".into(), "0007".into(), String::new()]);
            for other in others.filter(|other| !strings.contains(other)) {
                assert!(!matches(&expression, &other), "{part:?} {expression} {other}");
            }
        }
    }
    let row =
        [SlotPart::Optional("-".into()), SlotPart::Integer { below: 100 }, SlotPart::Literal(".".into())];
    let row: Row = row.into_iter().chain(vec![SlotPart::Digit { least: 0 }; 4]).collect();
    assert_eq!(expression(&row), "-?(?:[1-9][0-9]|[0-9])\\.[0-9]{4}");
    assert_eq!(count(&row), 2 * 100 * 10_000);
}

#[test]
fn what_is_written_is_of_the_language_and_what_is_not_is_not() {
    let limit = IntegersBelow::GENERATED;
    for name in ["fixed", "stripped", "fixed-2-spaces", "binned-v1:-2,2,0.05", "binned-v2:-13,13,0.104"] {
        let encoding: Encoding = name.parse().unwrap();
        let dfa = encoding.dfa(limit);
        let expression = fancy_regex::Regex::new(&format!("^(?:{})$", encoding.expression(limit))).unwrap();
        for step in 0..400 {
            let x = f64::from(step) * 0.37 - 70.0;
            let values = encoding.quantize([x, -x / 3.0, x / 100.0]).unwrap();
            let mut text = String::new();
            encoding.write_slot(&values, &mut text);
            assert!(dfa.matches(text.as_bytes()) && expression.is_match(&text).unwrap(), "{name} {text}");
            // Another byte anywhere is another slot or none, for both alike.
            for at in 0..text.len() {
                for other in ["0", "9", "-", ".", ",", ""] {
                    let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                    let matched = expression.is_match(&changed).unwrap();
                    assert_eq!(dfa.matches(changed.as_bytes()), matched, "{name} {changed}");
                }
            }
        }
    }
}
