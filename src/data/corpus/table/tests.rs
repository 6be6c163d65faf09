use std::io;

use super::rows::RowState;
use super::*;
use crate::corpus::testing::read_all;

fn header(text: &str) -> Header {
    match FirstLine::of(text.as_bytes()) {
        FirstLine::Header(header) => header,
        other => panic!("{text}: {other:?}"),
    }
}

/// Returns the first coordinate of each conformer, and the skipped records with their reasons.
fn read_text(text: &str) -> (Vec<i64>, Vec<String>) {
    let batch = read_all(read, text);
    let first = batch.conformers.iter().map(|c| i64::from(c.coordinates[0][0]) / 10_000).collect();
    let skipped = batch.skipped.iter().map(|s| format!("{}: {}", s.record, s.reason)).collect();
    (first, skipped)
}

#[test]
fn headers_of_tables() {
    assert_eq!(header("name,enriched_text").columns, ["name", "enriched_text"]);
    assert_eq!(header("\"name\"\t\"enriched_text\"\r\n").delimiter, b'\t');
    assert_eq!(header("embedded_smiles").columns.len(), 1);
    assert_eq!(header("a, b;c, enriched_text ,d").columns[2], "enriched_text");
    for (line, expected) in [
        ("PubChem3D_1,\"[C]<1,2,3>\"", FirstLine::Row),
        ("x\t[C]<1,2,3>", FirstLine::Row),
        ("[C]<1,2,3>", FirstLine::Other),
        ("{\"a\": 1, \"enriched_text\": 2}", FirstLine::Other),
        ("12", FirstLine::Other),
        ("CCO", FirstLine::Other),
        ("a sentence, with a comma, 1", FirstLine::Other),
        ("", FirstLine::Other),
    ] {
        assert_eq!(FirstLine::of(line.as_bytes()), expected, "{line}");
    }
    let FirstLine::NoText(none) = FirstLine::of(b"SMILES,conf_energy") else { panic!() };
    let (said, _) = problem(&FirstLine::NoText(none)).unwrap();
    assert_eq!(said, "is a table without a column of texts; its columns are `SMILES`, `conf_energy`");
}

#[test]
fn quotes_line_ends_and_orders_of_columns() {
    let table = "\u{feff}b,enriched_text,\"na\"\"me\"\r\n\
                 \"x, \"\"y\"\"\",\"[C]<1,0,0>\",n\r\n\
                 \"two\r\nlines\",\"[C]<2,0,0>\",\n\
                 5\" pipe,\"[C]<3,0,0>\",\"\"\n\
                 \n\
                 ,\"[C]<4,0,0>\",";
    assert_eq!(read_text(table), (vec![1, 2, 3, 4], vec![]));
    let batch = read_all(read, table);
    assert_eq!(batch.conformers[0].molecule.as_ref(), "C");
    assert_eq!(read_text("enriched_text\tsmiles\n[C]<1,0,0>\tCC\n").0, [1]);
    assert_eq!(read_text("text\n[C]<1,0,0>\n\"[C]<2,0,0>\"\n").0, [1, 2]);
}

#[test]
fn rows_cut_in_the_middle_lose_only_themselves() {
    let (a, b) = ("a,\"[C]<1,0,0>\",x\n", "b,\"[C]<2,0,0>\",y\n");
    let cuts = ["c", "c,\"[C]<3,0", "c,\"[C]<3,0,0>\"", "c,\"[C]<3,0,0>\",\"x", "\"c", "c,\"[C]<3,0,0>\"x,y"];
    for cut in cuts {
        let table = format!("name,enriched_text,dataset\n{a}{cut}\n{b}");
        let (read, skipped) = read_text(&table);
        assert_eq!(read, [1, 2], "{cut}: {skipped:?}");
        assert_eq!(skipped.len(), 1, "{cut}: {skipped:?}");
        assert!(skipped[0].starts_with("line 3: "), "{cut}: {skipped:?}");
        // At the end of the file, too.
        let (read, skipped) = read_text(&format!("name,enriched_text,dataset\n{a}{b}{cut}"));
        assert_eq!((read, skipped.len()), (vec![1, 2], 1), "{cut}: {skipped:?}");
    }
    // Two cuts within quotes, one behind the other, are two rows.
    let two = format!("name,enriched_text,dataset\n{a}c,\"\nd,\"\n{b}");
    let (read, skipped) = read_text(&two);
    assert_eq!((read, skipped.len()), (vec![1, 2], 2), "{skipped:?}");
    // Two rows whose line end is missing.
    let joined = format!("name,enriched_text,dataset\n{}{b}{a}", a.trim_end());
    assert_eq!(read_text(&joined).0, [1]);
}

#[test]
fn comments_may_precede_the_header() {
    let text = "\u{feff}# from the model, of today\r\n\n# n, enriched text\nname,enriched_text\nx,\"[C]<1,0,0>\"\ny,[C]\n";
    let (read, skipped) = read_text(text);
    assert_eq!((read, skipped.len()), (vec![1], 1));
    assert!(skipped[0].starts_with("line 6: "), "{skipped:?}");
    // A header may itself begin with the sign.
    assert_eq!(read_text("#name,enriched_text\nx,\"[C]<2,0,0>\"\n").0, [2]);
    assert_eq!(FirstLine::of_content(b"# a\nx\t[C]<1,2,3>\n"), FirstLine::Row);
}

#[test]
fn blocks_of_any_size_give_the_same_rows() {
    let mut text = String::from("name,enriched_text\n");
    for row in 0..400 {
        let cut = if row % 7 == 0 { "\"cut\n" } else { "" };
        let name = if row % 5 == 0 { "\"a\n\"\"b\"\"\"".to_owned() } else { format!("n{row}") };
        text.push_str(&format!("{cut}{name},\"[C]<{row},0,0>\"\r\n"));
    }
    let rows = |capacity: usize| {
        let mut blocks = RowBlocks::behind_header(
            io::BufReader::with_capacity(capacity, text.as_bytes()),
            &header("name,enriched_text"),
        );
        let mut rows = Vec::new();
        while let Some(block) = blocks.next().unwrap() {
            rows.extend(
                block.rows.iter().map(|row| (block.bytes[row.start..row.end].to_vec(), row.line, row.state)),
            );
        }
        rows
    };
    let whole = rows(1 << 20);
    assert_eq!(whole.iter().filter(|row| row.2 == RowState::Broken).count(), 58);
    for capacity in [1, 2, 3, 17, 256] {
        assert_eq!(rows(capacity), whole, "{capacity}");
    }
}

#[test]
fn a_row_longer_than_the_limit_is_skipped_without_being_held() {
    let long = "x".repeat(MAX_LINE_BYTES + 10);
    let text = format!("name,enriched_text\n{long},\"[C]<1,0,0>\"\nb,\"[C]<2,0,0>\"\n");
    let (read, skipped) = read_text(&text);
    assert_eq!((read, skipped), (vec![2], vec!["line 2: longer than 16 MiB".to_owned()]));
}
