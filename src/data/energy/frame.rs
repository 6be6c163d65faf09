//! The frames that are passed to an energy program.

/// A conformer whose energy is requested.
#[derive(Debug, Clone, PartialEq)]
pub struct EnergyFrame {
    /// The SMILES of its molecule. The atoms are in the order of the SMILES; atoms that it does not write (most hydrogens) are
    /// missing.
    pub smiles: String,
    /// The symbol of each atom.
    pub elements: Vec<&'static str>,
    /// The position of each atom, in Å.
    pub points: Vec<[f64; 3]>,
}

impl EnergyFrame {
    /// Returns the frame as XYZ text, with six decimals.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n{}\n", self.points.len(), self.smiles);
        for (element, [x, y, z]) in self.elements.iter().zip(&self.points) {
            text += &format!("{element} {x:.6} {y:.6} {z:.6}\n");
        }
        text
    }
}
