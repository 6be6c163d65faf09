//! Enums whose variants have names, as one table of them.

/// Gives an enum the names of its variants: `ALL` in the order of the table, and `name`.
///
/// ```
/// #[derive(Clone, Copy)]
/// pub enum Side {
///     Left,
///     Right,
/// }
///
/// drift_core::named!(Side { Left: "left", Right: "right" });
///
/// assert_eq!(Side::ALL.map(Side::name), ["left", "right"]);
/// ```
#[macro_export]
macro_rules! named {
    ($kind:ident { $($variant:ident: $name:literal),+ $(,)? }) => {
        #[allow(dead_code, unreachable_pub)]
        impl $kind {
            /// All values.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns its name in options and reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }
    };
}
