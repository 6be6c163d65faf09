//! Extensions for the numbers of a skeleton: every number takes as many tokens, white space before it included.
//!
//! [`numbers`] has the texts of the numbers and their expressions, [`cuts`] where they are cut into pieces, [`extend`] the
//! procedure with its checks, and [`report`] its report. Layout, added tokens and the checks of other texts are those of blocks
//! ([`super::extension`]). Numbers have no brackets. So they are isolated by the white space before them and the characters
//! around both; texts without such numbers keep their tokens.

pub(crate) mod cuts;
pub(crate) mod extend;
pub(crate) mod numbers;
pub mod report;
