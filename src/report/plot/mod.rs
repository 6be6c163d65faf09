//! Plots as SVG text, drawn by plotters' SVG backend.
//!
//! Without its `ttf` feature plotters only estimates the width of text, so nothing here relies on it: margins follow from the number of
//! characters, and texts are anchored where they must not move. Fonts are generic families and coordinates are whole pixels, so the
//! bytes are the same everywhere. The colours are Okabe and Ito's, which colour-blind readers can tell apart. A plot is drawn for white
//! paper, and [`super::html`] adapts it to dark mode.

mod bars;
mod columns;
mod curves;
mod forest;
mod frame;
mod lines;
mod molecule;
pub mod palette;
mod points;
mod scatter;

pub use bars::{Bar, BarChart, BarValue, Scale, bars};
pub use columns::{Columns, columns};
pub use curves::{Curve, Curves, curves};
pub use forest::{Forest, ForestMeasure, ForestPanel, ForestRow, forest};
pub use frame::Labels;
pub use lines::{Line, Lines, TAIL, lines};
pub use molecule::{MoleculePicture, marked_clashes, molecule};
pub use points::{Points, points};
pub use scatter::{Scatter, ScatterPoint, scatter};
