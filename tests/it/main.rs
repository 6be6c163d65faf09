//! The one integration binary: a module per subject, so that it links once.

mod common;
mod counting;
mod hdf5;
mod msgpack;
mod readers;
mod readers_bad;
mod store;
mod support;
