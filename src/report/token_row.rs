//! Tokens by position, as pages show them.

/// A row of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// What the tokens are.
    pub name: String,
    /// The tokens, by position.
    pub cells: Vec<TokenCell>,
}

/// A token, or a slot for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenCell {
    /// Its text.
    pub text: String,
    /// What becomes of it.
    pub kind: CellKind,
}

/// What a token is for a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind {
    /// A token of a placeholder: a slot of the template.
    Slot,
    /// A token that the model wants to write.
    Real,
    /// A token that is written as the model wants it.
    Free,
    /// A token that is lost.
    Lost,
    /// A slot that the model has to fill with something.
    Junk,
    /// A token that the template forces.
    Copy,
}

impl CellKind {
    /// Returns the class of the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            CellKind::Slot => "slot",
            CellKind::Real => "real",
            CellKind::Free => "free",
            CellKind::Lost => "lost",
            CellKind::Junk => "junk",
            CellKind::Copy => "copy",
        }
    }
}

impl TokenCell {
    /// Returns a cell.
    pub(super) fn new(text: impl ToString, kind: CellKind) -> Self {
        TokenCell { text: text.to_string(), kind }
    }
}
