use super::*;
use drift_core::vector::{distance, triple};

const NUMBERS: [u8; 5] = [6, 7, 8, 1, 16];
const POSITIONS: [Vector; 5] =
    [[0.1, 2.0, -0.7], [1.4, -0.3, 3.3], [-2.2, 0.9, 0.4], [5.0, 1.0, 1.0], [0.0, -1.5, -0.2]];

/// Checks that [`POSITIONS`] have the same distances after they were `turned`.
fn check_distances(turned: &[Vector; 5]) {
    for i in 0..5 {
        for j in 0..5 {
            let (before, after) = (distance(POSITIONS[i], POSITIONS[j]), distance(turned[i], turned[j]));
            assert!((before - after).abs() < 1e-12);
        }
    }
}

#[test]
fn centre_axes_distances_and_handedness() {
    let mut turned = POSITIONS;
    principal(&NUMBERS, &mut turned);
    let masses = NUMBERS.map(|n| weight_dalton(n).unwrap());
    for axis in 0..3 {
        let centre: f64 = masses.iter().zip(&turned).map(|(m, p)| m * p[axis]).sum();
        assert!(centre.abs() < 1e-9);
    }
    let tensor = inertia(&masses, &turned);
    assert!(tensor[0][0] <= tensor[1][1] && tensor[1][1] <= tensor[2][2]);
    assert!(tensor[0][1].abs().max(tensor[0][2].abs()).max(tensor[1][2].abs()) < 1e-9);
    check_distances(&turned);
    let volume = |p: &[Vector; 5]| {
        let edge = |k: usize| minus(p[k], p[0]);
        triple(edge(3), edge(1), edge(2))
    };
    assert!((volume(&POSITIONS) - volume(&turned)).abs() < 1e-9, "a mirror image");
}

#[test]
fn what_lies_in_the_frame_stays() {
    let mut once = POSITIONS;
    principal(&NUMBERS, &mut once);
    let mut twice = once;
    principal(&NUMBERS, &mut twice);
    assert!(once.iter().zip(&twice).all(|(a, b)| distance(*a, *b) < 1e-12));
}

#[test]
fn degenerate_molecules() {
    let mut atom = [[1.0, 2.0, 3.0]];
    principal(&[6], &mut atom);
    assert!(distance(atom[0], [0.0; 3]) < 1e-12);
    let mut linear = [[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]];
    principal(&[6, 6], &mut linear);
    assert!((linear[0][0].abs() - 1.0).abs() < 1e-12, "the axis goes to x");
    principal(&[], &mut []);
    let mut dummy = [[1.0, 0.0, 0.0]];
    principal(&[0], &mut dummy);
    assert_eq!(dummy, [[1.0, 0.0, 0.0]]);
}

#[test]
fn the_first_atoms_span_the_frame() {
    let mut turned = POSITIONS;
    first_atoms(&mut turned);
    assert_eq!(turned[0], [0.0; 3]);
    assert!(turned[1][0] > 0.0 && turned[1][1..] == [0.0, 0.0]);
    assert!(turned[2][1] > 0.0 && turned[2][2] == 0.0);
    check_distances(&turned);
    let mut mirrored = POSITIONS.map(|[x, y, z]| [-x, y, z]);
    first_atoms(&mut mirrored);
    for (a, b) in turned.iter().zip(mirrored) {
        assert!(distance(*a, [b[0], b[1], -b[2]]) < 1e-12, "a mirror image differs in the signs of z alone");
    }
    let mut twice = turned;
    first_atoms(&mut twice);
    assert!(turned.iter().zip(&twice).all(|(a, b)| distance(*a, *b) < 1e-12), "what lies in the frame stays");
}

