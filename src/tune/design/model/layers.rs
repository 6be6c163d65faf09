//! The decoder layers of a checkpoint: whether all are present, and have the same tensors.

use std::collections::BTreeMap;

use drift_core::checkpoint::{CONFIG, Header};

/// The tensors of the decoder layers.
pub(super) struct Layers {
    /// Stands before the number of a layer in the names of tensors.
    prefix: String,
    /// The shapes by layer, then by the name behind its number.
    shapes: BTreeMap<u64, BTreeMap<String, Vec<usize>>>,
}

impl Layers {
    /// Returns the layers in the headers of weights files.
    pub(super) fn of<'h>(headers: impl Iterator<Item = &'h Header>) -> Self {
        let mut layers = Layers { prefix: String::new(), shapes: BTreeMap::new() };
        for (name, info) in headers.flat_map(Header::in_order) {
            let Some((before, behind)) = name.split_once("layers.") else { continue };
            let Some((layer, rest)) = behind.split_once('.') else { continue };
            if let Ok(layer) = layer.parse() {
                layers.prefix = format!("{before}layers.");
                layers.shapes.entry(layer).or_default().insert(rest.to_owned(), info.shape.clone());
            }
        }
        layers
    }

    /// Checks that there are `count` layers, and that all have the same tensors with the same shapes.
    ///
    /// # Errors
    /// The first difference.
    pub(super) fn check(&self, count: u64) -> Result<(), String> {
        if let Some(more) = self.shapes.keys().find(|layer| **layer >= count) {
            return Err(format!("contains layer {more}, but num_hidden_layers in {CONFIG} is {count}"));
        }
        // Collects the tensors of all layers, since the first layer may lack one too.
        let mut expected: BTreeMap<&str, &[usize]> = BTreeMap::new();
        for (name, shape) in self.shapes.values().flatten() {
            expected.entry(name).or_insert(shape);
        }
        if expected.is_empty() && count > 0 {
            return Err(format!("has no tensors of its {count} decoder layers"));
        }
        let prefix = &self.prefix;
        for layer in 0..count {
            for (name, shape) in &expected {
                match self.shapes.get(&layer).and_then(|tensors| tensors.get(*name)) {
                    None => {
                        return Err(format!("has no tensor {prefix}{layer}.{name}, as other layers have"));
                    }
                    Some(own) if own != shape => {
                        return Err(format!("{prefix}{layer}.{name} is {own:?}, in other layers {shape:?}"));
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }
}
