//! Queries of atoms and bonds, which are skipped (`unpickleQuery` and `buildBaseQuery`).

use super::reader::{Reader, Result};
use super::{section, tag};

/// The deepest nesting of recursive queries (`[$(…)]`). RDKit sets no limit; SMARTS written by people nest two or three levels.
const MAX_DEPTH: usize = 32;

impl Reader<'_, '_> {
    /// Skips a query, including its first and last tag.
    pub(super) fn query(&mut self) -> Result<()> {
        self.expect(tag::BEGIN_QUERY, "a query does not begin")?;
        // Each node is followed by its children, so no recursion is needed, only the number of nodes still to come.
        let mut due = 1usize;
        while due > 0 {
            due = due - 1 + self.query_node()?;
        }
        self.expect(tag::END_QUERY, "a query does not end")
    }

    /// Skips a node of a query; returns the number of its children.
    fn query_node(&mut self) -> Result<usize> {
        // The description, by which RDKit looks up the function to call.
        self.string()?;
        if self.accept(tag::QUERY_TYPE_LABEL)? {
            self.string()?;
        }
        self.accept(tag::QUERY_IS_NEGATED)?;
        let kind = self.u8()?;
        if !matches!(kind, tag::QUERY_AND | tag::QUERY_OR | tag::QUERY_XOR | tag::QUERY_NULL) {
            self.expect(tag::QUERY_VALUE, "a query has no value")?;
            self.query_value(kind)?;
        }
        self.expect(tag::QUERY_NUM_CHILDREN, "a query does not count its children")?;
        Ok(self.u8()?.into())
    }

    fn query_value(&mut self, kind: u8) -> Result<()> {
        match kind {
            // Value and tolerance.
            tag::QUERY_EQUALS
            | tag::QUERY_GREATER
            | tag::QUERY_GREATER_EQUAL
            | tag::QUERY_LESS
            | tag::QUERY_LESS_EQUAL
            | tag::QUERY_ATOM_RING => self.skip(2, 4),
            // Lower, upper, tolerance, and which ends are open.
            tag::QUERY_RANGE => self.skip(13, 1),
            tag::QUERY_SET => {
                let count = self.count()?;
                self.skip(count, 4)
            }
            tag::QUERY_PROPERTY => self.string().map(drop),
            // Tolerance, then the property.
            tag::QUERY_PROPERTY_WITH_VALUE => {
                self.skip(1, 8)?;
                self.property().map(drop)
            }
            tag::QUERY_RECURSIVE if self.depth < MAX_DEPTH => {
                section::molecule(self.cursor, self.depth + 1).map(drop)
            }
            tag::QUERY_RECURSIVE => Err(self.malformed("recursive queries nest too deep")),
            _ => Err(self.malformed("a query of an unknown kind")),
        }
    }
}
