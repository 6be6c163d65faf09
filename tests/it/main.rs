//! The one integration binary: a module per subject, so that it links once.

mod architecture;
mod bad_input;
mod cli;
mod common;
mod counting;
mod design;
mod hdf5;
mod inspect;
mod merges;
mod msgpack;
mod placeholder;
mod properties;
mod readers;
mod readers_bad;
mod store;
mod support;
mod text;
