//! Reading Python pickles, protocols 0 to 5, without running them.
//!
//! A pickle is a program for a small stack machine whose instructions may name any Python function and call it.
//! This module runs the machine but calls nothing: a class or function becomes an inert [`Callee`], a call
//! becomes an inert [`Object`] that keeps its arguments and state. A name outside a short list ([`Global::find`]) is kept
//! as a name alone: whoever walks the values says which object is not understood. Features that point outside the
//! file (persistent identifiers, the extension registry, out-of-band buffers) are errors.
//!
//! The values live in an arena ([`Pickle`]) and refer to each other by [`NodeId`], so a value that the pickle
//! shares is stored once, a value may contain itself, and neither parsing nor dropping recurses however deep the
//! pickle nests. Whoever walks the values must expect cycles.
//!
//! Byte strings and text borrow from the input where the format allows it, so a file of molecules costs little
//! more than its own size. Memory is bounded by the input: no length is believed before it is compared with what
//! is left, each opcode makes at most one value, and the number of values is at most half the number of bytes
//! (plus a constant).
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
pub use global::{Callee, Global, Role};

/// A parsed pickle: an arena of values and the one that the pickle stands for.
#[derive(Debug, Clone)]
pub struct Pickle<'a> {
    values: Vec<Value<'a>>,
    /// Names outside the list, each once.
    unknown: Vec<String>,
    root: NodeId,
    length: usize,
}

/// Names a value in the [`Pickle`] it comes from. Indexing another pickle with it panics or gives an unrelated
/// value, as with any index.
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
    /// An integer that does not; drift has no use for the digits.
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
    /// What Python would have got by calling a class or function.
    Object(Box<Object>),
}

/// A call that was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// What Python would have called.
    pub class: Callee,
    /// The arguments; always a [`Value::Tuple`].
    pub args: NodeId,
    /// What Python would have handed to `__setstate__`.
    pub state: Option<NodeId>,
    /// What would have been appended or added, if the class is a kind of list or set.
    pub items: Vec<NodeId>,
    /// What would have been set by key, if the class is a kind of dictionary.
    pub entries: Vec<(NodeId, NodeId)>,
}

impl<'a> Pickle<'a> {
    /// Parses the pickle at the start of `input`. Whatever follows it is left alone; [`Pickle::length`] says
    /// where that begins.
    ///
    /// # Errors
    /// The input is no pickle, is cut short, points outside itself, or unpacks into far more than its size; see
    /// [`PickleError`].
    pub fn parse(input: &'a [u8]) -> Result<Self, PickleError> {
        machine::run(input)
    }

    /// The value that the pickle stands for.
    #[must_use]
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// The number of bytes that the pickle takes, its final `.` included.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// The number of values in the arena.
    #[must_use]
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// The name of a class outside the list, shortened if long; none of one that is in it.
    #[must_use]
    pub fn unknown(&self, class: Callee) -> Option<&str> {
        match class {
            Callee::Known(_) => None,
            Callee::Unknown(name) => self.unknown.get(name as usize).map(String::as_str),
        }
    }

    /// The text of a value: a string, or a Python 2 string that happens to be UTF-8.
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
    /// The position in the arena, for a table with one entry per value.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests;
