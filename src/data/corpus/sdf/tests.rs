mod drawings;
mod extensions;

use super::*;
use crate::corpus::{Batch, ReadOptions};
use drift_core::chem::{Atom, Bond, Order};

fn read_all(text: &str) -> Batch {
    crate::corpus::testing::read_all(read, text)
}

fn v2000(title: &str, atoms: &[&str], items: &str) -> String {
    let (count, bonds) = (atoms.len(), atoms.len() - 1);
    let chain: String = (1..count).map(|atom| format!("{atom:3}{:3}  1  0\n", atom + 1)).collect();
    let atoms = atoms.join("\n");
    format!(
        "{title}\n     drift          3D\n\n{count:3}{bonds:3}  0  0  0  0  0  0  0  0999 V2000\n{atoms}\n{chain}\
        M  END\n{items}$$$$\n"
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
        (v2000("", &[HYDROGEN], ""), "molecule 1, line 6", "no heavy atom"),
        (
            v2000("a", &[CARBON; 2], "").replacen("  2  1", "  9  1", 1),
            "molecule 1 (a), line 7",
            "`  1  2  1  0`",
        ),
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
fn v3000_with_continuations() {
    let text = "title\n  x                 3D\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\nM  V30 COUNTS 3 1 0 0 0\n\
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
        ("COUNTS 3 1", "COUNTS -3 1", "no counts of atoms and bonds: `-3 1 0 0 0`"),
        ("M  V30 COUNTS 3 1 0 0 0\n", "", "ATOM before COUNTS"),
        ("M  V30 END BOND\n", "", "1 bonds announced, more found"),
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

/// Returns the tables of the molecules of a text, or why there is none.
fn structures(text: &str) -> Vec<Result<Graph, String>> {
    let mut reader = text.as_bytes();
    let mut records = Records { lines: Lines::new(&mut reader), end: End::No };
    let mut atoms = Atoms::new(&ReadOptions::default(), "file");
    let mut structures = Vec::new();
    loop {
        records.end = End::No;
        atoms.clear();
        let header = std::array::from_fn(|_| records.line().unwrap().unwrap_or_default().into_owned());
        if records.end == End::File {
            return structures;
        }
        let outcome = records.molecule(&header, &mut atoms);
        structures.push(match outcome {
            Ok(()) => Ok(Graph::clone(atoms.structure().unwrap())),
            Err(Stop::Bad(reason) | Stop::Refused(Refusal { reason, .. })) => Err(reason),
            Err(Stop::Io(error)) => panic!("{error}"),
        });
        records.data_items(&mut Items::default()).unwrap();
    }
}

/// Ethanal's atoms with what `edit` makes of the text.
fn edited(edit: impl Fn(String) -> String) -> Result<Graph, String> {
    let atom = |symbol: &str| {
        format!("    0.0000    0.0000    0.0000 {symbol:3} 0  0  0  0  0  0  0  0  0  0  0  0")
    };
    let text = v2000("t", &[&atom("C"), &atom("O"), &atom("D")], "");
    structures(&edit(text)).remove(0)
}

const PLAIN: Atom = Atom {
    element: 6,
    charge: 0,
    isotope: 0,
    hydrogens: 0,
    bracket: false,
    radicals: 0,
    aromatic: false,
    chirality: None,
    map: None,
};

#[test]
fn bonds_of_v2000() {
    let kinds =
        |text: &str| edited(|whole| whole.replace("  1  2  1  0", text)).map(|structure| structure.bonds[0]);
    for (line, bond) in [
        ("  1  2  2  0", ([0, 1], Order::Double)),
        ("  2  1  3", ([1, 0], Order::Triple)),
        ("  1  2  4  0", ([0, 1], Order::Aromatic)),
        ("  3  1  9  0", ([2, 0], Order::Dative)),
        ("1 2 1 0", ([0, 1], Order::Single)),
    ] {
        let (atoms, order) = bond;
        assert_eq!(kinds(line), Ok(Bond::new(atoms, order)), "{line}");
    }
    for (line, reason) in [
        ("  1  4  1  0", "a bond to atom 4, which is missing"),
        ("  0  1  1  0", "a bond to atom 0, which is missing"),
        ("  1  1  1  0", "a bond of atom 1 to itself"),
        ("  3  2  1  0", "two bonds between atoms 2 and 3"),
        ("  1  2", "not a bond: `  1  2`"),
        (
            "  1  2  5  0",
            "bond type 5 (single or double) states no bond order; 1 to 3 do, 4 is aromatic, 9 dative",
        ),
    ] {
        assert_eq!(kinds(line), Err(reason.to_owned()), "{line}");
    }
}

#[test]
fn charges_isotopes_radicals_and_valences_of_v2000() {
    let atoms = |from: &str, to: &str| {
        edited(|whole| {
            assert!(whole.contains(from), "{from}");
            whole.replace(from, to)
        })
        .map(|structure| structure.atoms)
    };
    let plain = [PLAIN, Atom { element: 8, ..PLAIN }, Atom { element: 1, isotope: 2, ..PLAIN }];
    let first = |atom| Ok(vec![atom, plain[1], plain[2]]);
    assert_eq!(atoms("t", "t"), Ok(plain.to_vec()));
    for (line, atom) in [
        ("C   1", Atom { isotope: 13, ..PLAIN }),
        ("C  -1", Atom { isotope: 11, ..PLAIN }),
        ("C   0  3", Atom { charge: 1, ..PLAIN }),
        ("C   0  5", Atom { charge: -1, ..PLAIN }),
        // A doublet radical is no charge, and RDKit makes no radical of it.
        ("C   0  4", PLAIN),
        ("C   0  0  0  1", Atom { bracket: true, ..PLAIN }),
        ("C   0  0  0  0  0  4", Atom { bracket: true, hydrogens: 3, ..PLAIN }),
        ("C   0  0  0  0  0 15", Atom { bracket: true, ..PLAIN }),
        // A valence below that of the bonds.
        ("Br  0  0  0  0  0 -1", Atom { element: 35, bracket: true, ..PLAIN }),
    ] {
        let zeros = &"C   0  0  0  0  0  0"[..line.len()];
        assert_eq!(atoms(zeros, line), first(atom), "{line}");
    }
    for (lines, expected) in [
        ("M  CHG  1   1  -1\n", [Atom { charge: -1, ..PLAIN }, plain[1], plain[2]]),
        (
            "M  CHG  2   1   1   2  -2\n",
            [Atom { charge: 1, ..PLAIN }, Atom { charge: -2, ..plain[1] }, plain[2]],
        ),
        (
            "M  CHG 1 1 +1\nM  CHG  1   2  -1\n",
            [Atom { charge: 1, ..PLAIN }, Atom { charge: -1, ..plain[1] }, plain[2]],
        ),
        (
            "M  RAD  3   1   1   2   2   3   3\n",
            [
                Atom { radicals: 2, ..PLAIN },
                Atom { radicals: 1, ..plain[1] },
                Atom { radicals: 2, ..plain[2] },
            ],
        ),
        ("M  ISO  2   1  14   3    \n", [Atom { isotope: 14, ..PLAIN }, plain[1], plain[2]]),
        ("A    1\nM  CHG  1   1   1\n", plain),
        ("S  SKP  2\nM  CHG  1   1   1\nM  ISO  1   1  13\n", plain),
        ("M  STY  1   1 DAT\n\nV    1 note\n", plain),
    ] {
        assert_eq!(atoms("M  END", &format!("{lines}M  END")), Ok(expected.to_vec()), "{lines}");
    }
    // A list of charges or radicals makes those of the atom lines void.
    let listed =
        edited(|whole| whole.replace("C   0  0", "C   0  3").replace("M  END", "M  RAD  1   2   2\nM  END"));
    assert_eq!(listed.unwrap().atoms, [PLAIN, Atom { radicals: 1, ..plain[1] }, plain[2]]);
}

#[test]
fn contradicting_tables_are_refused() {
    for (from, to, reason) in [
        ("C   0  0", "C   x  0", "not a whole number: `x`"),
        ("D   0  0", "D  -9  0", "a mass difference of -9"),
        ("C   0  0", "C   0999", "a charge of -995"),
        ("M  END", "M  CHG  1   9   1\nM  END", "`M  CHG` of atom 9, which is missing"),
        ("M  END", "M  CHG  2   1   1\nM  END", "not a property: `M  CHG  2   1   1`"),
        ("M  END", "M  CHG999   1   1\nM  END", "not a property: `M  CHG999   1   1`"),
        ("M  END", "M  CHG  1   1 200\nM  END", "a charge of 200"),
        ("M  END", "M  ISO  1   1 99999\nM  END", "a mass number of 99999"),
        ("M  END", "M  RAD  1   1   4\nM  END", "a radical of kind 4"),
        ("M  END", "S  SKP  x\nM  END", "not a number: `S  SKP  x`"),
        ("M  END", "S  SKP999999999\nM  END", "the molecule ends early"),
    ] {
        let outcome = edited(|whole| whole.replace(from, to));
        assert!(outcome.as_ref().is_err_and(|found| found.contains(reason)), "{to}: {outcome:?}");
    }
}

#[test]
fn tables_of_v3000() {
    let text = "title\n  x                 3D\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\nM  V30 COUNTS 4 3 0 0 0\n\
        M  V30 BEGIN ATOM\nM  V30 10 C 0 0 1 0 CHG=-1 CFG=1 MASS=13 SUBST=1\nM  V30 7 O 0 0 0 0 rad=2 -\n\
        M  V30 VAL=-1\nM  V30 3 N 0 0 0 0 VAL=4 MASS=15.0001\nM  V30 1 H 0 0 0 0 HCOUNT=-1\nM  V30 END ATOM\n\
        M  V30 BEGIN BOND\nM  V30 1 1 10 7 CFG=3\nM  V30 2 4 7 3\nM  V30 3 9 3 1\nM  V30 END BOND\nM  V30 END CTAB\n\
        M  END\n$$$$\n";
    let structure = structures(text).remove(0).unwrap();
    assert_eq!(
        structure.atoms,
        [
            Atom { charge: -1, isotope: 13, ..PLAIN },
            Atom { element: 8, radicals: 1, bracket: true, aromatic: true, ..PLAIN },
            Atom { element: 7, isotope: 15, hydrogens: 3, bracket: true, aromatic: true, ..PLAIN },
            Atom { element: 1, ..PLAIN },
        ]
    );
    let bonds = [([0, 1], Order::Single), ([1, 2], Order::Aromatic), ([2, 3], Order::Dative)]
        .map(|(atoms, order)| Bond::new(atoms, order));
    assert_eq!(structure.bonds, bonds);
    for (from, to, reason) in [
        ("1 10 7", "1 10 2", "a bond to atom 2, which is missing"),
        ("M  V30 1 1 10 7 CFG=3", "M  V30 1 1 10", "not a bond: `1 1 10`"),
        ("COUNTS 4 3", "COUNTS 4 2", "2 bonds announced, more found"),
        ("COUNTS 4 3", "COUNTS 4 9000000", "9000000 bonds; at most 4000000 are read"),
        ("CHG=-1", "CHG=x", "not a whole number: `x`"),
        ("MASS=13", "MASS=-1", "not a mass: `-1`"),
        ("MASS=13", "MASS=nan", "not a mass: `nan`"),
        ("rad=2", "rad=7", "a radical of kind 7"),
        ("CFG=1", "RGROUPS=(1 1)", "`RGROUPS`: an R group is no atom"),
        ("CFG=1", "class=AA", "`CLASS`: a residue is no atom"),
        ("CFG=3", "ENDPTS=(2 7 3) ATTACH=ANY", "`ENDPTS`: a bond to several atoms has no order"),
    ] {
        assert_eq!(structures(&text.replace(from, to)).remove(0), Err(reason.to_owned()));
    }
}

#[test]
fn all_data_items_are_kept() {
    let text = v2000("t", &[CARBON], "> <a>\n1\nsecond line\n\n>  25 <b> (3)\n\n> <c>\n> <d>\n 4 \n");
    let mut reader = text.as_bytes();
    let mut records = Records { lines: Lines::new(&mut reader), end: End::No };
    let mut items = Items::default();
    records
        .next(1, &mut Atoms::new(&ReadOptions::default(), "file"), &mut items)
        .unwrap()
        .unwrap()
        .outcome
        .unwrap();
    assert_eq!(items.iter().collect::<Vec<_>>(), [("a", "1"), ("b", ""), ("d", "4")]);
}
