//! The options that say how the numbers of blocks are written, but for the dialect.

use crate::text::{Precision, Reading, Separator};

/// Decimals and separator.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct BlockArgs {
    /// Decimals of the coordinates, 1 to 6; numbers with more are cut, toward zero. Without it four, and more are refused
    #[arg(long, value_name = "N")]
    decimals: Option<Precision>,
    /// What stands between the numbers of a block
    #[arg(long, value_enum, default_value = "comma")]
    separator: SeparatorArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SeparatorArg {
    Comma,
    Space,
}

impl BlockArgs {
    /// How texts are read, and conformers without text taken.
    pub(super) fn reading(self) -> Reading {
        Reading { precision: self.precision(), cut: self.decimals.is_some(), separator: self.separator() }
    }

    /// The decimals that were asked for, or four.
    pub(super) fn precision(self) -> Precision {
        self.decimals.unwrap_or_default()
    }

    /// The decimals, if they were asked for.
    pub(super) fn asked(self) -> Option<Precision> {
        self.decimals
    }

    /// The separator.
    pub(super) fn separator(self) -> Separator {
        match self.separator {
            SeparatorArg::Comma => Separator::Comma,
            SeparatorArg::Space => Separator::Space,
        }
    }
}
