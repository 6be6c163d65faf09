//! Views of the serde reports: tables for the terminal, SVG plots, self-contained HTML pages.
//!
//! - [`table::Table`] is one table. [`table::Table::render`] shows it in a terminal, and [`html`] in a page.
//! - [`plot`] draws SVG with plotters, without fonts, so the bytes are the same on every machine.
//! - [`html::Page`] is a page of sections that loads nothing.
//! - [`stats_view`], [`fit_view`], [`fit_page`], [`design_view`], [`design_page`], [`slot_view`], [`learned_view`], [`comparison_view`],
//!   [`promises_view`], [`extend_view`], [`train_view`], [`against_view`], [`flaws_view`], [`audit_view`], [`audit_page`], [`pairs_view`], [`energy_view`], [`eval_view`],
//!   [`summary_view`], [`chemistry_view`], [`worst_view`], [`mask_view`], [`floor_view`], [`same_view`], [`eval_page`],
//!   [`generate_view`] and [`compare_view`] combine these for the verbs. [`card`] is the section of a model card for an extended tokenizer.
//! - [`folders`] writes reports and their pages into a folder.
//! - [`format`](mod@format) formats numbers for people.
//!
//! Nothing here computes a figure or prints.

pub mod against_view;
pub mod audit_page;
pub mod audit_view;
pub mod card;
pub mod chemistry_view;
#[cfg(feature = "generate")]
pub mod compare_view;
pub mod comparison_view;
mod coverage_view;
pub mod covmat_view;
pub mod design_page;
pub mod design_view;
mod drift_view;
pub mod encodings_view;
pub mod energy_view;
mod ensemble_view;
#[cfg(feature = "generate")]
pub mod eval_page;
#[cfg(feature = "generate")]
pub mod eval_view;
pub mod extend_view;
pub(crate) mod fields;
pub mod fit_page;
pub mod fit_view;
pub mod flaws_view;
#[cfg(feature = "generate")]
pub mod floor_view;
pub mod folders;
mod forest_view;
pub mod format;
#[cfg(feature = "generate")]
pub mod generate_view;
pub mod html;
pub mod learned_view;
#[cfg(feature = "generate")]
pub mod mask_view;
pub mod pairs_view;
mod paper_view;
pub mod plot;
pub mod promises_view;
mod row_sections;
#[cfg(feature = "generate")]
pub mod same_view;
pub mod shards_view;
pub mod skeleton_view;
pub mod slot_view;
pub mod stats_view;
#[cfg(feature = "generate")]
pub mod summary_view;
pub mod table;
pub mod token_row;
pub mod tokens_view;
#[cfg(feature = "generate")]
pub mod trace;
#[cfg(feature = "generate")]
pub mod train_view;
mod viewer;
#[cfg(feature = "generate")]
pub mod worst_view;

pub use html::Page;
pub use table::{Table, Terminal};
