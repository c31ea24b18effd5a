//! Enums that are stored and sent as keywords.

/// Implements `ALL`, `as_str` and `parse` for an enum with keywords. The table lists every variant
/// once, in the order of `ALL`; a missing variant does not compile. `Name[n]` makes `ALL` an array
/// instead of a slice. Keywords after a `|` are accepted when parsing but never written.
#[macro_export]
macro_rules! keywords {
    ($name:ident $([$count:literal])? { $($variant:ident => $text:literal $(| $alias:literal)*),+ $(,)? }) => {
        impl $name {
            $crate::keywords!(@all $([$count])? $($variant)+);

            /// Returns the keyword, as stored and sent.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// Parses a keyword.
            pub fn parse(text: &str) -> Option<Self> {
                match text {
                    $($text $(| $alias)* => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
    (@all [$count:literal] $($variant:ident)+) => {
        /// All variants.
        pub const ALL: [Self; $count] = [$(Self::$variant),+];
    };
    (@all $($variant:ident)+) => {
        /// All variants.
        pub const ALL: &'static [Self] = &[$(Self::$variant),+];
    };
}

#[cfg(test)]
#[expect(unreachable_pub, reason = "the macro is for public enums")]
mod tests {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Size {
        Small,
        VeryLarge,
    }

    keywords! { Size[2] { Small => "small", VeryLarge => "very_large" | "very-large" } }

    #[test]
    fn keywords_round_trip() {
        assert_eq!(Size::ALL.map(Size::as_str), ["small", "very_large"]);
        for size in Size::ALL {
            assert_eq!(Size::parse(size.as_str()), Some(size));
        }
        assert_eq!(Size::parse("very-large"), Some(Size::VeryLarge));
        assert_eq!(Size::parse("Small"), None);
    }
}
