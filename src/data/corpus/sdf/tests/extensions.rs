//! Lines and keywords beyond atoms, bonds and charges: what RDKit 2026.09 reads of them, and what is refused.

use super::*;

/// Borane and ammonia with what `lines` say of them.
fn adduct(lines: &str) -> Result<Graph, String> {
    let atoms = ["    0.0000    0.0000    0.0000 N   0  0", "    1.5000    0.0000    0.0000 B   0  0"];
    structures(&v2000("t", &atoms, "").replace("M  END", &format!("{lines}M  END"))).remove(0)
}

fn v3000(bond: &str, groups: &str) -> Result<Graph, String> {
    let text = format!(
        "t\n     drift          3D\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\nM  V30 COUNTS 2 1 1 0 0\n\
         M  V30 BEGIN ATOM\nM  V30 7 N 0 0 0 0\nM  V30 8 B 1.5 0 0 0\nM  V30 END ATOM\nM  V30 BEGIN BOND\n\
         M  V30 5 {bond} 7 8\nM  V30 END BOND\nM  V30 BEGIN SGROUP\n{groups}M  V30 END SGROUP\nM  V30 END CTAB\nM  END\n$$$$\n"
    );
    structures(&text).remove(0)
}

const N: Atom = Atom { element: 7, ..PLAIN };
const B: Atom = Atom { element: 5, ..PLAIN };

fn graph(atoms: [Atom; 2], order: Order) -> Result<Graph, String> {
    Ok(Graph::of_file(atoms.to_vec(), vec![Bond::new([0, 1], order)]))
}

#[test]
fn zero_order_bonds_hydrogens_and_charges() {
    let filled = [Atom { hydrogens: 3, ..N }, Atom { hydrogens: 3, ..B }];
    for (lines, expected) in [
        ("M  ZBO  1   1   0\nM  HYD  2   1   3   2   3\n", graph(filled, Order::Any)),
        ("M  ZBO  1   1\n", graph([N, B], Order::Any)),
        ("M  ZBO  1   1   2\n", graph([N, B], Order::Double)),
        ("M  HYD  2   1   0   2  -1\n", graph([N, B], Order::Single)),
        (
            "M  ZCH  2   1   1   2  -1\n",
            graph([Atom { charge: 1, ..N }, Atom { charge: -1, ..B }], Order::Single),
        ),
        // Unlike `M  CHG`, it leaves other charges alone.
        (
            "M  CHG  1   2  -1\nM  ZCH  1   1   1\n",
            graph([Atom { charge: 1, ..N }, Atom { charge: -1, ..B }], Order::Single),
        ),
        // What RDKit's writer adds for ChemAxon's readers.
        (
            "M  STY  3   1 DAT   2 DAT   3 DAT\nM  SAL   1  2   1   2\nM  SBL   1  1   1\nM  SDT   1 ZBO                            T\n\
             M  SAL   2  2   1   2\nM  SDT   2 HYD                            T\nM  SED   2 3;3\n\
             M  SAL   3  2   1   2\nM  SDT   3 ZCH                            T\nM  SED   3 0;\n",
            graph(filled, Order::Any),
        ),
        // A name that only describes, and data that is split over lines.
        (
            "M  STY  1   1 DAT\nM  SAL   1  1   1\nM  SDT   1 pKa\nM  SCD   1 9.\nM  SED   1 2\n",
            graph([N, B], Order::Single),
        ),
        ("M  STY  1   1 SUP\nM  SAL   1  1   1\nM  SMT   1 ZBO\n", graph([N, B], Order::Single)),
        // Restrictions of a query, attachment points and link nodes leave the molecule as it is drawn.
        (
            "M  SUB  1   1   1\nM  RBC  1   1  -1\nM  UNS  1   1   1\nM  APO  1   1   1\nM  XYZ\n",
            graph([N, B], Order::Single),
        ),
    ] {
        assert_eq!(adduct(lines), expected, "{lines}");
    }
    for (bond, groups, expected) in [
        (
            "1",
            "M  V30 1 DAT 0 ATOMS=(2 7 8) CBONDS=(1 5) FIELDNAME=ZBO\n\
               M  V30 2 DAT 0 ATOMS=(2 7 8) FIELDNAME=HYD FIELDDATA=\"3;3\"\n",
            graph(filled, Order::Any),
        ),
        (
            "1",
            "M  V30 DEFAULT CLASS=x\nM  V30 1 dat 0 ATOMS=(1 8) FIELDNAME=ZCH FIELDDATA=-1\n",
            graph([N, Atom { charge: -1, ..B }], Order::Single),
        ),
        (
            "8",
            "M  V30 1 DAT 0 ATOMS=(2 7 8) FIELDNAME=MRV_COORDINATE_BOND_TYPE FIELDDATA=1\n",
            graph([N, B], Order::Dative),
        ),
        // A bond with an order keeps it.
        (
            "2",
            "M  V30 1 DAT 0 ATOMS=(2 7 8) FIELDNAME=MRV_COORDINATE_BOND_TYPE FIELDDATA=1\n",
            graph([N, B], Order::Double),
        ),
    ] {
        assert_eq!(v3000(bond, groups), expected, "{groups}");
    }
    // Hydrogens of aromatic atoms, which nothing else states.
    let hydrogens = "M  V30 1 DAT 0 ATOMS=(1 7) FIELDNAME=MRV_IMPLICIT_H FIELDDATA=IMPL_H1\n";
    assert_eq!(v3000("4", hydrogens).unwrap().atoms[0], Atom { hydrogens: 1, aromatic: true, ..N });
    assert_eq!(v3000("1", hydrogens).unwrap().atoms[0], N);
}

