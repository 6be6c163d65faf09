//! Tables whose columns know their cells: a heading stands beside what is below it.

use super::table::Table;

/// Returns one or more cells of a row.
type Cells<'c, R> = Box<dyn Fn(&R) -> Vec<String> + 'c>;

/// A table of rows of one type.
pub(crate) struct Fields<'c, R> {
    table: Table,
    cells: Vec<Cells<'c, R>>,
}

impl<'c, R> Fields<'c, R> {
    /// Returns a table without columns.
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Fields { table: Table::new(title), cells: Vec::new() }
    }

    /// Returns a table that begins with columns, and the cells of a row in these.
    pub(super) fn behind(table: Table, cells: impl Fn(&R) -> Vec<String> + 'c) -> Self {
        Fields { table, cells: vec![Box::new(cells)] }
    }

    /// Adds a column of text.
    pub(crate) fn text(self, title: &str, cell: impl Fn(&R) -> String + 'c) -> Self {
        self.with(|table| table.text(title), cell)
    }

    /// Adds a column of code.
    pub(crate) fn code(self, title: &str, cell: impl Fn(&R) -> String + 'c) -> Self {
        self.with(|table| table.code(title), cell)
    }

    /// Adds a column of numbers.
    pub(crate) fn number(self, title: &str, cell: impl Fn(&R) -> String + 'c) -> Self {
        self.with(|table| table.number(title), cell)
    }

    fn with(mut self, column: impl FnOnce(Table) -> Table, cell: impl Fn(&R) -> String + 'c) -> Self {
        self.table = column(self.table);
        self.cells.push(Box::new(move |row| vec![cell(row)]));
        self
    }

    /// Returns the table with these rows.
    pub(crate) fn table<'r>(self, rows: impl IntoIterator<Item = &'r R>) -> Table
    where
        R: 'r,
    {
        self.marked(rows, |_| false)
    }

    /// Returns the table with these rows, the strong ones highlighted.
    pub(super) fn marked<'r>(
        mut self,
        rows: impl IntoIterator<Item = &'r R>,
        is_strong: impl Fn(&R) -> bool,
    ) -> Table
    where
        R: 'r,
    {
        for row in rows {
            self.table.marked_row(is_strong(row), self.cells.iter().flat_map(|cells| cells(row)));
        }
        self.table
    }
}
