//! Distances between the ends of planar chains. Lengths are in Å, angles in radians.

/// A chain of three bonds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planar {
    pub lengths: [f64; 3],
    pub angles: [f64; 2],
}

impl Planar {
    /// Returns the distance along the middle bond, and the offsets across it at the last and the first atom.
    fn parts(self) -> (f64, f64, f64) {
        let ([a, b, c], [one, two]) = (self.lengths, self.angles);
        (b - c * two.cos() - a * one.cos(), c * two.sin(), a * one.sin())
    }

    /// Returns the distance with both ends on one side.
    pub(super) fn cis(self) -> f64 {
        let (along, last, first) = self.parts();
        along.hypot(last - first)
    }

    /// Returns the distance with the ends on opposite sides.
    pub(super) fn trans(self) -> f64 {
        let (along, last, first) = self.parts();
        along.hypot(last + first)
    }

    /// Returns the distance with one end rotated out of the plane by an angle.
    pub(super) fn turned(self, angle: f64) -> f64 {
        let (along, last, first) = self.parts();
        (along * along + last * last + first * first - 2.0 * last * first * angle.cos()).sqrt()
    }
}

/// Returns the distance between the ends of a planar chain of four bonds; `first` and `second` say whether each torsion is cis.
pub(super) fn far([a, b, c, d]: [f64; 4], [one, two, three]: [f64; 3], first: bool, second: bool) -> f64 {
    let planar = Planar { lengths: [a, b, c], angles: [one, two] };
    let end = if first { planar.cis() } else { planar.trans() };
    let turn = if first { one + two } else { one - two };
    // The angle at the fourth atom between the first and the third atom.
    let cosine = (c - b * two.cos() + a * turn.cos()) / end;
    // Rounding can leave the range of a cosine if the chain is straight.
    let inside = cosine.clamp(-1.0, 1.0).acos();
    let angle = if second { three - inside } else { three + inside };
    (end * end + d * d - 2.0 * end * d * angle.cos()).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: f64 = std::f64::consts::FRAC_PI_2;

    #[test]
    fn chains_with_right_angles() {
        let chain = Planar { lengths: [1.0, 2.0, 1.0], angles: [RIGHT, RIGHT] };
        assert!((chain.cis() - 2.0).abs() < 1e-12);
        assert!((chain.trans() - 8.0_f64.sqrt()).abs() < 1e-12);
        assert!((chain.turned(RIGHT) - 6.0_f64.sqrt()).abs() < 1e-12);
        // A rectangle that closes, and one that goes on.
        let closed = far([1.0, 1.0, 1.0, 1.0], [RIGHT; 3], true, true);
        assert!(closed.abs() < 1e-6, "{closed}");
        assert!((far([1.0, 1.0, 1.0, 1.0], [RIGHT; 3], true, false) - 2.0).abs() < 1e-12);
    }
}
