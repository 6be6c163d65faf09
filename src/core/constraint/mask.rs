//! The tokens that may come next in a row of generated text, and their application to its logits.

use rand::Rng;

/// The tokens that may come next. Lists of ids are sorted and borrowed, never built for each step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask<'a> {
    /// Every token.
    Any,
    /// This token and no other.
    Forced(u32),
    /// These tokens and no others.
    Only(&'a [u32]),
    /// Every token but these.
    Except(&'a [u32]),
}

/// The logits of the legal tokens after a mask was applied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Legal<'a> {
    /// In the row `[vocab]`, by token id; illegal tokens have -inf.
    Row(&'a [f32]),
    /// In a list of (token id, logit), sorted by id; the row is unchanged.
    Listed(&'a [(u32, f32)]),
}

impl<'m> Mask<'m> {
    /// Returns the mask of a sorted list of legal ids.
    pub fn only(ids: &'m [u32]) -> Self {
        match ids {
            // A forced token needs no logits, so it can be fed without a decode step of its own.
            [id] => Mask::Forced(*id),
            _ => Mask::Only(ids),
        }
    }

    /// Returns whether `token` is legal.
    pub fn allows(self, token: u32) -> bool {
        match self {
            Mask::Any => true,
            Mask::Forced(id) => id == token,
            Mask::Only(ids) => ids.binary_search(&token).is_ok(),
            Mask::Except(ids) => ids.binary_search(&token).is_err(),
        }
    }

    /// Returns a random legal token; `None` if none is listed.
    pub(super) fn drawn(self, random: &mut impl Rng) -> Option<u32> {
        match self {
            Mask::Forced(id) => Some(id),
            Mask::Only(ids) if !ids.is_empty() => Some(ids[random.random_range(0..ids.len())]),
            _ => None,
        }
    }

    /// Applies the mask to a row of logits `[vocab]`. If only some tokens are legal, their logits are gathered into `listed`
    /// (cleared first) and the row stays unchanged. If only some are illegal, they become -inf in the row.
    ///
    /// Ids beyond the row are skipped, so the result is empty if the row has no legal token.
    pub fn apply<'r>(self, row: &'r mut [f32], listed: &'r mut Vec<(u32, f32)>) -> Legal<'r> {
        let ids = match &self {
            Mask::Any => return Legal::Row(row),
            Mask::Except(ids) => {
                for &id in *ids {
                    if let Some(logit) = row.get_mut(id as usize) {
                        *logit = f32::NEG_INFINITY;
                    }
                }
                return Legal::Row(row);
            }
            Mask::Forced(id) => std::slice::from_ref(id),
            Mask::Only(ids) => ids,
        };
        listed.clear();
        listed.extend(ids.iter().filter_map(|&id| Some((id, *row.get(id as usize)?))));
        Legal::Listed(listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_gather_or_block() {
        let row = [0.0, 1.0, 2.0, 3.0];
        let applied = |mask: Mask| {
            let (mut row, mut listed) = (row, Vec::new());
            match mask.apply(&mut row, &mut listed) {
                Legal::Row(row) => row.iter().enumerate().map(|(id, logit)| (id as u32, *logit)).collect(),
                Legal::Listed(listed) => listed.to_vec(),
            }
        };
        assert_eq!(applied(Mask::Any).len(), 4);
        assert_eq!(applied(Mask::Forced(2)), [(2, 2.0)]);
        assert_eq!(applied(Mask::only(&[1, 3, 9])), [(1, 1.0), (3, 3.0)]);
        assert_eq!(applied(Mask::Except(&[0, 9]))[0], (0, f32::NEG_INFINITY));
        assert_eq!(applied(Mask::Except(&[0, 9]))[1..], [(1, 1.0), (2, 2.0), (3, 3.0)]);
        for (mask, legal) in [
            (Mask::Any, true),
            (Mask::Forced(2), true),
            (Mask::Only(&[1]), false),
            (Mask::Except(&[2]), false),
        ] {
            assert_eq!(mask.allows(2), legal, "{mask:?}");
        }
    }
}
