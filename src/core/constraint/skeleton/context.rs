//! The text before a border, on which the tokens behind it may depend.

/// The text before a place: a sample, in which slots have one of their texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Context {
    pub text: String,
    /// Where the parts of the text begin that were written one after another.
    pub parts: Vec<usize>,
    /// Whether the text does not begin where the tokenizer begins.
    pub is_cut: bool,
    /// Whether it is a prompt, whose last token may reach into the answer and then is the answer's first.
    pub is_prompt: bool,
}

/// How much of the text before a place is kept, in bytes: whole parts of at least as many.
const BEFORE: usize = 24;

impl Context {
    /// This text and another one behind it.
    pub(super) fn followed_by(&self, text: &str) -> Self {
        let all = format!("{}{text}", self.text);
        let mut parts = self.parts.clone();
        parts.push(self.text.len());
        // Some tokenizers add a space only before texts that do not begin with one.
        let is_enough = |at: &&usize| all.len() - **at >= BEFORE && !all[**at..].starts_with(' ');
        let from = parts.iter().rev().find(is_enough).copied().unwrap_or(0);
        let kept = parts.iter().filter(|start| **start >= from).map(|start| start - from).collect();
        let is_cut = self.is_cut || from > 0;
        Context { text: all[from..].to_owned(), parts: kept, is_cut, is_prompt: false }
    }

    pub(super) fn begins(&self) -> bool {
        !self.is_cut && self.text.is_empty()
    }
}
