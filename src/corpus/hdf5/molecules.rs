//! Reads SPICE and ANI-1x: a group per molecule.

use rust_hdf5::H5File;

use crate::corpus::{Context, Emit};
use crate::error::{Error, Result};

pub(super) fn read(_: &H5File, name: &str, _: Context<'_>, _: &mut Emit<'_>) -> Result<()> {
    Err(Error::input(name, "todo", ""))
}
