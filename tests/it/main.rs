//! The one integration binary: a module per subject, so that it links once.

mod readers;
mod readers_bad;
