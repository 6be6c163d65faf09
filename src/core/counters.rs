//! Structs of numbers that are added field by field, as one list of fields.

/// A number that parts of a whole add up to.
pub trait Counter: Copy {
    /// Returns the sum of both.
    fn plus(self, other: Self) -> Self;

    /// Returns how much it exceeds `other`.
    fn less(self, other: Self) -> Self;
}

macro_rules! numbers {
    ($($kind:ty),+) => {
        $(impl Counter for $kind {
            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn less(self, other: Self) -> Self {
                self - other
            }
        })+
    };
}

numbers!(u64, u128, i128, f64);

/// If a number is unknown in one part, it is unknown in the sum: a partial sum would look like a complete one.
impl<N: Counter> Counter for Option<N> {
    fn plus(self, other: Self) -> Self {
        self.zip(other).map(|(a, b)| a.plus(b))
    }

    fn less(self, other: Self) -> Self {
        self.zip(other).map(|(a, b)| a.less(b))
    }
}

/// Makes a struct whose fields are all [`Counter`]s one that can be merged: `merge` adds each field of another one, and `since`
/// subtracts those of an earlier state.
///
/// ```
/// drift_core::counters! {
///     #[derive(Debug, Clone, Copy, PartialEq)]
///     pub struct Texts {
///         pub passed: u64,
///         pub cut: Option<u64>,
///     }
/// }
///
/// let mut texts = Texts { passed: 2, cut: Some(1) };
/// texts.merge(&Texts { passed: 1, cut: None });
/// assert_eq!(texts, Texts { passed: 3, cut: None });
/// assert_eq!(texts.since(&Texts { passed: 2, cut: None }).passed, 1);
/// ```
#[macro_export]
macro_rules! counters {
    ($(#[$attribute:meta])* $visible:vis struct $name:ident {
        $($(#[$of_field:meta])* $field_visible:vis $field:ident: $kind:ty),+ $(,)?
    }) => {
        $(#[$attribute])*
        $visible struct $name {
            $($(#[$of_field])* $field_visible $field: $kind),+
        }

        #[allow(dead_code, unreachable_pub)]
        impl $name {
            /// Adds the numbers of `other`.
            pub fn merge(&mut self, other: &Self) {
                $(self.$field = $crate::counters::Counter::plus(self.$field, other.$field);)+
            }

            /// Returns the numbers since `before`, an earlier state of the same ones.
            pub fn since(&self, before: &Self) -> Self {
                Self { $($field: $crate::counters::Counter::less(self.$field, before.$field)),+ }
            }
        }
    };
}
