//! The integration tests, one binary.

mod common;
mod hdf5;
mod msgpack;
mod store;
