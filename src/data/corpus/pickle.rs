//! Reads Python pickles, protocols 0 to 5, without executing them.
//!
//! A pickle is a program for a small stack machine whose instructions may name any Python function and call it. This module runs
//! the machine but calls nothing: a class or function becomes an inert [`Callee`], and a call becomes an inert [`Object`] that
//! keeps its arguments and state. For a class or function outside a short list ([`Role::of`]), only the name is kept, and the
//! code that walks the values reports objects that it does not understand. Features that refer to something outside the file
//! (persistent identifiers, the extension registry, out-of-band buffers) are errors.
//!
//! The values are stored in an arena ([`Pickle`]) and refer to each other by [`NodeId`]. So a value that the pickle shares is
//! stored once, a value may contain itself, and neither parsing nor dropping recurses, however deep the pickle nests. Code that
//! walks the values must expect cycles.
//!
//! Byte strings and text borrow from the input where the format allows it, so parsing a file of molecules takes little more memory
//! than the file itself. Memory is bounded by the input: every length is compared with the remaining input before it is used, each
//! opcode creates at most one value, and the number of values is at most half the number of bytes (plus a constant).
//!
//! Format: Python's `Lib/pickletools.py`, which documents each opcode, and PEP 307, 3154 and 574.

pub(in crate::corpus) mod cursor;
mod error;
mod global;
mod machine;
mod opcode;
mod text;

use std::borrow::Cow;
use std::ops::Index;

pub use error::PickleError;
pub use global::{Callee, Role};

/// A parsed pickle: an arena of values and the root value.
#[derive(Debug, Clone)]
pub struct Pickle<'a> {
    values: Vec<Value<'a>>,
    /// Names outside the list, each stored once.
    unknown: Vec<String>,
    root: NodeId,
    length: usize,
}

/// Identifies a value of the [`Pickle`] that it comes from. Indexing another pickle with it panics or gives an unrelated value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

/// One value of a pickle.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer that fits 64 bits.
    Int(i64),
    /// An integer that does not fit 64 bits. Its digits are not kept.
    BigInt,
    /// A float.
    Float(f64),
    /// `bytes`, `bytearray`, or a `str` of Python 2, which may be either text or bytes.
    Bytes(Cow<'a, [u8]>),
    /// Text. Lone surrogates, which Python allows and UTF-8 does not, become U+FFFD.
    Str(Cow<'a, str>),
    /// A list.
    List(Vec<NodeId>),
    /// A tuple.
    Tuple(Vec<NodeId>),
    /// A set or frozenset, in the order of the file.
    Set(Vec<NodeId>),
    /// A dictionary, in the order of the file, with repeated keys kept.
    Dict(Vec<(NodeId, NodeId)>),
    /// A class or function, by name only.
    Global(Callee),
    /// The result of calling a class or function, which drift does not call.
    Object(Box<Object>),
}

/// A call that the pickle requests and drift does not make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The class or function that Python would call.
    pub class: Callee,
    /// The arguments; always a [`Value::Tuple`].
    pub args: NodeId,
    /// The argument that Python would pass to `__setstate__`.
    pub state: Option<NodeId>,
    /// The items that Python would append or add, if the class is a kind of list or set.
    pub items: Vec<NodeId>,
    /// The entries that Python would set by key, if the class is a kind of dictionary.
    pub entries: Vec<(NodeId, NodeId)>,
}

impl<'a> Pickle<'a> {
    /// Parses the pickle at the start of `input`. Bytes after the pickle are ignored; [`Pickle::length`] says where they begin.
    ///
    /// # Errors
    /// If the input is not a pickle, is truncated, refers outside itself, or unpacks into far more than its size.
    pub fn parse(input: &'a [u8]) -> Result<Self, PickleError> {
        machine::run(input)
    }

    /// Returns the root value: the result of the pickle.
    #[must_use]
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// Returns the length of the pickle in bytes, including its final `.`.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the number of values in the arena.
    #[must_use]
    pub(crate) fn value_count(&self) -> usize {
        self.values.len()
    }

    /// Returns the name of a class outside the list, shortened if long; `None` for a class in the list.
    #[must_use]
    pub fn unknown(&self, class: Callee) -> Option<&str> {
        match class {
            Callee::Known(_) => None,
            Callee::Unknown(name) => self.unknown.get(name as usize).map(String::as_str),
        }
    }

    /// Returns the text of a value: a string, or a Python 2 string that is valid UTF-8.
    #[must_use]
    pub fn text(&self, id: NodeId) -> Option<&str> {
        match &self[id] {
            Value::Str(text) => Some(text),
            Value::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

impl<'a> Index<NodeId> for Pickle<'a> {
    type Output = Value<'a>;

    fn index(&self, id: NodeId) -> &Value<'a> {
        &self.values[id.index()]
    }
}

impl NodeId {
    /// Returns the position in the arena, for a table with one entry per value.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests;
