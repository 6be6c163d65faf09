//! A table that can be shown in a terminal or in a page.

use comfy_table::presets::NOTHING;
use comfy_table::{
    Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table as Comfy, TableComponent,
    Width,
};

use drift_core::error::one_line;

/// Spaces between columns.
const GAP: usize = 2;

/// Text columns wrap, but not to fewer characters than this.
const WRAPPED: usize = 18;

/// How a table is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terminal {
    /// The width in characters to which text columns wrap. `None` means no wrapping, as in a file.
    pub width: Option<u16>,
    /// Whether escape codes for bold and dim text may be used. The command line decides (`NO_COLOR`, a pipe).
    pub colour: bool,
}

/// The width of a short answer, in columns.
const SHORT: u16 = 100;

/// `terminal`, at most as wide as a short answer, which fits into any window and a README.
pub fn narrow(terminal: Terminal) -> Terminal {
    Terminal { width: Some(terminal.width.map_or(SHORT, |width| width.min(SHORT))), ..terminal }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The heading; lines are broken at `\n`.
    pub title: String,
    /// How the cells are shown.
    pub kind: Kind,
}

/// How the cells of a column are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Left-aligned; wraps if the terminal is narrow.
    Text,
    /// Left-aligned, never wrapped, and monospaced in pages: placeholders, tokens, file names.
    Code,
    /// Right-aligned, never wrapped.
    Number,
}

/// A row with one cell for each column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The cells; missing ones are empty.
    pub cells: Vec<String>,
    /// Whether the row is highlighted: bold where possible.
    pub strong: bool,
}

/// A table: title, columns, rows, notes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// The title above the table; may be empty.
    pub title: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
    /// The notes below the table, one line each.
    pub notes: Vec<String>,
}

impl Table {
    /// Returns a table without columns; an empty title is not shown.
    pub fn new(title: impl Into<String>) -> Self {
        Table { title: title.into(), ..Table::default() }
    }

    /// Adds a column of text.
    pub fn text(self, title: &str) -> Self {
        self.column(title, Kind::Text)
    }

    /// Adds a column of code.
    pub fn code(self, title: &str) -> Self {
        self.column(title, Kind::Code)
    }

    /// Adds a column of numbers.
    pub fn number(self, title: &str) -> Self {
        self.column(title, Kind::Number)
    }

    fn column(mut self, title: &str, kind: Kind) -> Self {
        self.columns.push(Column { title: title.to_owned(), kind });
        self
    }

