//! The one integration binary: a module per subject, so that it links once.

#![allow(clippy::print_stderr, reason = "some say how much they compared")]

mod architecture;
mod archive_mutants;
mod audit;
mod automaton;
mod bad_input;
mod bases;
mod chemistry;
mod cli;
mod common;
mod compare;
mod counting;
mod coverage;
mod decimals;
mod design;
mod edits;
mod encode;
mod encode_formats;
mod encode_rdkit;
mod eval;
mod extended;
mod generate;
mod grammar;
mod hdf5;
mod hdf5_mutants;
mod inspect;
mod limits;
mod merges;
mod model;
mod msgpack;
mod placeholder;
mod processors;
mod properties;
mod protocol;
mod readers;
mod readers_bad;
mod resample;
mod rows;
mod store;
mod support;
mod text;
mod threedmolgen;
mod train;
mod train_init;
mod train_reference;