#[test]
fn what_makes_a_molecule_a_query_is_refused_by_name() {
    for (lines, reason) in [
        ("M  ALS   1  2 F C   N   \n", "`M  ALS`: a list of elements is a query, not an atom"),
        ("M  RGP  1   1   1\n", "`M  RGP`: an R group is no atom"),
        ("M  MRV SMA   1 [C,N]\n", "`M  MRV SMA`: a SMARTS pattern is a query, not an atom"),
        ("M  CRS  1   1   1\n", "`M  CRS`: crossing bonds of a polymer are not read"),
        ("  1 F    2   6   7\n", "more bonds than announced, or a list of elements: `  1 F    2   6   7`"),
        ("  1  2  1  0\n", "more bonds than announced, or a list of elements: `  1  2  1  0`"),
        ("M  ZBO  1   2   0\n", "`M  ZBO` of bond 2, which is missing"),
        ("M  ZBO  1   1  12\n", "`M  ZBO`: a bond of order 12"),
        ("M  HYD  1   3   1\n", "`M  HYD` of atom 3, which is missing"),
        ("M  HYD  1   1 999\n", "an atom with 999 hydrogens"),
        (
            "M  STY  1   1 DAT\nM  SBL   1  1   4\nM  SDT   1 ZBO\n",
            "data group `ZBO` of bond 4, which is missing",
        ),
        (
            "M  STY  1   1 DAT\nM  SAL   1  1   9\nM  SDT   1 HYD\nM  SED   1 1\n",
            "data group `HYD` of atom 9, which is missing",
        ),
        (
            "M  STY  1   1 DAT\nM  SAL   1  1   1\nM  SDT   1 ZCH\nM  SED   1 x\n",
            "data group `ZCH`: not a whole number: `x`",
        ),
        ("M  SAL   x  1   1\n", "not a substance group: `M  SAL   x  1   1`"),
        (
            "M  STY  1   1 DAT\nM  SAL   1  1   1\nM  SDT   1 x                                                   SQ=\nM  SED   1 [#7]\n",
            "data group `x`: a SMARTS pattern is a query, not an atom",
        ),
    ] {
        assert_eq!(adduct(lines), Err(reason.to_owned()), "{lines}");
    }
    let endless = "M  SCD   1 data of a group that does not end\n".repeat(30_000);
    assert_eq!(adduct(&endless), Err("more than 1 MiB of substance groups".to_owned()));
    let groups = "M  V30 1 DAT 0 ATOMS=(3 7 8) FIELDNAME=HYD\n";
    assert_eq!(v3000("1", groups), Err("not a list: `(3 7 8)`".to_owned()));
}

#[test]
fn a_bond_without_an_order_is_named_with_its_line() {
    for (kind, meaning) in [
        (0, ""),
        (5, " (single or double)"),
        (6, " (single or aromatic)"),
        (7, " (double or aromatic)"),
        (8, " (any)"),
        (10, " (a hydrogen bond)"),
        (11, ""),
    ] {
        let text = v2000("t", &[CARBON, CARBON], "> <smiles>\nCC\n\n")
            .replace("  1  2  1  0", &format!("  1  2{kind:3}  0"));
        let all = read_all(&text);
        let expected =
            format!("bond type {kind}{meaning} states no bond order; 1 to 3 do, 4 is aromatic, 9 dative");
        let found = &all.skipped[0];
        assert_eq!((&*found.record, &found.reason), ("molecule 1 (CC), line 7", &expected));
        assert_eq!(v3000(&kind.to_string(), ""), Err(expected));
    }
    // Another line may state its order.
    let text = v2000("t", &[CARBON, CARBON], "")
        .replace("  1  2  1  0", "  1  2  0  0")
        .replace("M  END", "M  ZBO  1   1   2\nM  END");
    assert_eq!(structures(&text).remove(0).unwrap().bonds, [Bond::new([0, 1], Order::Double)]);
}
