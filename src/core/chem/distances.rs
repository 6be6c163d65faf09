//! Which bonds are double in a file without bond orders, judged by bond lengths.
//!
//! Atoms with equal labels can still be bonded by different orders: in cyclooctatetraene every carbon has one hydrogen and two
//! neighbours, and every other bond is double. The lengths show which. In a carboxylate they do not, and either oxygen may carry
//! the charge.

use std::collections::BTreeMap;

use super::graph::Order;
use super::labelled::LabelledGraph;
use crate::vector::distance;

/// The least gap between the longest bond of one order and the shortest bond of the next lower order, in Å.
const CLEAR_ANGSTROM: f64 = 0.04;

/// The bonds of a SMILES that only bond lengths can match to bonds of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct UnclearBonds {
    /// By atom of the SMILES, its unclear bonds to earlier atoms.
    asked: Vec<Vec<(usize, Order)>>,
    classes: Vec<Class>,
}

/// Bonds that labels cannot tell apart.
#[derive(Debug, Clone)]
struct Class {
    /// The bonds in the file.
    bonds: Vec<[u32; 2]>,
    /// The orders in the SMILES, highest first.
    orders: Vec<Order>,
}

/// The bond orders in the SMILES between atoms of two given colours, and the bonds in the file between the same colours.
type OfColours = (Vec<Option<Order>>, Vec<[u32; 2]>);

/// The orders that bond lengths give to bonds of a file. Keys have the smaller atom first.
pub(super) type BondOrders = BTreeMap<[u32; 2], Order>;

impl UnclearBonds {
    /// Returns the unclear bonds of a SMILES and of a file without orders, by the colours of their atoms.
    pub(super) fn new(smiles: &LabelledGraph, file: &LabelledGraph, colours: &[Vec<u64>; 2]) -> Self {
        let mut by_key: BTreeMap<[u64; 2], OfColours> = BTreeMap::new();
        for (a, b, order) in smiles.bonds() {
            by_key.entry(end_colours(&colours[0], a, b)).or_default().0.push(order);
        }
        // Bonds that all have one order need no lengths, and for free (aromatic) bonds there is nothing to find.
        by_key.retain(|_, (orders, _)| {
            orders.iter().all(Option::is_some) && orders.windows(2).any(|two| two[0] != two[1])
        });
        let mut asked = vec![Vec::new(); smiles.labels.len()];
        for (a, b, order) in smiles.bonds() {
            if let Some(order) = order.filter(|_| by_key.contains_key(&end_colours(&colours[0], a, b))) {
                asked[b].push((a, order));
            }
        }
        for (a, b, _) in file.bonds() {
            if let Some((_, bonds)) = by_key.get_mut(&end_colours(&colours[1], a, b)) {
                bonds.push([a as u32, b as u32]);
            }
        }
        let classes = by_key.into_values().map(|(orders, bonds)| {
            let mut orders: Vec<Order> = orders.into_iter().flatten().collect();
            orders.sort_unstable_by(|a, b| b.cmp(a));
            Class { bonds, orders }
        });
        UnclearBonds { asked, classes: classes.collect() }
    }

    /// Returns whether labels tell all bonds apart.
    pub(super) fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Returns the bond orders that the lengths of a conformer imply. Bonds whose lengths do not separate clearly from another order are
    /// left out.
    pub(super) fn bond_orders(&self, place: &dyn Fn(u32) -> [f64; 3]) -> BondOrders {
        let mut bond_orders = BondOrders::new();
        for Class { bonds, orders } in
            self.classes.iter().filter(|class| class.bonds.len() == class.orders.len())
        {
            let mut lengths: Vec<(f64, [u32; 2])> =
                bonds.iter().map(|&[a, b]| (distance(place(a), place(b)), [a, b])).collect();
            // Orders descend, so the shortest bond gets the highest order.
            lengths.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut gaps = lengths.windows(2).map(|pair| pair[1].0 - pair[0].0).zip(orders.windows(2));
            if gaps.all(|(gap, orders)| orders[0] == orders[1] || gap > CLEAR_ANGSTROM) {
                bond_orders.extend(lengths.iter().zip(orders).map(|((_, bond), order)| (*bond, *order)));
            }
        }
        bond_orders
    }

    /// Returns whether the bonds of an atom of the SMILES to earlier atoms have the orders that `bond_orders` gives their images.
    pub(super) fn agree_at(&self, atom: usize, images: &[u32], bond_orders: &BondOrders) -> bool {
        self.asked[atom].iter().all(|(other, order)| {
            let (a, b) = (images[atom], images[*other]);
            bond_orders.get(&[a.min(b), a.max(b)]).is_none_or(|known| known == order)
        })
    }
}

/// Returns the colours of the ends of a bond, ascending.
fn end_colours(colours: &[u64], a: usize, b: usize) -> [u64; 2] {
    [colours[a].min(colours[b]), colours[a].max(colours[b])]
}
