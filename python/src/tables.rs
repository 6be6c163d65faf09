//! The automaton of a molecule as a grammar, and as NumPy arrays.

use drift::constraint::automaton::{Edges, MoleculeAutomaton};
use drift::constraint::grammar::{grammar, skeleton_grammar};
use drift::constraint::skeleton::SkeletonConstraint;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::raised;

/// Returns the grammar in a format: lark, ebnf or json.
pub(crate) fn spelled(py: Python<'_>, molecule: &MoleculeAutomaton, format: &str) -> PyResult<String> {
    let format = format.parse().map_err(raised)?;
    py.detach(|| grammar(molecule, format)).map_err(raised)
}

/// Returns the grammar of a skeleton's texts: lark or ebnf.
pub(crate) fn spelled_skeleton(
    py: Python<'_>,
    skeleton: &SkeletonConstraint,
    format: &str,
) -> PyResult<String> {
    let format = format.parse().map_err(raised)?;
    py.detach(|| skeleton_grammar(skeleton, format)).map_err(raised)
}

/// Returns the tables.
pub(crate) fn tables<'py>(py: Python<'py>, molecule: &MoleculeAutomaton) -> PyResult<Bound<'py, PyDict>> {
    let table = molecule.table();
    let block = edges(py, &table.block.edges)?;
    block.set_item("exits", PyArray1::from_slice(py, &table.block.exits))?;
    let segments = PyList::empty(py);
    for segment in &table.segments {
        let rows = edges(py, &segment.edges)?;
        rows.set_item("roots", PyArray1::from_slice(py, &segment.roots))?;
        segments.append(rows)?;
    }
    let all = PyDict::new(py);
    all.set_item("schema", table.schema)?;
    all.set_item("eos", table.eos)?;
    all.set_item("block", block)?;
    all.set_item("segments", segments)?;
    all.set_item("order", PyArray1::from_slice(py, &table.order))?;
    Ok(all)
}

fn edges<'py>(py: Python<'py>, edges: &Edges) -> PyResult<Bound<'py, PyDict>> {
    let rows = PyDict::new(py);
    rows.set_item("offsets", PyArray1::from_slice(py, &edges.offsets))?;
    rows.set_item("ids", PyArray1::from_slice(py, &edges.ids))?;
    rows.set_item("targets", PyArray1::from_slice(py, &edges.targets))?;
    Ok(rows)
}
