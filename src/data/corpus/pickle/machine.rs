//! The pickle machine: a stack, marks on the stack, and a memo of values for reuse.

mod memo;
mod pieces;

use std::borrow::Cow;
use std::collections::HashMap;

use memo::Memo;

use super::cursor::Cursor;
use super::error::PickleError;
use super::global::{Callee, Role};
use super::{NodeId, Object, Pickle, Value, opcode as op, text};

type Result<T> = std::result::Result<T, PickleError>;

/// Runs the pickle at the start of `input`.
pub(super) fn run(input: &[u8]) -> Result<Pickle<'_>> {
    Machine::new(input).run()
}

struct Machine<'a> {
    cursor: Cursor<'a>,
    length: usize,
    /// The position of the current opcode, for errors.
    at: usize,
    values: Vec<Value<'a>>,
    /// Names outside the list, in order of first occurrence. `unknown_numbers` maps module and name to their index.
    unknown: Vec<String>,
    unknown_numbers: HashMap<(String, String), u32>,
    /// The number of bytes of text decoded so far; see `spend`.
    decoded: usize,
    stack: Vec<NodeId>,
    /// The stack heights at the open marks, from the bottom up.
    marks: Vec<usize>,
    memo: Memo,
    /// `None`, `False`, `True`, the empty tuple and the integers 0 to 255, each created at first use. These values cannot change,
    /// and cost a pickle only one or two bytes each.
    constants: HashMap<u16, NodeId>,
}

impl<'a> Machine<'a> {
    fn new(input: &'a [u8]) -> Self {
        Self {
            cursor: Cursor::new(input),
            length: input.len(),
            at: 0,
            values: Vec::new(),
            unknown: Vec::new(),
            unknown_numbers: HashMap::new(),
            decoded: 0,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Memo::default(),
            constants: HashMap::new(),
        }
    }