    /// Adds a row.
    pub fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) -> &mut Self {
        self.marked_row(false, cells)
    }

    /// Adds a row of a name and its value.
    pub(super) fn fact(&mut self, name: &str, value: String) -> &mut Self {
        self.row([name.to_owned(), value])
    }

    /// Adds a row that is highlighted.
    pub fn strong_row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) -> &mut Self {
        self.marked_row(true, cells)
    }

    /// Adds a row that is highlighted if it is `strong`.
    pub fn marked_row<C: Into<String>>(
        &mut self,
        strong: bool,
        cells: impl IntoIterator<Item = C>,
    ) -> &mut Self {
        let cells = cells.into_iter().map(|cell| lines_shown(&cell.into())).collect();
        self.rows.push(Row { cells, strong });
        self
    }

    /// Adds a line below the table.
    pub fn note(&mut self, line: impl Into<String>) -> &mut Self {
        self.notes.push(one_line(&line.into()));
        self
    }

    /// Returns the table as lines of text without trailing spaces, each with its line break.
    ///
    /// If the terminal is too narrow, the columns are shown in several blocks. Each block begins with the columns that name a row. A
    /// table without rows has no headings.
    pub fn render(&self, terminal: Terminal) -> String {
        let mut out = String::new();
        if !self.title.is_empty() {
            out.push_str(&bold(&self.title, terminal));
            out.push('\n');
        }
        let width = terminal.width.map(usize::from);
        let blocks = if self.rows.is_empty() { Vec::new() } else { self.blocks(width) };
        for (index, columns) in blocks.iter().enumerate() {
            if index > 0 {
                out.push('\n');
            }
            for line in self.comfy(columns, terminal).lines() {
                out.push_str(line.trim_end());
                out.push('\n');
            }
        }
        for note in &self.notes {
            out.push_str(note);
            out.push('\n');
        }
        out
    }

    /// Returns the column indices of each block of at most `width` characters.
    pub(super) fn blocks(&self, width: Option<usize>) -> Vec<Vec<usize>> {
        let all = 0..self.columns.len();
        let Some(width) = width else { return vec![all.collect()] };
        let keys = self.keys();
        let (mut blocks, mut used) = (vec![vec![]], 0);
        for column in all {
            let own = self.least_width(column);
            // A block contains at least one column besides those that name a row.
            if used + own > width && blocks.last().is_some_and(|block: &Vec<usize>| block.len() > keys) {
                // Each block begins with the columns that name a row.
                blocks.push((0..keys).collect());
                used = (0..keys).map(|key| self.least_width(key) + GAP).sum();
            }
            if let Some(block) = blocks.last_mut() {
                block.push(column);
            }
            used += own + GAP;
        }
        blocks
    }

    /// Returns the number of columns that name a row: the columns before the first number, such as the model and its logit processor.
    fn keys(&self) -> usize {
        let first_number = self.columns.iter().position(|column| column.kind == Kind::Number);
        first_number.unwrap_or(1).max(1)
    }

    /// Returns the smallest width in characters of `column`.
    fn least_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.cells.get(column)).map(String::as_str);
        let lines = cells.chain([self.columns[column].title.as_str()]).flat_map(str::lines);
        let longest = lines.map(|line| line.chars().count()).max().unwrap_or(0);
        if self.columns[column].kind == Kind::Text { longest.min(WRAPPED) } else { longest }
    }

    fn comfy(&self, columns: &[usize], terminal: Terminal) -> Comfy {
        let mut table = Comfy::new();
        table.load_preset(NOTHING).set_style(TableComponent::HeaderLines, '─');
        if terminal.colour {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        match terminal.width {
            Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        table.set_header(columns.iter().map(|&column| styled(&self.columns[column].title, true, terminal)));
        for row in &self.rows {
            let cell = |column: &usize| row.cells.get(*column).map_or("", String::as_str);
            table.add_row(columns.iter().map(|column| styled(cell(column), row.strong, terminal)));
        }
        for (index, shown) in table.column_iter_mut().enumerate() {
            // The last column has no padding: lines have no trailing spaces, and the width is needed.
            let gap = if index + 1 == columns.len() { 0 } else { GAP as u16 };
            shown.set_padding((0, gap));
            let column = columns[index];
            if self.columns[column].kind == Kind::Number {
                shown.set_cell_alignment(CellAlignment::Right);
            }
            shown.set_constraint(match self.columns[column].kind {
                Kind::Text => {
                    ColumnConstraint::LowerBoundary(Width::Fixed(self.least_width(column) as u16 + gap))
                }
                Kind::Code | Kind::Number => ColumnConstraint::ContentWidth,
            });
        }
        table
    }
}

/// Escapes control characters in names and other input, since they could move the cursor. Line breaks stay, since tables use them.
fn lines_shown(text: &str) -> String {
    text.split('\n').map(one_line).collect::<Vec<_>>().join("\n")
}

fn styled(text: &str, strong: bool, terminal: Terminal) -> Cell {
    let cell = Cell::new(text);
    if strong && terminal.colour { cell.add_attribute(Attribute::Bold) } else { cell }
}

/// `text` in bold, if the terminal shows it.
pub fn bold(text: &str, terminal: Terminal) -> String {
    if terminal.colour { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new("Candidates").code("placeholder").number("junk\nblocks").text("remark");
        table.strong_row(["-0.0000,0.0000,0.0000", "49.9 %", "fitted"]);
        table.row(["0.000,0.000,0.000", "0 %", "what the users have had since their version 4"]);
        table.note("Shares of 1,619 blocks.");
        table
    }

    #[test]
    fn numbers_are_flush_right() {
        let want = "\
Candidates
placeholder              junk  remark
                       blocks
────────────────────────────────────────────────────────────────────────────
-0.0000,0.0000,0.0000  49.9 %  fitted
0.000,0.000,0.000         0 %  what the users have had since their version 4
Shares of 1,619 blocks.
";
        let got = sample().render(Terminal::default());
        assert_eq!(got, want, "\n{got}");
    }

    #[test]
    fn without_rows_there_are_no_headings() {
        let mut table = Table::new("Candidates").code("placeholder");
        table.note("None was found.");
        assert_eq!(table.render(Terminal::default()), "Candidates\nNone was found.\n");
    }

    #[test]
    fn text_wraps_to_the_width_and_numbers_do_not() {
        let shown = sample().render(Terminal { width: Some(60), colour: false });
        assert!(shown.lines().all(|line| line.chars().count() <= 60), "\n{shown}");
        assert!(shown.contains("-0.0000,0.0000,0.0000  49.9 %  fitted"), "\n{shown}");
    }

    #[test]
    fn columns_that_do_not_fit_follow_below() {
        let want = "\
Candidates
placeholder              junk
                       blocks
─────────────────────────────
-0.0000,0.0000,0.0000  49.9 %
0.000,0.000,0.000         0 %

placeholder            remark
──────────────────────────────────────
-0.0000,0.0000,0.0000  fitted
0.000,0.000,0.000      what the users
                       have had since
                       their version 4
Shares of 1,619 blocks.
";
        let got = sample().render(Terminal { width: Some(41), colour: false });
        assert_eq!(got, want, "\n{got}");
        assert!(!sample().render(Terminal { width: Some(0), colour: false }).is_empty());
        assert_eq!(Table::new("").render(Terminal { width: Some(10), colour: false }).trim(), "");
    }

    #[test]
    fn escape_codes_only_when_asked() {
        assert!(!sample().render(Terminal { width: Some(80), colour: false }).contains('\u{1b}'));
        assert!(sample().render(Terminal { width: Some(80), colour: true }).contains("\u{1b}[1m"));
    }
}
