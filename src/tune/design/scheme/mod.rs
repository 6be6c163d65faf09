//! Schemes: how blocks are cut into tokens.
//!
//! - [`slots`] defines the parts of a block that no scheme cuts, [`grammar`] the blocks that a scheme is for, [`cuts`] the
//!   positions of the cuts, and [`expression`] the expression that makes them. [`blocks`] generates blocks for checks.
//! - [`fixed_space`] and [`stripped_space`] compute the cost of every scheme of an encoding and find the cheapest ([`space`] is
//!   what they share). [`search`] does the same with argmin, and [`spaces`] chooses between the spaces.
//! - [`counting_bound`] and [`distinct_digits_bound`] compute lower bounds that hold for any tokenizer.
//! - [`pieces`] finds the pieces of a block by arithmetic.

pub mod blocks;
pub(crate) mod counting_bound;
pub mod cuts;
pub(crate) mod distinct_digits_bound;
pub mod expression;
pub mod fixed_space;
pub mod grammar;
pub mod pieces;
pub mod search;
pub mod slots;
pub mod space;
pub mod spaces;
pub(crate) mod stripped_space;
