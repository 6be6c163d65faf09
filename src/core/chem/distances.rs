//! Which bonds of a file without orders are double, as far as its distances tell.
//!
//! Atoms that no label tells apart can be bonded by orders that do: in cyclooctatetraene every carbon has one hydrogen and two
//! neighbours, and every other bond is double. The lengths say which. In a carboxylate they do not, and either oxygen may be the one with
//! the charge.

use std::collections::BTreeMap;

use super::graph::Order;
use super::labelled::LabelledGraph;

/// How much longer the shortest bond of an order must be than the longest one of the next, in Å.
const CLEAR_ANGSTROM: f64 = 0.04;

/// Bonds of a SMILES whose places in a file only lengths can tell.
#[derive(Debug, Clone, Default)]
pub(super) struct UnclearBonds {
    /// Of the SMILES: by atom, its unclear bonds to atoms before it.
    asked: Vec<Vec<(usize, Order)>>,
    classes: Vec<Class>,
}

/// Bonds that no label tells apart.
#[derive(Debug, Clone)]
struct Class {
    /// In the file.
    bonds: Vec<[u32; 2]>,
    /// In the SMILES, highest first.
    orders: Vec<Order>,
}

/// The orders of bonds between atoms of two colours in the SMILES, and these bonds in the file.
type OfColours = (Vec<Option<Order>>, Vec<[u32; 2]>);

/// What lengths say of bonds in a file, the smaller atom first.
pub(super) type Told = BTreeMap<[u32; 2], Order>;

impl UnclearBonds {
    /// Of the molecule of a SMILES and a file without orders, by their colours.
    pub(super) fn new(smiles: &LabelledGraph, file: &LabelledGraph, colours: &[Vec<u64>; 2]) -> Self {
        let key = |side: usize, [a, b]: [usize; 2]| {
            let [x, y] = [colours[side][a], colours[side][b]];
            [x.min(y), x.max(y)]
        };
        let mut by_key: BTreeMap<[u64; 2], OfColours> = BTreeMap::new();
        for (a, b, order) in smiles.bonds() {
            by_key.entry(key(0, [a, b])).or_default().0.push(order);
        }
        // Bonds of one order need no lengths, and free ones have none to find.
        by_key.retain(|_, (orders, _)| {
            orders.iter().all(Option::is_some) && orders.windows(2).any(|two| two[0] != two[1])
        });
        let mut asked = vec![Vec::new(); smiles.labels.len()];
        for (a, b, order) in smiles.bonds() {
            if let Some(order) = order.filter(|_| by_key.contains_key(&key(0, [a, b]))) {
                asked[b].push((a, order));
            }
        }
        for (a, b, _) in file.bonds() {
            if let Some((_, bonds)) = by_key.get_mut(&key(1, [a, b])) {
                bonds.push([a as u32, b as u32]);
            }
        }
        let class = |(orders, bonds): OfColours| {
            let mut orders: Vec<Order> = orders.into_iter().flatten().collect();
            orders.sort_unstable_by(|a, b| b.cmp(a));
            Class { bonds, orders }
        };
        UnclearBonds { asked, classes: by_key.into_values().map(class).collect() }
    }

    /// Whether labels tell all bonds apart.
    pub(super) fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// What the lengths of a conformer say; nothing of bonds that are nearly as long as those of another order.
    pub(super) fn told(&self, place: &dyn Fn(u32) -> [f64; 3]) -> Told {
        let length = |[a, b]: [u32; 2]| {
            let (a, b) = (place(a), place(b));
            (0..3).map(|axis| (a[axis] - b[axis]).powi(2)).sum::<f64>().sqrt()
        };
        let mut told = Told::new();
        for Class { bonds, orders } in
            self.classes.iter().filter(|class| class.bonds.len() == class.orders.len())
        {
            let mut lengths: Vec<(f64, [u32; 2])> = bonds.iter().map(|bond| (length(*bond), *bond)).collect();
            // Orders descend, so the shortest bond comes to the highest.
            lengths.sort_by(|a, b| a.0.total_cmp(&b.0));
            let is_clear = |at: usize| {
                orders[at] == orders[at - 1] || lengths[at].0 - lengths[at - 1].0 > CLEAR_ANGSTROM
            };
            if (1..orders.len()).all(is_clear) {
                told.extend(lengths.iter().zip(orders).map(|((_, bond), order)| (*bond, *order)));
            }
        }
        told
    }

    /// Whether the bonds of an atom of the SMILES to those before it have the orders that are told of their images.
    pub(super) fn agree_at(&self, atom: usize, images: &[u32], told: &Told) -> bool {
        self.asked[atom].iter().all(|(other, order)| {
            let (a, b) = (images[atom], images[*other]);
            told.get(&[a.min(b), a.max(b)]).is_none_or(|known| known == order)
        })
    }
}
