//! Drawings and conformers: the verdicts are those of RDKit's `Conformer.Is3D`, but for more than four atoms at one other height.

use super::{read_all, v2000};

/// Atoms of a molecule, x and y as given, all at one height.
fn atoms(count: usize, z: &str) -> Vec<String> {
    (0..count).map(|at| format!("{:10.4}{:10.4}{z:>10} C   0  0", at as f64 * 1.3, (at % 2) as f64)).collect()
}

fn molecule(count: usize, z: &str, code: &str) -> String {
    let atoms = atoms(count, z);
    v2000("a", &atoms.iter().map(String::as_str).collect::<Vec<_>>(), "").replace("3D", code)
}

/// Returns whether a text is a conformer; otherwise it must be called a drawing.
#[track_caller]
fn is_conformer(text: &str) -> bool {
    let all = read_all(text);
    if let Some(skipped) = all.skipped.first() {
        assert!(skipped.reason.starts_with("a 2D drawing, not a conformer"), "{}", skipped.reason);
    }
    all.conformers.len() == 1
}

#[test]
fn flat_atoms_are_a_drawing_unless_the_header_says_3d() {
    for (count, z, code, expected) in [
        (1, "0.0000", "2D", false),
        (1, "0.0000", "  ", false),
        (1, "0.0000", "3D", true),
        (2, "0.0000", "  ", false),
        (6, "0.0000", "  ", false),
        (6, "-0.0000", "2D", false),
        (6, "0.0000", "3D", true),
        (6, "0.0000", "3d", true),
        (6, "0.0000", "xx", false),
        // Below RDKit's tolerance.
        (6, "0.0009", "  ", false),
        (4, "1.5000", "  ", true),
        (5, "1.5000", "  ", false),
        (5, "1.5000", "2D", false),
        (5, "1.5000", "3D", true),
    ] {
        assert_eq!(is_conformer(&molecule(count, z, code)), expected, "{count} atoms, z = {z}, `{code}`");
    }
    // One atom beside the plane is enough.
    for code in ["2D", "  ", "3D"] {
        let text = molecule(6, "0.0000", code);
        assert!(is_conformer(&text.replacen("0.0000 C", "0.0020 C", 1)), "{code}");
    }
    // A second line that is short or has no ASCII.
    for line in ["", "     drift         ää3D"] {
        assert!(!is_conformer(&molecule(6, "0.0000", "3D").replacen("     drift          3D", line, 1)));
    }
}

#[test]
fn wedges_on_flat_atoms_are_a_drawing_whatever_the_header_says() {
    let flat = molecule(6, "0.0000", "3D");
    for (bond, expected) in
        [("  1  2  1  1", false), ("  1  2  1  6", false), ("  1  2  2  3", false), ("  1  2  1  4", true)]
    {
        assert_eq!(is_conformer(&flat.replacen("  1  2  1  0", bond, 1)), expected, "{bond}");
        // On a conformer a wedge is only another notation of what the coordinates say.
        let tall = flat.replacen("0.0000 C", "1.0000 C", 1).replacen("  1  2  1  0", bond, 1);
        assert!(is_conformer(&tall), "{bond}");
    }
}

#[test]
fn v3000_follows_the_same_rule() {
    let text = |code: &str, z: &str, stereo: &str| {
        format!(
            "t\n     drift          {code}\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\nM  V30 COUNTS 2 1 0 0 0\n\
             M  V30 BEGIN ATOM\nM  V30 1 C 0 0 0 0\nM  V30 2 C 1.5 0 {z} 0\nM  V30 END ATOM\nM  V30 BEGIN BOND\n\
             M  V30 1 1 1 2{stereo}\nM  V30 END BOND\nM  V30 END CTAB\nM  END\n$$$$\n"
        )
    };
    for (code, z, stereo, expected) in [
        ("  ", "0", "", false),
        ("3D", "0", "", true),
        ("3D", "0", " CFG=1", false),
        ("3D", "0", " CFG=2", true),
        ("3D", "0.5", " CFG=3", true),
        ("2D", "0.5", "", true),
    ] {
        assert_eq!(is_conformer(&text(code, z, stereo)), expected, "{code} {z}{stereo}");
    }
}
