//! The operations that the opcodes are built from: on the arena, the stack and names.

use std::borrow::Cow;

use super::{Machine, Result};
use crate::corpus::pickle::{Callee, NodeId, PickleError, Role, Value};
use drift_core::error::escaped;

/// The largest number of values of a pickle of any size, about 3 GB. Molecules are few values of many bytes.
const MAX_VALUES: usize = 1 << 26;

impl<'a> Machine<'a> {
    pub(super) fn malformed(&self, what: &str) -> PickleError {
        PickleError(format!("pickle is malformed at byte {}: {what}", self.at))
    }

    /// Returns the error for a pickle that unpacks into more than a pickle of its size written by Python could contain.
    fn too_large(&self, limit: usize, what: &str) -> PickleError {
        let length = self.length;
        PickleError(format!(
            "pickle of {length} bytes unpacks into more than {limit} {what}; no writer does that"
        ))
    }

    pub(super) fn value(&self, id: NodeId) -> &Value<'a> {
        // Only `add` creates ids, after pushing the value, and values are never removed.
        &self.values[id.index()]
    }

    /// Adds a value to the arena. Apart from the shared constants, Python spends at least two bytes on a value (an opcode and an
    /// entry in the memo or in a container). So a pickle with more than one value per two bytes is an attack.
    pub(super) fn add(&mut self, value: Value<'a>) -> Result<NodeId> {
        let limit = (self.length / 2 + 1024).min(MAX_VALUES);
        let id = match u32::try_from(self.values.len()) {
            Ok(id) if self.values.len() < limit => NodeId(id),
            _ => return Err(self.too_large(limit, "values")),
        };
        match &value {
            Value::Bytes(Cow::Owned(bytes)) => self.spend(bytes.len())?,
            Value::Str(Cow::Owned(text)) => self.spend(text.len())?,
            _ => {}
        }
        self.values.push(value);
        Ok(id)
    }

    /// Accounts for decoded bytes of text. Decoding at most triples them (U+FFFD for a bad byte), and encoding processes them once
    /// more. So only a pickle that decodes the same text again and again exceeds the limit.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<()> {
        self.decoded = self.decoded.saturating_add(bytes);
        let limit = self.length.saturating_mul(8);
        if self.decoded > limit {
            return Err(self.too_large(limit, "bytes of text"));
        }
        Ok(())
    }

    pub(super) fn push(&mut self, value: Value<'a>) -> Result<bool> {
        let id = self.add(value)?;
        self.stack.push(id);
        Ok(true)
    }

    pub(super) fn push_shared(&mut self, key: u16, value: Value<'a>) -> Result<bool> {
        let id = if let Some(&id) = self.constants.get(&key) {
            id
        } else {
            let id = self.add(value)?;
            self.constants.insert(key, id);
            id
        };
        self.stack.push(id);
        Ok(true)
    }

    /// Returns the part of the stack above the last mark.
    pub(super) fn above_mark(&self) -> &[NodeId] {
        // No operation pops below a mark without removing the mark, so the height at the mark is within the stack.
        &self.stack[self.marks.last().copied().unwrap_or(0)..]
    }

    pub(super) fn top(&self) -> Result<NodeId> {
        self.above_mark().last().copied().ok_or_else(|| self.malformed("takes a value from an empty stack"))
    }

    pub(super) fn top_value(&mut self) -> Result<&mut Value<'a>> {
        let index = self.top()?.index();
        Ok(&mut self.values[index])
    }

    pub(super) fn pop(&mut self) -> Result<NodeId> {
        let id = self.top()?;
        self.stack.pop();
        Ok(id)
    }

    pub(super) fn pop_many(&mut self, count: usize) -> Result<Vec<NodeId>> {
        if self.above_mark().len() < count {
            return Err(self.malformed("takes a value from an empty stack"));
        }
        Ok(self.stack.split_off(self.stack.len() - count))
    }

    /// Pops everything above the last mark, and the mark itself.
    pub(super) fn pop_mark(&mut self) -> Result<Vec<NodeId>> {
        let mark = self.marks.pop().ok_or_else(|| self.malformed("closes a mark that was never set"))?;
        Ok(self.stack.split_off(mark))
    }

    pub(super) fn length_i32(&mut self) -> Result<u64> {
        u64::try_from(self.cursor.i32()?).map_err(|_| self.malformed("a negative length"))
    }

    /// Returns the text at position `depth` from the top, where 1 is the top.
    pub(super) fn stack_text(&self, depth: usize) -> Result<Cow<'a, str>> {
        let above = self.above_mark();
        match above.len().checked_sub(depth).map(|index| self.value(above[index])) {
            Some(Value::Str(text)) => Ok(text.clone()),
            _ => Err(self.malformed("a class whose name is not text")),
        }
    }

    pub(super) fn class(&self, id: NodeId) -> Result<Callee> {
        match self.value(id) {
            Value::Global(class) => Ok(*class),
            // The result of an unknown function may itself be called.
            Value::Object(object) if object.class.role().is_none() => Ok(object.class),
            _ => Err(self.malformed("a call of something that is neither a class nor a function")),
        }
    }

    pub(super) fn global_lines(&mut self) -> Result<Callee> {
        let module = String::from_utf8_lossy(self.cursor.take_line()?);
        let name = String::from_utf8_lossy(self.cursor.take_line()?);
        Ok(self.find(&module, &name))
    }

    /// Returns the class or function of a name; an unknown name is recorded.
    pub(super) fn find(&mut self, module: &str, name: &str) -> Callee {
        /// The number of characters of a module or a name that are kept.
        const SHOWN: usize = 80;
        if let Some(role) = Role::of(module, name) {
            return Callee::Known(role);
        }
        // Names are kept only for messages, so long ones are truncated.
        let shown = |text: &str| escaped(&text.chars().take(SHOWN).collect::<String>());
        let key = (shown(module), shown(name));
        // Each name takes some bytes of the pickle, so their number fits 32 bits.
        let next = self.unknown.len() as u32;
        let number = *self.unknown_numbers.entry(key).or_insert_with_key(|(module, name)| {
            self.unknown.push(format!("{module}.{name}"));
            next
        });
        Callee::Unknown(number)
    }
}
