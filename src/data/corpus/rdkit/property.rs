//! Property tables, which are skipped (`streamReadProps` in `Code/RDGeneral/StreamOps.h`).

use super::reader::{Reader, Result};

impl<'a> Reader<'_, 'a> {
    /// Skips a table. Returns the value of the property `wanted`, if it is a string.
    pub(super) fn property_table(&mut self, wanted: &[u8]) -> Result<Option<&'a [u8]>> {
        let count = if self.since(14, 0, 0) { self.cursor.u16()?.into() } else { self.cursor.u32()? };
        let mut found = None;
        for _ in 0..count {
            let (key, value) = self.property()?;
            if key == wanted {
                found = value;
            }
        }
        Ok(found)
    }

    /// Skips one property. Returns its key, and its value if the value is a string.
    pub(super) fn property(&mut self) -> Result<(&'a [u8], Option<&'a [u8]>)> {
        let key = self.string()?;
        // `DTags` in StreamOps.h.
        match self.u8()? {
            0 => return Ok((key, Some(self.string()?))),
            // int, unsigned int, float
            1 | 2 | 4 => self.skip(1, 4)?,
            // bool
            3 => self.skip(1, 1)?,
            // double
            5 => self.skip(1, 8)?,
            // vector of strings
            6 => {
                for _ in 0..self.cursor.u64()? {
                    self.string()?;
                }
            }
            // vectors of int, unsigned int and float
            7 | 8 | 10 => self.skip_vector(4)?,
            // vector of double
            11 => self.skip_vector(8)?,
            // A class with a handler, after the handler's name. RDKit itself has one handler, which writes a string. The layout of
            // other handlers is known only to the programs that registered them.
            0xfe => {
                if self.string()? != b"ExplicitBVProp" {
                    return Err(self.malformed("a property of an unknown class"));
                }
                self.string()?;
            }
            _ => return Err(self.malformed("a property of an unknown type")),
        }
        Ok((key, None))
    }

    fn skip_vector(&mut self, size: usize) -> Result<()> {
        let count = self.cursor.u64()?;
        self.cursor.take_items(count, size)?;
        Ok(())
    }
}
