use super::*;
use crate::corpus::Batch;

fn read_all(text: &str) -> Batch {
    crate::corpus::testing::read_all(read, text)
}

fn v2000(title: &str, atoms: &[&str], items: &str) -> String {
    let count = atoms.len();
    let atoms = atoms.join("\n");
    format!(
        "{title}\n     drift          3D\n\n{count:3}  1  0  0  0  0  0  0  0  0999 V2000\n{atoms}\n  \
        1  2  1  0\nM  END\n{items}$$$$\n"
    )
}

const CARBON: &str = "   -0.2566    0.1835   10.5754 C   0  0  2  0";
const CHLORINE: &str = "-1234.5678-1234.5678    0.0000 Cl  0  0";
const HYDROGEN: &str = "    1.0000    1.0000    1.0000 H   0  0";

#[test]
fn columns_fields_names_and_line_ends() {
    let items = "> <smiles>\nnot me\n\n>  <canonical_smiles>  (1) \nCCl\n\n";
    let text = v2000("t", &[CARBON, HYDROGEN, CHLORINE], items)
        + &v2000("title", &["0.5 -1.25 3 Br 0 0"], "").replace('\n', "\r\n")
        + &v2000("", &[CARBON], "");
    let all = read_all(&text);
    assert_eq!(all.skipped, []);
    let names: Vec<_> = all.conformers.iter().map(|c| &*c.molecule).collect();
    assert_eq!(names, ["CCl", "title", "molecule 3"]);
    assert_eq!(&*all.conformers[0].skeleton, "[C]<>[Cl]<>");
    assert_eq!(all.conformers[0].coordinates, [[-2_566, 1_835, 105_754], [-12_345_678, -12_345_678, 0]]);
    assert_eq!(all.conformers[1].coordinates, [[5_000, -12_500, 30_000]]);
}

#[test]
fn a_bad_molecule_does_not_take_the_next_with_it() {
    let bad = [
        (v2000("a", &["1 2 C"], ""), "molecule 1 (a), line 5", "not an atom"),
        (
            v2000("a", &[CARBON, "       nan    0.0000    0.0000 C"], ""),
            "molecule 1 (a), line 6",
            "not finite",
        ),
        (
            v2000("a", &["    0.0000    0.0000 1000000.0 C"], ""),
            "molecule 1 (a), line 5",
            "beyond 99,999.9999",
        ),
        (
            v2000("a", &["    0.0000    0.0000    0.0000 R#"], ""),
            "molecule 1 (a), line 5",
            "`R#` is not an element",
        ),
        (v2000("", &[HYDROGEN], ""), "molecule 1, line 7", "no heavy atom"),
        (v2000("a", &[CARBON], "").replace("  1  1", "  9  1"), "molecule 1 (a), line 6", "`  1  2  1  0`"),
        ("a\n\n\n  2  1 V2000\n$$$$\n".to_owned(), "molecule 1 (a), line 5", "ends early"),
        ("$$$$\n".to_owned(), "molecule 1, line 1", "no counts line"),
        ("a\nb\nc\nd\n$$$$\n".to_owned(), "molecule 1 (a), line 4", "no counts line of V2000 or V3000: `d`"),
    ];
    for (text, record, reason) in bad {
        let all = read_all(&(text + &v2000("good", &[CARBON], "") + "\n\n"));
        assert_eq!(all.skipped[0].record, record);
        assert!(all.skipped[0].reason.contains(reason), "{}", all.skipped[0].reason);
        assert_eq!((all.conformers.len(), all.skipped.len()), (1, 1), "{reason}");
    }
}

#[test]
fn a_drawing_is_no_conformer() {
    let flat = v2000("a", &["    1.0000    2.0000    0.0000 C"], "").replace("3D", "2D");
    assert_eq!(read_all(&flat).skipped[0].reason, "a 2D drawing, not a conformer");
    assert_eq!(read_all(&v2000("a", &[CARBON], "").replace("3D", "2D")).conformers.len(), 1);
}

#[test]
fn v3000_with_continuations() {
    let text = "title\n  x\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\nM  V30 COUNTS 3 1 0 0 0\n\
        M  V30 BEGIN ATOM\nM  V30 1 C 1.5 -2.00019 0 0 CFG=1\nM  V30 2 Se 0 -\nM  V30 1e1 \
        -0.5 0\nM  V30 3 D 0 0 0 0\nM  V30 END ATOM\nM  V30 BEGIN BOND\n\
        M  V30 1 1 1 2\nM  V30 END BOND\nM  V30 END CTAB\nM  END\n";
    let all = read_all(text);
    assert_eq!(all.skipped, []);
    assert_eq!(&*all.conformers[0].skeleton, "[C]<>[Se]<>");
    assert_eq!(all.conformers[0].coordinates, [[15_000, -20_001, 0], [0, 100_000, -5_000]]);
    let cut = &text[..text.find("M  V30 3").unwrap()];
    assert_eq!(read_all(cut).skipped[0].reason, "the molecule ends early");
    for (from, to, reason) in [
        ("COUNTS 3", "COUNTS 5", "5 atoms announced, 3 found"),
        ("COUNTS 3", "COUNTS 2", "2 atoms announced, more found"),
        ("COUNTS 3 1", "COUNTS 3 2", "2 bonds announced, 1 found"),
        ("COUNTS 3 1", "COUNTS 50000000 1", "50000000 atoms; at most 1000000 are read"),
        ("COUNTS 3 1", "COUNTS -3 1", "no numbers of atoms and bonds: `-3 1 0 0 0`"),
        ("M  V30 COUNTS 3 1 0 0 0\n", "", "ATOM before COUNTS"),
        ("M  V30 END BOND\n", "", "not a line of a V3000 block: `M  END`"),
        ("M  END\n", "", "the molecule ends early"),
    ] {
        let all = read_all(&text.replace(from, to));
        assert_eq!((all.conformers.len(), &*all.skipped[0].reason), (0, reason));
    }
}

#[test]
fn v2000_is_whole() {
    let whole = v2000("a", &[CARBON, CARBON], "");
    assert_eq!(read_all(&whole).conformers.len(), 1);
    for (from, to, reason) in [
        ("  2  1  0", "  2  3  0", "3 bonds announced, 1 found"),
        ("M  END\n", "", "the molecule ends early"),
        ("M  END\n", "> <smiles>\nCC\n\n", "data items before `M  END`"),
    ] {
        let all = read_all(&(whole.replace(from, to) + &whole));
        assert_eq!((all.conformers.len(), &*all.skipped[0].reason), (1, reason));
    }
}
