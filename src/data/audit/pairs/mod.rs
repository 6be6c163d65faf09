//! Compares rows of texts: each with a base row, on the same molecules and generations.
//!
//! [`ComparedRow`] holds the texts of a row; [`comparison()`] pairs two rows, [`advice()`] puts the results into words. `drift eval`
//! compares its runs by it, and `drift audit` the texts of anyone.

mod advice;
mod advised;
mod comparison;
mod differences;
mod preferred;
mod row;
mod shares;
mod speed;
#[cfg(test)]
mod tests;

pub use advice::{advice, speed_advice};
pub use advised::AdvisedRow;
pub use comparison::{comparison, level, valid_difference};
pub use differences::{
    ComparedFigure, FigureDifference, PairedComparison, RescuedTexts, SpeedMeasure, SpeedRatio,
};
pub use row::{ComparedRow, PairedText, TextCounts};
pub(super) use shares::{Cluster, RatioDifference, Share, ratio_difference};
pub use speed::{BatchTimes, ratio};
