//! The one integration binary: a module per subject, so that it links once.

#![allow(clippy::too_many_lines, reason = "tables of cases are long")]
#![allow(clippy::print_stderr, reason = "some say how much they compared")]

mod added_tokens;
mod against;
mod architecture;
mod archive_mutants;
mod audit;
mod audit_rows;
mod automaton;
mod bad_input;
mod bases;
mod chemistry;
mod cli;
mod common;
mod compare;
mod counting;
mod coverage;
mod cuda_checks;
mod cuda_emulator;
mod cuda_generate;
mod cuda_kernels;
mod cuda_self_check;
mod cuda_step;
mod cuda_texts;
mod decimals;
mod design;
mod edits;
mod encode;
mod encode_formats;
mod encode_rdkit;
mod encode_smiles;
mod encodings;
mod energy;
mod ensembles;
mod eval;
mod extend_model;
mod extended;
mod file_shards;
mod flaws;
mod functions;
mod generate;
mod generate_texts;
mod geometry;
mod grammar;
mod hdf5;
mod hdf5_mutants;
mod hub;
mod inspect;
mod judging;
mod leaks;
mod limits;
mod merges;
mod model;
mod molecules;
mod msgpack;
mod packing;
mod placeholder;
mod processors;
mod properties;
mod protocol;
mod readers;
mod readers_bad;
mod remedies;
mod resample;
mod round_trips;
mod rows;
mod run_files;
mod scaffolds;
mod shards;
mod skeletons;
mod stereo_marks;
mod store;
mod support;
mod tables;
mod text;
mod threedmolgen;
mod train;
mod train_init;
mod train_reference;
mod ways;
mod without_texts;

// As the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
