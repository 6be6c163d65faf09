//! Tokens in aligned lines: pieces above, FREE and COPY marks below.

use super::table::Terminal;
use drift_core::error::is_unseen;
use drift_core::tokenizer::{Token, TokenRole};

/// The width if the terminal does not report one, in columns.
const WIDTH: usize = 100;

/// Lines of tokens separated by `|`. The marks below each token are as wide as the token: `^` for FREE, `.` for COPY.
pub fn token_lines(tokens: &[Token], terminal: Terminal) -> String {
    let width = terminal.width.map_or(WIDTH, usize::from).max(20);
    let (mut out, mut pieces, mut marks, mut used) = (String::new(), String::new(), String::new(), 0);
    for token in tokens {
        let piece: String = token.text.chars().map(visible).collect();
        let columns = piece.chars().count().max(1);
        if used > 0 && used + columns + 1 > width {
            flush(&mut out, &mut pieces, &mut marks);
            used = 0;
        }
        if used > 0 {
            pieces.push('|');
            marks.push(' ');
            used += 1;
        }
        let mark = match token.class {
            TokenRole::Free => "^",
            TokenRole::Copy => ".",
        };
        pieces.push_str(&format!("{piece:columns$}"));
        marks.push_str(&mark.repeat(columns));
        used += columns;
    }
    flush(&mut out, &mut pieces, &mut marks);
    out
}

fn flush(out: &mut String, pieces: &mut String, marks: &mut String) {
    if !pieces.is_empty() {
        out.push_str(pieces);
        out.push('\n');
        out.push_str(marks);
        out.push('\n');
    }
    pieces.clear();
    marks.clear();
}

/// Makes spaces and control characters visible, so that they do not move the cursor.
fn visible(c: char) -> char {
    match c {
        ' ' => '␣',
        '\n' => '⏎',
        '\t' => '⇥',
        c if is_unseen(c) => '�',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_under_their_tokens() {
        let token = |text: &str, class| Token { id: 0, text: text.to_owned(), class, start: 0, end: 0 };
        let tokens =
            [token("]<", TokenRole::Copy), token("-", TokenRole::Free), token("123", TokenRole::Free)];
        let lines = token_lines(&tokens, Terminal::default());
        assert_eq!(lines, "]<|-|123\n.. ^ ^^^\n");
        let narrow = Terminal { width: Some(20), ..Terminal::default() };
        let long = vec![token("12345678", TokenRole::Free); 3];
        assert_eq!(token_lines(&long, narrow).lines().count(), 4);
    }
}