    fn run(mut self) -> Result<Pickle<'a>> {
        loop {
            self.at = self.cursor.offset();
            let opcode = self.cursor.u8()?;
            if opcode == op::STOP {
                let root = self.pop()?;
                let length = self.cursor.offset();
                return Ok(Pickle { values: self.values, unknown: self.unknown, root, length });
            }
            let known = self.constant(opcode)?
                || self.string(opcode)?
                || self.memo(opcode)?
                || self.sequence(opcode)?
                || self.mapping(opcode)?
                || self.object(opcode)?
                || self.control(opcode)?;
            if !known {
                let place = format!("byte {} of the pickle is {opcode:#04x}", self.at);
                return Err(PickleError(format!(
                    "{place}, which is not an opcode of pickle protocols 0 to 5"
                )));
            }
        }
    }

    /// Numbers, `None`, `True` and `False`. This function and the ones below return whether they handled the opcode.
    fn constant(&mut self, opcode: u8) -> Result<bool> {
        let value = match opcode {
            op::NONE => return self.push_shared(256, Value::None),
            op::NEWFALSE => return self.push_shared(257, Value::Bool(false)),
            op::NEWTRUE => return self.push_shared(258, Value::Bool(true)),
            op::BININT1 => {
                let byte = self.cursor.u8()?;
                return self.push_shared(byte.into(), Value::Int(byte.into()));
            }
            op::BININT2 => Value::Int(self.cursor.u16()?.into()),
            op::BININT => Value::Int(self.cursor.i32()?.into()),
            op::INT => match self.cursor.take_line()? {
                // Protocol 0 has no opcodes for booleans. It writes them as spellings of numbers that are otherwise unused.
                b"00" => Value::Bool(false),
                b"01" => Value::Bool(true),
                line => text::integer(line).ok_or_else(|| self.malformed("not an integer"))?,
            },
            op::LONG => {
                let line = self.cursor.take_line()?.trim_ascii();
                let digits = line.strip_suffix(b"L").unwrap_or(line);
                text::integer(digits).ok_or_else(|| self.malformed("not an integer"))?
            }
            op::LONG1 => {
                let length = self.cursor.u8()?;
                text::long(self.cursor.take(length.into())?)
            }
            op::LONG4 => {
                let length = self.length_i32()?;
                text::long(self.cursor.take_items(length, 1)?)
            }
            op::FLOAT => {
                let number = text::ascii(self.cursor.take_line()?).and_then(|text| text.parse().ok());
                Value::Float(number.ok_or_else(|| self.malformed("not a number"))?)
            }
            op::BINFLOAT => Value::Float(f64::from_be_bytes(self.cursor.array()?)),
            _ => return Ok(false),
        };
        self.push(value)
    }

    /// Text and bytes.
    fn string(&mut self, opcode: u8) -> Result<bool> {
        let value = match opcode {
            op::STRING => {
                let literal = text::string_literal(self.cursor.take_line()?);
                Value::Bytes(literal.ok_or_else(|| self.malformed("not a string literal"))?)
            }
            op::UNICODE => {
                let literal = text::raw_unicode(self.cursor.take_line()?);
                Value::Str(literal.ok_or_else(|| self.malformed("not escaped text"))?)
            }
            _ => {
                let length = match opcode {
                    op::SHORT_BINSTRING | op::SHORT_BINBYTES | op::SHORT_BINUNICODE => {
                        self.cursor.u8()?.into()
                    }
                    op::BINSTRING => self.length_i32()?,
                    op::BINBYTES | op::BINUNICODE => self.cursor.u32()?.into(),
                    op::BINBYTES8 | op::BINUNICODE8 | op::BYTEARRAY8 => self.cursor.u64()?,
                    _ => return Ok(false),
                };
                let bytes = self.cursor.take_items(length, 1)?;
                if matches!(opcode, op::SHORT_BINUNICODE | op::BINUNICODE | op::BINUNICODE8) {
                    Value::Str(text::utf8(bytes).ok_or_else(|| self.malformed("text that is not UTF-8"))?)
                } else {
                    Value::Bytes(Cow::Borrowed(bytes))
                }
            }
        };
        self.push(value)
    }

    /// Returns the memo: stores values and fetches them again.
    fn memo(&mut self, opcode: u8) -> Result<bool> {
        let key = match opcode {
            op::MEMOIZE => {
                self.memo.memoize(self.top()?);
                return Ok(true);
            }
            op::BINPUT | op::BINGET => self.cursor.u8()?.into(),
            op::LONG_BINPUT | op::LONG_BINGET => self.cursor.u32()?.into(),
            op::PUT | op::GET => {
                let number = text::ascii(self.cursor.take_line()?).and_then(|text| text.parse().ok());
                number.ok_or_else(|| self.malformed("not an index of the memo"))?
            }
            _ => return Ok(false),
        };
        if matches!(opcode, op::BINPUT | op::LONG_BINPUT | op::PUT) {
            self.memo.put(key, self.top()?);
        } else {
            let id = self.memo.get(key).ok_or_else(|| self.malformed("the memo has no such value"))?;
            self.stack.push(id);
        }
        Ok(true)
    }

    /// Tuples, lists and sets.
    fn sequence(&mut self, opcode: u8) -> Result<bool> {
        let value = match opcode {
            op::EMPTY_TUPLE => return self.push_shared(259, Value::Tuple(Vec::new())),
            op::TUPLE => Value::Tuple(self.pop_mark()?),
            op::TUPLE1 | op::TUPLE2 | op::TUPLE3 => {
                let count = usize::from(opcode - op::TUPLE1) + 1;
                Value::Tuple(self.pop_many(count)?)
            }
            op::EMPTY_LIST => Value::List(Vec::new()),
            op::LIST => Value::List(self.pop_mark()?),
            op::EMPTY_SET => Value::Set(Vec::new()),
            op::FROZENSET => Value::Set(self.pop_mark()?),
            op::APPEND => {
                let item = self.pop()?;
                return self.extend(&[item]);
            }
            op::APPENDS | op::ADDITEMS => {
                let items = self.pop_mark()?;
                return self.extend(&items);
            }
            _ => return Ok(false),
        };
        self.push(value)
    }

    fn extend(&mut self, items: &[NodeId]) -> Result<bool> {
        let target = match self.top_value()? {
            Value::List(list) | Value::Set(list) => list,
            Value::Object(object) => &mut object.items,
            _ => return Err(self.malformed("appends to something that is not a list or set")),
        };
        target.extend_from_slice(items);
        Ok(true)
    }

    /// Dictionaries.
    fn mapping(&mut self, opcode: u8) -> Result<bool> {
        let flat = match opcode {
            op::EMPTY_DICT => return self.push(Value::Dict(Vec::new())),
            op::SETITEM => self.pop_many(2)?,
            op::DICT | op::SETITEMS => self.pop_mark()?,
            _ => return Ok(false),
        };
        // Keys and values alternate.
        let (pairs, rest) = flat.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(self.malformed("a key without a value"));
        }
        let entries = pairs.iter().map(|&[key, value]| (key, value));
        if opcode == op::DICT {
            return self.push(Value::Dict(entries.collect()));
        }
        let target = match self.top_value()? {
            Value::Dict(dict) => dict,
            Value::Object(object) => &mut object.entries,
            _ => return Err(self.malformed("sets a key of something that is not a dictionary")),
        };
        target.extend(entries);
        Ok(true)
    }

    /// Classes, functions and calls of them.
    fn object(&mut self, opcode: u8) -> Result<bool> {
        match opcode {
            op::GLOBAL => {
                let global = self.global_lines()?;
                self.push(Value::Global(global))
            }
            op::STACK_GLOBAL => {
                let [module, name] = [0, 1].map(|index| self.stack_text(2 - index));
                let global = self.find(&module?, &name?);
                self.pop_many(2)?;
                self.push(Value::Global(global))
            }
            op::INST => {
                let class = self.global_lines()?;
                let args = self.pop_mark()?;
                let args = self.add(Value::Tuple(args))?;
                self.call(class, args)
            }
            op::OBJ => {
                let mut args = self.pop_mark()?;
                if args.is_empty() {
                    return Err(self.malformed("a call without a function"));
                }
                let class = self.class(args.remove(0))?;
                let args = self.add(Value::Tuple(args))?;
                self.call(class, args)
            }
            op::REDUCE | op::NEWOBJ | op::NEWOBJ_EX => {
                if opcode == op::NEWOBJ_EX {
                    // Keyword arguments are discarded; only the class could interpret them.
                    self.pop()?;
                }
                let (args, callee) = (self.pop()?, self.pop()?);
                let class = self.class(callee)?;
                self.call(class, args)
            }
            op::BUILD => {
                let state = self.pop()?;
                match self.top_value()? {
                    Value::Object(object) => object.state = Some(state),
                    _ => return Err(self.malformed("sets the state of a plain value")),
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Pushes the call of `class` with an argument tuple.
    fn call(&mut self, class: Callee, args: NodeId) -> Result<bool> {
        let Value::Tuple(list) = self.value(args) else {
            return Err(self.malformed("a call whose arguments are not a tuple"));
        };
        if class.role() == Some(Role::Encode)
            && let &[source, codec] = list.as_slice()
            && let Some(bytes) = self.encode(source, codec)?
        {
            return self.push(Value::Bytes(bytes));
        }
        let object = Object { class, args, state: None, items: Vec::new(), entries: Vec::new() };
        self.push(Value::Object(Box::new(object)))
    }

    /// Returns the bytes that a call of `_codecs.encode` would return.
    fn encode(&mut self, source: NodeId, codec: NodeId) -> Result<Option<Cow<'a, [u8]>>> {
        let (Value::Str(source), Value::Str(codec)) = (self.value(source), self.value(codec)) else {
            return Ok(None);
        };
        let (bytes, work) = (text::encode(source, codec), source.len());
        // A pickle may encode the same text again and again, for a few of its bytes each time.
        self.spend(work)?;
        Ok(bytes)
    }

    /// Marks, plain stack operations, framing, and the features that are refused by name.
    fn control(&mut self, opcode: u8) -> Result<bool> {
        let feature = match opcode {
            op::MARK => {
                self.marks.push(self.stack.len());
                return Ok(true);
            }
            // As in Python, a `POP` right after a mark removes the mark.
            op::POP if self.marks.last() == Some(&self.stack.len()) => return Ok(self.marks.pop().is_some()),
            op::POP => return self.pop().map(|_| true),
            op::POP_MARK => return self.pop_mark().map(|_| true),
            op::DUP => {
                self.stack.push(self.top()?);
                return Ok(true);
            }
            op::PROTO => {
                let protocol = self.cursor.u8()?;
                if protocol > 5 {
                    let at = self.at;
                    return Err(PickleError(format!(
                        "pickle protocol {protocol} at byte {at}; drift reads 0 to 5"
                    )));
                }
                return Ok(true);
            }
            // A frame only states how much to read ahead; its contents are ordinary opcodes.
            op::FRAME => return Ok(self.cursor.u64().map(|_| true)?),
            op::PERSID | op::BINPERSID => "a persistent identifier",
            op::EXT1 | op::EXT2 | op::EXT4 => "Python's extension registry",
            op::NEXT_BUFFER | op::READONLY_BUFFER => "a buffer outside the file",
            _ => return Ok(false),
        };
        Err(PickleError(format!("pickle uses {feature} at byte {}, which drift does not read", self.at)))
    }
}