#[test]
fn atoms_on_the_line_of_the_first_two_span_no_plane() {
    // The third atom is on the line but for 10⁻³ Å; the fourth is the first that is off it.
    let mut nitrile =
        [[0.0, 0.0, 0.0], [0.0, 0.0, 1.2], [0.001, 0.0, 2.6], [0.0, -1.4, 3.1], [0.0, 0.0, 9.0]];
    first_atoms(&mut nitrile);
    assert!(nitrile[3][1] > 1.39 && nitrile[3][2] == 0.0);
    assert!((nitrile[2][2].abs() - 0.001).abs() < 1e-9);
    let mut line = [[1.0, 1.0, 1.0], [1.0, 1.0, 2.0], [1.0, 1.0, 3.5]];
    first_atoms(&mut line);
    assert_eq!(line, [[0.0; 3], [1.0, 0.0, 0.0], [2.5, 0.0, 0.0]]);
    // Nearly on a line: the atom with the largest angle spans the plane.
    let mut nearly =
        [[0.0, 0.0, 0.0], [0.0, 0.0, 1.2], [0.001, 0.0, 2.6], [0.0, -0.1, 3.9], [0.02, 0.0, 5.3]];
    first_atoms(&mut nearly);
    assert!(nearly[3][1] > 0.099 && nearly[3][2] == 0.0 && (nearly[4][2].abs() - 0.02).abs() < 1e-9);
    let again = {
        let mut again = nearly;
        first_atoms(&mut again);
        again
    };
    assert!(nearly.iter().zip(&again).all(|(a, b)| distance(*a, *b) < 1e-12));
    for mut few in [vec![], vec![[1.0, 2.0, 3.0]], vec![[1.0, 2.0, 3.0]; 2]] {
        first_atoms(&mut few);
        assert!(few.iter().all(|p| *p == [0.0; 3]));
    }
}

#[test]
fn elements_of_bracket_atoms() {
    let skeleton = "[13CH3]<>[nH]<>[C@@H]<>[se]<>[Cl]<>[NH2+]<>[Sc]<>[2H]<>[Cu+2]<>";
    assert_eq!(elements(skeleton), Ok(vec![6, 7, 6, 34, 17, 7, 21, 1, 29]));
    assert!(elements("[*]<>").is_err());
}

/// The text of a text in a frame is that text.
#[test]
fn a_text_in_its_frame_is_not_moved() {
    let benzene = "[c]<>1[c]<>[c]<>[c]<>[c]<>[c]<>1";
    let ring = |at: usize| {
        let angle = std::f64::consts::FRAC_PI_3 * at as f64;
        [1.39 * angle.cos(), 1.39 * angle.sin(), 0.0]
    };
    let neopentane = "[C]<>[C]<>([C]<>)([C]<>)[C]<>";
    let corner = 1.53 / 3f64.sqrt();
    let tetrahedron = [
        [0.0; 3],
        [corner; 3],
        [corner, -corner, -corner],
        [-corner, corner, -corner],
        [-corner, -corner, corner],
    ];
    // The angle at the second atom is 175°, then almost exactly that at which atoms count as off the line.
    let bent =
        |sine: f64| vec![[0.0; 3], [1.2, 0.0, 0.0], [2.6, 2.6 * sine, 0.0], [4.1, 0.0, 4.1 * sine * 0.99]];
    let nitrile = "[N]<>#[C]<>[C]<>#[C]<>";
    let cases: Vec<(&str, Vec<Vector>)> = vec![
        (benzene, (0..6).map(ring).collect()),
        (neopentane, tetrahedron.to_vec()),
        (nitrile, bent(0.0)),
        (nitrile, bent(1e-4)),
        (nitrile, bent(0.04)),
        (nitrile, bent(0.1005)),
        ("[C]<>", vec![[1.0, 2.0, 3.0]]),
        ("[C]<>[O]<>", vec![[1.0, 2.0, 3.0], [1.1, 2.2, 4.2]]),
    ];
    let encodings =
        ["fixed", "stripped", "fixed-2", "binned-v1:-21,21,0.05", "binned-v1:-13,13,0.104", "integers:333,5"];
    for name in encodings {
        let encoding: Encoding = name.parse().unwrap();
        for (skeleton, positions) in &cases {
            for turn in 0..20 {
                let turned = turned(positions, turn);
                let values: Vec<[Fixed; 3]> =
                    turned.iter().map(|position| fixed(*position, encoding).unwrap()).collect();
                for frame in [Frame::Principal, Frame::FirstAtoms] {
                    let same = (encoding, encoding);
                    let once = rewritten(skeleton, &values, frame, same).unwrap();
                    assert_eq!(
                        rewritten(skeleton, &once, frame, same).unwrap(),
                        once,
                        "{name} {skeleton} {frame:?}"
                    );
                }
            }
        }
    }
}

/// Positions in some other pose.
fn turned(positions: &[Vector], number: u32) -> Vec<Vector> {
    let (a, b) = (0.7 * f64::from(number), 1.9 * f64::from(number));
    let rows = [
        [a.cos(), -a.sin(), 0.0],
        [a.sin() * b.cos(), a.cos() * b.cos(), -b.sin()],
        [a.sin() * b.sin(), a.cos() * b.sin(), b.cos()],
    ];
    let shift = f64::from(number) * 0.137;
    positions.iter().map(|p| rows.map(|row| dot(row, *p) + shift)).collect()
}
