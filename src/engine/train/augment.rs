//! Random variants of conformers, so that each pass over the corpus sees other coordinates.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

use super::parameters::normal;
use drift_core::Encoding;
use drift_core::encoding::Fixed;
use drift_data::corpus::frame::first_atoms;
use drift_data::corpus::{Conformer, Frame};

/// The offset of the random streams, different from those of initial weights and of orders.
const STREAM: u64 = 3 << 33;

/// The random changes of a conformer before its document is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Augmentation {
    /// Whether it is rotated by one of the four rotations that keep a principal-axis frame: none, or a half turn about one of the
    /// axes.
    pub turned: bool,
    /// The standard deviation of the noise added to each coordinate, in Å. Without noise, the exactly planar benzene of a force
    /// field is a single text, while every other geometry is one of very many. Sampling at a low temperature then produces z =
    /// 0.0000 far too often.
    pub noise_angstrom: f64,
    /// The frame of the conformers. The frame of the first atoms is computed again after adding noise, so that it holds exactly in
    /// every text, if the encoding can write 0 Å. The principal axes are kept, because a little noise hardly rotates them.
    pub frame: Frame,
}

impl Augmentation {
    /// Returns whether nothing is changed.
    pub fn is_none(&self) -> bool {
        !self.turned && self.noise_angstrom == 0.0
    }

    /// Returns the changed conformer for draw number `draw` of a training.
    pub fn apply(&self, conformer: &Conformer, encoding: Encoding, seed: u64, draw: u64) -> Conformer {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(STREAM + draw);
        let turn: usize = if self.turned { random.random_range(0..4) } else { 0 };
        // The sign of axis `turn - 1` stays; the other two change.
        let signs = [1, 2, 3].map(|axis| if turn == 0 || turn == axis { 1 } else { -1 });
        if !encoding.is_decimal() || self.frame == Frame::FirstAtoms {
            return self.requantized(conformer, encoding, signs, &mut random);
        }
        let precision = encoding.precision();
        let noise = self.noise_angstrom * f64::from(precision.units_per_angstrom());
        let most = precision.max_fixed();
        let mut changed = conformer.clone();
        for (value, sign) in changed.coordinates.iter_mut().flat_map(|atom| atom.iter_mut().zip(signs)) {
            let added =
                if noise > 0.0 { (noise * f64::from(normal(&mut random))).round() as Fixed } else { 0 };
            // No encoding can write values beyond `most`, and noise may push a value there.
            *value = (sign * *value + added).clamp(-most, most);
        }
        changed
    }

    /// Returns the same changes in Å, with the result encoded again. Codes stay unchanged.
    fn requantized(
        &self,
        conformer: &Conformer,
        encoding: Encoding,
        signs: [Fixed; 3],
        random: &mut ChaCha8Rng,
    ) -> Conformer {
        let mut changed = conformer.clone();
        let positions: Option<Vec<_>> = conformer.coordinates.iter().map(|v| encoding.angstrom(v)).collect();
        let Some(mut positions) = positions else { return changed };
        for (x, sign) in positions.iter_mut().flat_map(|position| position.iter_mut().zip(signs)) {
            *x = f64::from(sign) * *x + self.noise_angstrom * f64::from(normal(random));
        }
        if self.frame == Frame::FirstAtoms && writes_zero(encoding) {
            first_atoms(&mut positions);
        }
        for (values, position) in changed.coordinates.iter_mut().zip(positions) {
            // A position that cannot be encoded stays unchanged.
            *values = encoding.quantize(position).unwrap_or(*values);
        }
        changed
    }
}

/// Returns whether an encoding can write 0 Å. If bins have an edge there, the frame of rounded positions is not the frame of the
/// molecule: the second atom seems to be off the x axis, and all others would be rotated by that error.
fn writes_zero(encoding: Encoding) -> bool {
    let zero = encoding.quantize([0.0; 3]).ok().and_then(|values| encoding.angstrom(&values));
    zero.is_some_and(|position| position.iter().all(|x| x.abs() < 1e-6))
}
