//! What a program is asked.

/// A conformer that an energy is wanted of.
#[derive(Debug, Clone, PartialEq)]
pub struct EnergyFrame {
    /// Its molecule; the atoms are in its order, and those that it does not write, most hydrogens, are not there.
    pub smiles: String,
    /// The symbol of each atom.
    pub elements: Vec<&'static str>,
    /// Where each lies, in Å.
    pub points: Vec<[f64; 3]>,
}

impl EnergyFrame {
    /// As XYZ, with six decimals.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n{}\n", self.points.len(), self.smiles);
        for (element, [x, y, z]) in self.elements.iter().zip(&self.points) {
            text += &format!("{element} {x:.6} {y:.6} {z:.6}\n");
        }
        text
    }
}
