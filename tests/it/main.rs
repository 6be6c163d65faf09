//! The one integration binary: a module per subject, so that it links once.

mod architecture;
mod bad_input;
mod cli;
mod common;
mod counting;
mod design;
mod extended;
mod hdf5;
mod inspect;
mod msgpack;
mod placeholder;
mod properties;
mod readers;
mod readers_bad;
mod rows;
mod store;
mod support;
mod text;
