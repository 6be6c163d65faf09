use super::*;
use drift_core::chem::{Atom, Bond, Order};

/// Returns the head of a molecule of this version and size.
fn head(version: Version, atoms: i32, bonds: i32) -> Vec<u8> {
    let mut bytes = 0xDEAD_BEEF_u32.to_le_bytes().to_vec();
    for number in [0, version.0, version.1, version.2, atoms, bonds] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.push(0x80);
    bytes
}

/// Returns one carbon with this flag byte, and what follows it.
fn carbon(flags: u8, more: &[u8]) -> Vec<u8> {
    [&[1, 6, flags, 0, 0, 0, 0], more].concat()
}

/// No conformers, no properties, end.
const EMPTY_TAIL: &[u8] = &[tag::BEGIN_CONFS, 4, 0, 0, 0, 0, 0, 0, 0, tag::END_MOL];

fn with_query(query: &[u8]) -> Vec<u8> {
    let query = [&[tag::BEGIN_QUERY], query, &[tag::END_QUERY]].concat();
    [head((16, 4, 0), 1, 0), carbon(1 << 4, &query), vec![tag::BEGIN_BOND], EMPTY_TAIL.to_vec()].concat()
}

#[test]
fn versions_outside_the_range_are_refused_by_name() {
    for (version, shown) in
        [((11, 0, 0), "11.0"), ((12, 0, 0), "12.0"), ((17, 0, 0), "17.0"), ((-1, 0, 0), "-1.0")]
    {
        let error = parse(&head(version, 0, 0)).unwrap_err();
        assert_eq!(error.to_string(), format!("RDKit binary version {shown}; drift reads 12.1 to 16"));
    }
}

#[test]
fn other_bytes_are_refused() {
    let reason = |bytes| parse(bytes).unwrap_err().0;
    assert!(reason(b"\xde\xad\xbe\xef and more").starts_with("not an RDKit molecule"));
    assert_eq!(reason(b""), "RDKit molecule is truncated: there is no value at byte 0");
}

#[test]
fn declared_counts_are_not_believed() {
    let reason = |atoms, bonds| parse(&head((16, 4, 0), atoms, bonds)).unwrap_err().0;
    assert!(reason(i32::MAX, i32::MAX).starts_with("RDKit molecule is truncated"));
    assert!(reason(-1, 0).starts_with("RDKit molecule is malformed"));
}

#[test]
fn a_bond_to_nowhere_is_refused() {
    let bytes = [head((16, 4, 0), 1, 1), carbon(0, &[]), vec![tag::BEGIN_BOND, 0, 1, 0], EMPTY_TAIL.to_vec()]
        .concat();
    assert!(parse(&bytes).unwrap_err().to_string().contains("a bond to an atom that does not exist"));
}

#[test]
fn query_trees_of_any_depth_are_stepped_over() {
    let node = |children: u8| [0, 0, 0, 0, tag::QUERY_AND, tag::QUERY_NUM_CHILDREN, children];
    let deep = [node(1).repeat(100_000), node(0).to_vec()].concat();
    assert_eq!(parse(&with_query(&deep)).unwrap().graph.atoms.len(), 1);
}

#[test]
fn recursive_queries_nest_only_so_deep() {
    let around = |inner: &[u8]| {
        let start = [0, 0, 0, 0, tag::QUERY_RECURSIVE, tag::QUERY_VALUE];
        with_query(&[start.as_slice(), inner, &[tag::QUERY_NUM_CHILDREN, 0]].concat())
    };
    let mut molecule =
        [head((16, 4, 0), 0, 0), vec![tag::BEGIN_ATOM, tag::BEGIN_BOND], EMPTY_TAIL.to_vec()].concat();
    for _ in 0..20 {
        molecule = around(&molecule);
    }
    assert!(parse(&molecule).is_ok());
    for _ in 0..1000 {
        molecule = around(&molecule);
    }
    assert!(parse(&molecule).unwrap_err().to_string().contains("nest too deep"));
}

#[test]
fn more_than_255_atoms_make_indices_wide() {
    let bond = [tag::BEGIN_BOND, 255, 0, 0, 0, 254, 0, 0, 0];
    let conformer = [tag::BEGIN_CONFS, 0, 0, 0, 0, 1, 0, 0, 0, 1, 7, 0, 0, 0, 0, 1, 0, 0];
    let positions: Vec<u8> = (0..256 * 3).flat_map(|number: u16| f32::from(number).to_le_bytes()).collect();
    let atoms = [6, 0, 0, 0, 0, 0].repeat(256);
    let mut bytes = [head((13, 0, 0), 256, 1), vec![tag::BEGIN_ATOM], atoms].concat();
    bytes.extend([&bond[..], &[0], &conformer, &positions, &[tag::END_MOL]].concat());
    let molecule = parse(&bytes).unwrap();
    assert_eq!(molecule.graph.bonds[0].atoms, [255, 254]);
    let Positions::Single(positions) = &molecule.conformers[0].positions else { panic!() };
    assert_eq!((molecule.conformers[0].id, positions[255]), (7, [765.0, 766.0, 767.0]));
}

#[test]
fn more_than_255_bonds_make_indices_wide_from_16_4_on() {
    let bonds = [0u8, 0, 0].repeat(256);
    let narrow = |version| {
        [head(version, 1, 256), carbon(0, &[]), vec![tag::BEGIN_BOND], bonds.clone(), EMPTY_TAIL.to_vec()]
            .concat()
    };
    assert_eq!(parse(&narrow((16, 3, 0))).unwrap().graph.bonds.len(), 256);
    assert!(parse(&narrow((16, 4, 0))).is_err());
}

#[test]
fn a_molecule_is_a_structure() {
    // [13CH2-] with a radical, no implied hydrogens and a query; N with an isotope that none has.
    let query = [tag::BEGIN_QUERY, 0, 0, 0, 0, tag::QUERY_AND, tag::QUERY_NUM_CHILDREN, 0, tag::END_QUERY];
    let mask = (1_i32 << 1 | 1 << 4 | 1 << 7 | 1 << 8).to_le_bytes();
    let first = [&[6, 1 << 5 | 1 << 4][..], &mask, &[0xff, 2, 1, 13, 0, 0, 0], &query].concat();
    let second = [&[7, 0][..], &(1_i32 << 8).to_le_bytes(), &100_000u32.to_le_bytes()].concat();
    let third = [8u8, 0, 0, 0, 0, 0];
    let bonds = [tag::BEGIN_BOND, 0, 1, 1 << 3, 4, 1, 2, 1 << 3, 21];
    let bytes =
        [&head((16, 4, 0), 3, 2)[..], &[tag::BEGIN_ATOM], &first, &second, &third, &bonds, EMPTY_TAIL]
            .concat();
    let structure = parse(&bytes).unwrap().graph;
    let carbon = Atom {
        element: 6,
        charge: -1,
        isotope: 13,
        hydrogens: 2,
        bracket: true,
        radicals: 1,
        ..Atom::default()
    };
    let nitrogen = Atom { element: 7, isotope: 100_000, ..Atom::default() };
    let oxygen = Atom { element: 8, ..Atom::default() };
    assert_eq!(structure.atoms, [carbon, nitrogen, oxygen]);
    assert_eq!(structure.bonds, [Bond::new([0, 1], Order::Quadruple), Bond::new([1, 2], Order::Any)]);
}
