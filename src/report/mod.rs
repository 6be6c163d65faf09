//! Views of the serde reports: tables for the terminal, SVG plots, self-contained HTML pages.
//!
//! - [`table::Table`] is one table, shown by [`table::Table::render`] in a terminal and by [`html`] in a page.
//! - [`plot`] draws SVG by plotters, without fonts: the same bytes on every machine.
//! - [`html::Page`] is a page of sections that loads nothing from anywhere.
//! - [`stats_view`], [`fit_page`] and [`design_view`] put these together for `drift mine`, `drift fit` and `drift
//!   train-tokenizer`.
//! - [`format`](mod@format) holds how numbers are written for people.
//!
//! Nothing here computes a figure or prints: views take reports and give strings.

pub mod design_page;
pub mod design_view;
pub mod fit_page;
pub mod format;
pub mod html;
pub mod plot;
pub mod stats_view;
pub mod table;
pub mod tokens_view;

pub use html::Page;
pub use table::{Table, Terminal};
