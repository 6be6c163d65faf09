//! Parses one event into buffers that are reused for the next.

use std::fmt::Write;

use serde::de::{IgnoredAny, MapAccess};

use drift_core::io::{FoldSeed, JsonFold, JsonPart};

/// The largest absolute time in nanoseconds, 146 years, so that the difference of two times fits into 64 bits.
pub(super) const LAST: i64 = 4_600_000_000_000_000_000;

/// The fields of an event that are used; empty if the event lacks them.
#[derive(Default)]
pub(super) struct Event {
    /// `ph`: the kind of the event.
    pub phase: String,
    /// `cat`.
    pub category: String,
    pub name: String,
    /// `pid`: a process, or the number of a device.
    pub process: String,
    /// `tid`: a thread, or a stream of the device.
    pub thread: String,
    /// `args.device`.
    pub device: String,
    /// `ts`.
    pub start: Micros,
    /// `dur`.
    pub duration: Micros,
}

/// A time or a duration in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) enum Micros {
    /// The field is missing.
    #[default]
    Missing,
    /// The value is not a number, or not finite.
    Unclear,
    Known(f64),
}

impl Micros {
    /// Returns the time in whole nanoseconds. The error is a reason: the time is missing, not a number, or out of range.
    pub(super) fn nanoseconds(self) -> Result<i64, &'static str> {
        match self {
            Micros::Missing => Err("without a time"),
            Micros::Unclear => Err("with a time that is not a number"),
            Micros::Known(micros) if micros.abs() > LAST as f64 / 1e3 => Err("with a time out of range"),
            // Whole microseconds are converted first: since 1970 there are so many that their product in f64 could not represent
            // nanoseconds.
            Micros::Known(micros) => Ok(micros as i64 * 1_000 + (micros.fract() * 1e3).round() as i64),
        }
    }
}

impl Event {
    /// Clears the previous event.
    pub(super) fn clear(&mut self) {
        let Event { phase, category, name, process, thread, device, start, duration } = self;
        for text in [phase, category, name, process, thread, device] {
            text.clear();
        }
        (*start, *duration) = (Micros::Missing, Micros::Missing);
    }
}

/// The returned flag says whether the value is an object.
impl<'de> JsonFold<'de> for &mut Event {
    type Value = bool;

    fn part<E>(self, _: JsonPart<'_>) -> Result<bool, E> {
        Ok(false)
    }

    fn object<A: MapAccess<'de>>(self, mut fields: A) -> Result<bool, A::Error> {
        while let Some(field) = fields.next_key_seed(FoldSeed(Name(&EVENT)))? {
            match field {
                Some(0) => fields.next_value_seed(FoldSeed(Text(&mut self.phase)))?,
                Some(1) => fields.next_value_seed(FoldSeed(Text(&mut self.category)))?,
                Some(2) => fields.next_value_seed(FoldSeed(Text(&mut self.name)))?,
                Some(3) => fields.next_value_seed(FoldSeed(Text(&mut self.process)))?,
                Some(4) => fields.next_value_seed(FoldSeed(Text(&mut self.thread)))?,
                Some(5) => self.start = fields.next_value_seed(FoldSeed(Time))?,
                Some(6) => self.duration = fields.next_value_seed(FoldSeed(Time))?,
                Some(_) => fields.next_value_seed(FoldSeed(Arguments(&mut self.device)))?,
                None => _ = fields.next_value::<IgnoredAny>()?,
            }
        }
        Ok(true)
    }
}

/// The fields of an event, by [`Name`].
const EVENT: [&str; 8] = ["ph", "cat", "name", "pid", "tid", "ts", "dur", "args"];

/// Finds the index of a field's name in a list.
struct Name(&'static [&'static str]);

impl<'de> JsonFold<'de> for Name {
    type Value = Option<usize>;

    fn part<E>(self, part: JsonPart<'_>) -> Result<Option<usize>, E> {
        let JsonPart::Text(text) = part else { return Ok(None) };
        Ok(self.0.iter().position(|name| *name == text))
    }
}

/// Writes any value as text into a buffer.
struct Text<'b>(&'b mut String);

impl<'de> JsonFold<'de> for Text<'_> {
    type Value = ();

    fn part<E>(self, part: JsonPart<'_>) -> Result<(), E> {
        self.0.clear();
        match part {
            JsonPart::Text(text) => self.0.push_str(text),
            // Writing to a string cannot fail.
            JsonPart::Count(number) => _ = write!(self.0, "{number}"),
            JsonPart::Negative(number) => _ = write!(self.0, "{number}"),
            JsonPart::Number(number) => _ = write!(self.0, "{number}"),
            JsonPart::Truth(truth) => _ = write!(self.0, "{truth}"),
            JsonPart::Null => self.0.push_str("null"),
            JsonPart::List => self.0.push_str("[…]"),
            JsonPart::Object => self.0.push_str("{…}"),
        }
        Ok(())
    }
}

/// Parses a time; some writers put numbers in quotes.
struct Time;

impl<'de> JsonFold<'de> for Time {
    type Value = Micros;

    fn part<E>(self, part: JsonPart<'_>) -> Result<Micros, E> {
        let number = match part {
            JsonPart::Text(text) => text.trim().parse().ok(),
            JsonPart::Count(number) => Some(number as f64),
            JsonPart::Negative(number) => Some(number as f64),
            JsonPart::Number(number) => Some(number),
            JsonPart::Truth(_) | JsonPart::Null | JsonPart::List | JsonPart::Object => None,
        };
        Ok(number.filter(|number: &f64| number.is_finite()).map_or(Micros::Unclear, Micros::Known))
    }
}

/// Reads the device from `args`.
struct Arguments<'b>(&'b mut String);

impl<'de> JsonFold<'de> for Arguments<'_> {
    type Value = ();

    fn part<E>(self, _: JsonPart<'_>) -> Result<(), E> {
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(field) = fields.next_key_seed(FoldSeed(Name(&["device"])))? {
            match field {
                Some(_) => fields.next_value_seed(FoldSeed(Text(self.0)))?,
                None => _ = fields.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_microseconds_since_1970_stay_whole() {
        for (micros, nanoseconds) in [
            (1_661_203_462_598_738.0, 1_661_203_462_598_738_000),
            (5_338_066_432_145.123, 5_338_066_432_145_123),
            (-2.5, -2_500),
            (0.000_4, 0),
        ] {
            assert_eq!(Micros::Known(micros).nanoseconds(), Ok(nanoseconds));
        }
        for time in [Micros::Missing, Micros::Unclear, Micros::Known(4.7e15), Micros::Known(-1e300)] {
            assert!(time.nanoseconds().is_err(), "{time:?}");
        }
    }
}
