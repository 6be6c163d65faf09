//! The one integration binary: a module per subject, so that it links once.

mod architecture;
mod audit;
mod automaton;
mod bad_input;
mod cli;
mod common;
mod compare;
mod counting;
mod design;
mod extended;
mod generate;
mod hdf5;
mod inspect;
mod model;
mod msgpack;
mod placeholder;
mod processors;
mod properties;
mod readers;
mod readers_bad;
mod rows;
mod store;
mod support;
mod text;
mod train;
mod train_reference;
