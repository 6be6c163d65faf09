//! How blocks are cut into tokens.
//!
//! - [`slots`] are the parts of a block that no scheme cuts, [`grammar`] says which blocks a scheme is for, [`cuts`] where
//!   they are cut, [`expression`] by which expression; [`blocks`] are those to run.
//! - [`fixed_space`] and [`stripped_space`] say what every scheme of a dialect costs and which costs least ([`space`] is what
//!   they share), [`search`] looks for the same by argmin, [`spaces`] chooses between them.
//! - [`counting_bound`] and [`distinct_digits_bound`] count what no tokenizer can do without.
//! - [`pieces`] finds the pieces of a block by arithmetic.

pub mod blocks;
pub mod counting_bound;
pub mod cuts;
pub mod distinct_digits_bound;
pub mod expression;
pub mod fixed_space;
pub mod grammar;
pub mod pieces;
pub mod search;
pub mod slots;
pub mod space;
pub mod spaces;
pub mod stripped_space;
