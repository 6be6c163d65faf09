//! The one integration binary: a module per subject, so that it links once.

mod counting;
mod inspect;
mod placeholder;
mod readers;
mod readers_bad;
mod support;
