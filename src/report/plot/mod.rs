//! Plots as SVG text, drawn by plotters' SVG backend.
//!
//! Without its `ttf` feature plotters only guesses how wide text is, so nothing here relies on that: margins come from
//! the number of characters, and texts are anchored where they must not move. Fonts are generic families, coordinates are
//! whole pixels, and so the bytes are the same everywhere. Colours are those of Okabe and Ito, told apart by
//! colour-blind readers; a plot is drawn for white paper, and [`super::html`] adapts it to dark mode.

mod bars;
mod columns;
mod curves;
mod frame;
mod lines;
mod molecule;
pub mod palette;
mod points;
mod scatter;

pub use bars::{Bar, BarChart, BarValue, Scale, bars};
pub use columns::{Columns, columns};
pub use curves::{Curve, Curves, curves};
pub use lines::{Line, Lines, lines};
pub use molecule::{MoleculePicture, molecule};
pub use points::{Points, points};
pub use scatter::{Scatter, ScatterPoint, scatter};
