//! What the ways through say: [`designed`] of a design, [`learned`] of tokens learned from a corpus, [`vocabulary`] of
//! both; [`comparison`] and [`front`] are tables in them, [`trained`] is a result with its report.

pub mod comparison;
pub mod designed;
pub mod front;
pub mod learned;
pub mod trained;
pub mod vocabulary;
