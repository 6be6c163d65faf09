//! Cuts V3000 lines into fields and keywords.

/// The fields of a line between white space. White space in parentheses or quotes separates no fields.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a> {
    rest: &'a str,
}

impl<'a> Fields<'a> {
    /// Returns the fields of this line.
    pub(super) fn new(line: &'a str) -> Self {
        Fields { rest: line }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.rest.trim_ascii_start();
        let (mut depth, mut quoted) = (0usize, false);
        let mut end = text.len();
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                b'"' if depth == 0 => quoted = !quoted,
                b'(' if !quoted => depth += 1,
                b')' if !quoted => depth = depth.saturating_sub(1),
                _ if byte.is_ascii_whitespace() && depth == 0 && !quoted => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        let (field, rest) = text.split_at(end);
        self.rest = rest;
        (!field.is_empty()).then_some(field)
    }
}

/// A field `KEY=VALUE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Keyword<'a> {
    /// As written; keywords are not case-sensitive.
    pub name: &'a str,
    /// Without quotes.
    pub value: &'a str,
}

impl<'a> Keyword<'a> {
    /// Returns the keyword of a field; `None` for a field of another form.
    pub(super) fn of(field: &'a str) -> Option<Self> {
        let (name, value) = field.split_once('=')?;
        let inside = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        Some(Keyword { name, value: inside.unwrap_or(value) })
    }

    /// Returns whether it has this name.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_parentheses_hold_fields_together() {
        let all: Vec<&str> = Fields::new(" 1 DAT\t0 ATOMS=(2 1 2) FIELDDATA=\"a (b\" X=( 1 ) ").collect();
        assert_eq!(all, ["1", "DAT", "0", "ATOMS=(2 1 2)", "FIELDDATA=\"a (b\"", "X=( 1 )"]);
        assert_eq!(Keyword::of("FIELDDATA=\"a (b\""), Some(Keyword { name: "FIELDDATA", value: "a (b" }));
        assert_eq!(Keyword::of("QUERYOP=="), Some(Keyword { name: "QUERYOP", value: "=" }));
        assert_eq!(Keyword::of("1"), None);
    }
}
