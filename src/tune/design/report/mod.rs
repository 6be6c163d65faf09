//! The reports: [`designed`] on a designed extension, [`learned`] on tokens learned from a corpus, and [`vocabulary`] with what
//! both have in common. [`comparison`] and [`front`] are tables in them, and [`trained`] is a result with its report.

pub mod comparison;
pub mod designed;
pub mod front;
pub mod learned;
pub mod trained;
pub mod vocabulary;
