//! Properties of the text layer and of the readers, on random and on broken input.
//!
//! `DRIFT_PROPTEST_CASES=1000000 cargo test --release --test it properties::text` tries a million cases each.

use drift::corpus::{Conformers, Files, ReadOptions};
use drift::encoding::decimal_text::ParsedNumber;
use drift::encoding::{Encoding, Fixed, Precision, Reading};
use drift::job::Job;
use drift::text::{EnrichedText, TextError, skeleton, write};
use proptest::prelude::*;

use crate::common::fixture;
use crate::readers_bad::{mutated, survives};
use crate::support::Folder;

/// As four decimals are read.
fn parse(text: &str) -> Result<EnrichedText, TextError> {
    drift::text::parse(text, Reading::default())
}

/// Likewise.
fn truncate_decimal(text: &str) -> Result<Fixed, drift::encoding::decimal_text::NumberError> {
    drift::encoding::decimal_text::truncate_decimal(text, Precision::FOUR)
}

/// `DRIFT_PROPTEST_CASES`, else `default`.
fn cases(default: u32) -> ProptestConfig {
    let asked = std::env::var("DRIFT_PROPTEST_CASES").ok().and_then(|n| n.parse().ok());
    let cases = asked.unwrap_or(default);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// A coordinate: small ones, round ones and extreme ones among those of the whole range.
fn coordinate() -> impl Strategy<Value = Fixed> {
    prop_oneof![
        4 => -200_000..=200_000,
        2 => (-99_999..=99_999, prop_oneof![Just(1), Just(10), Just(100), Just(1_000), Just(10_000)])
            .prop_map(|(value, unit): (Fixed, Fixed)| (value * unit).clamp(-Precision::FOUR.max_fixed(), Precision::FOUR.max_fixed())),
        2 => -Precision::FOUR.max_fixed()..=Precision::FOUR.max_fixed(),
        1 => prop_oneof![Just(0), Just(1), Just(-1), Just(Precision::FOUR.max_fixed()), Just(-Precision::FOUR.max_fixed())],
    ]
}

/// A skeleton with its coordinates: any bracket atoms, bonds and ring digits between them, balanced branches.
fn enriched() -> impl Strategy<Value = (String, Vec<[Fixed; 3]>)> {
    let atom = "[!-;=?-Z\\\\^-~]{1,6}";
    let between = "[-=#$:/\\\\~.%0-9]{0,3}";
    let position = prop::array::uniform3(coordinate());
    prop::collection::vec((atom, between, -1..=1i8, position), 1..24).prop_map(|atoms| {
        let (mut skeleton, mut coordinates, mut depth) = (String::new(), Vec::new(), 0);
        for (atom, between, branch, position) in atoms {
            if branch > 0 {
                skeleton.push('(');
                depth += 1;
            } else if branch < 0 && depth > 0 {
                skeleton.push(')');
                depth -= 1;
            }
            skeleton.extend([&between, "[", &atom, "]<>"]);
            coordinates.push(position);
        }
        skeleton.push_str(&")".repeat(depth));
        (skeleton, coordinates)
    })
}

/// Text that is nearly enriched: its own characters at random, good text with a few bytes changed, or anything.
fn nearly() -> impl Strategy<Value = String> {
    let good = enriched().prop_flat_map(|(skeleton, coordinates)| {
        let text = write(&skeleton, &coordinates, Encoding::STRIPPED);
        mutated(text.into_bytes()).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    });
    prop_oneof![2 => good, 1 => "[\\[\\]<>(),.0-9C=-]{0,60}", 1 => any::<String>()]
}

mod text {
    use super::*;

    proptest! {
        #![proptest_config(cases(2_000))]

        #[test]
        fn writing_and_parsing_are_inverse((skeleton, coordinates) in enriched()) {
            for encoding in Encoding::ALL {
                let text = write(&skeleton, &coordinates, encoding);
                let parsed = parse(&text).map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?;
                prop_assert_eq!((&parsed.skeleton, &parsed.coordinates), (&skeleton, &coordinates));
                let agrees =
                    if encoding.is_fixed() { parsed.written.fixed } else { parsed.written.stripped };
                prop_assert!(agrees, "{text}");
            }
        }

        #[test]
        fn so_they_are_with_any_decimals(
            (skeleton, coordinates) in enriched(), decimals in 0..=6usize, spaces in any::<bool>()
        ) {
            let precision = Precision::new(decimals).unwrap();
            let within = |value: &Fixed| value % (precision.max_fixed() + 1);
            let coordinates: Vec<[Fixed; 3]> =
                coordinates.iter().map(|block| block.each_ref().map(within)).collect();
            for encoding in Encoding::both(precision) {
                let encoding = encoding.with_spaces(spaces);
                let text = write(&skeleton, &coordinates, encoding);
                let parsed = drift::text::parse(&text, Reading::new(encoding));
                let parsed = parsed.map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?;
                prop_assert_eq!((&parsed.skeleton, &parsed.coordinates), (&skeleton, &coordinates));
                prop_assert!(parsed.written.agrees_with(encoding), "{text}");
                // Cut to fewer decimals is what a writer of fewer decimals writes.
                let fewer = Precision::new(decimals - decimals / 2).unwrap();
                let reading = Reading::new(encoding.with_precision(fewer)).cutting(true);
                let cut = drift::text::parse(&text, reading).unwrap();
                let expected: Vec<[Fixed; 3]> =
                    coordinates.iter().map(|block| block.map(|value| fewer.convert(value, precision))).collect();
                prop_assert_eq!(cut.coordinates, expected);
            }
        }

        #[test]
        fn whatever_parses_is_written_back(text in nearly()) {
            match parse(&text) {
                Ok(parsed) => {
                    for encoding in Encoding::ALL {
                        let again = write(&parsed.skeleton, &parsed.coordinates, encoding);
                        let reparsed = parse(&again).map_err(|e| TestCaseError::fail(format!("{again}: {e}")))?;
                        prop_assert_eq!((&reparsed.skeleton, &reparsed.coordinates),
                            (&parsed.skeleton, &parsed.coordinates));
                    }
                    if parsed.written.stripped && !text.contains("-0,") && !text.contains("-0>") {
                        prop_assert_eq!(write(&parsed.skeleton, &parsed.coordinates, Encoding::STRIPPED), text);
                    }
                }
                Err(error) => {
                    prop_assert!(error.at <= text.len());
                    prop_assert!(!error.to_string().contains(char::is_control));
                }
            }
        }

        #[test]
        fn blocks_are_read_alone_as_in_a_text(inside in prop_oneof![
            "[-0-9.,]{0,24}", "(-?[0-9]{1,6}(\\.[0-9]{0,5})?,?){3}", any::<String>()
        ]) {
            let alone = Encoding::FIXED.parse_numbers(inside.as_bytes(), false);
            if !inside.contains('>') {
                let within = parse(&format!("[C]<{inside}>"));
                prop_assert_eq!(alone.ok(), within.ok().map(|text| (text.coordinates[0], text.written)));
            }
        }

        #[test]
        fn bytes_that_are_no_text_are_no_block(inside in prop::collection::vec(any::<u8>(), 0..40)) {
            let is_text = inside.iter().all(|b| b"-0123456789.,".contains(b));
            prop_assert!(is_text || Encoding::FIXED.parse_numbers(&inside, false).is_err());
        }

        #[test]
        fn decimals_are_cut_toward_zero(value in coordinate(), more in "[0-9]{0,20}", shift in -8..=8i64) {
            let mut number = String::new();
            Encoding::FIXED.number().write(value, &mut number);
            // A number between -0.0001 and 0 is cut to 0.
            prop_assert_eq!(truncate_decimal(&format!("{number}{more}")), Ok(value));
            prop_assert_eq!(truncate_decimal(&format!("  {number}{more}e0 ")), Ok(value));
            let digits = number.replace('.', "");
            let (places, exponent) = (4 + more.len() as i64, shift);
            let zeros = "0".repeat(usize::try_from(shift.max(0)).unwrap());
            let scaled = format!("{digits}{more}{zeros}E{}", -places - exponent.max(0));
            prop_assert_eq!(truncate_decimal(&scaled), Ok(value));
            prop_assert_eq!(ParsedNumber::parse(number.as_bytes(), Precision::FOUR, false).map(|number| number.value), Ok(value));
        }

        #[test]
        fn numbers_are_read_or_refused(text in prop_oneof!["[-+0-9.eE]{0,24}", "[0-9]{1,9}e-?[0-9]{1,25}", any::<String>()]) {
            for decimals in 1..=6 {
                let precision = Precision::new(decimals).unwrap();
                let _ = ParsedNumber::parse(text.as_bytes(), precision, text.len() % 2 == 0);
            }
            // Within the range Rust's own parser agrees, up to the cut.
            if let (Ok(cut), Ok(exact)) = (truncate_decimal(&text), text.trim().parse::<f64>()) {
                let cut = f64::from(cut) / 1e4;
                let slack = 1e-9;
                prop_assert!(cut.abs() <= exact.abs() + slack && exact.abs() - cut.abs() < 1e-4 + slack, "{text}");
            }
        }

        #[test]
        fn skeletons_of_anything_never_panic(text in nearly()) {
            let _ = skeleton::from_smiles(&text);
            let _ = skeleton::with_hydrogens(&text);
            let pieces: usize = skeleton::pieces(&text).count();
            prop_assert!(pieces <= text.len());
            prop_assert!(skeleton::smiles(&text).len() <= text.len());
            prop_assert!(skeleton::without_needless_hydrogens(&text).len() <= text.len() + 2 * pieces);
        }
    }
}

mod files {
    use super::*;

    fn read(name: &str) -> Vec<u8> {
        std::fs::read(fixture(name)).unwrap()
    }

    proptest! {
        #![proptest_config(cases(200))]

        #[test]
        fn mutated_fixtures_never_panic(bytes in prop_oneof![
            mutated(read("geom_crude.msgpack")),
            mutated(read("pickles/rdkit-12.1.0.pickle")),
            mutated(read("pickles/rdkit-16.4.0.pickle")),
            mutated(read("pickles/layouts.pickle")),
            mutated(read("test_set.pickle")),
            mutated(read("rdkit_folder.tar.gz")),
            mutated(read("spice.h5")),
            mutated(read("ani1x.h5")),
        ]) {
            survives(&bytes);
        }

        #[test]
        fn rows_come_back_as_they_were_written(rows in prop::collection::vec((enriched(), ".{1,12}"), 1..20)) {
            let folder = Folder::new();
            let text: Vec<String> = rows
                .iter()
                .map(|((skeleton, coordinates), name)| {
                    let text = write(skeleton, coordinates, Encoding::FIXED);
                    serde_json::json!({"canonical_smiles": name, "embedded_smiles": text}).to_string()
                })
                .collect();
            let input = folder.file("rows.jsonl", text.join("\n"));
            let mut found = Vec::new();
            let files = Files { inputs: vec![input], options: ReadOptions::default() };
            let summary = files.read(&Job::default(), &mut |batch| {
                found.extend(batch.conformers);
                Ok(())
            });
            prop_assert_eq!(summary.unwrap().skipped, 0);
            let found: Vec<_> = found
                .iter()
                .map(|c| ((c.skeleton.to_string(), c.coordinates.clone()), c.molecule.to_string()))
                .collect();
            prop_assert_eq!(found, rows);
        }
    }
}
