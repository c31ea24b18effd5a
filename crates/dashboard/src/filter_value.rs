//! Values of filters, as people write them.

use tributary_domain::event::name::canonical;
use tributary_domain::report::Dimension;
use tributary_domain::vocabulary::country::find_country;

/// Writes a filter value as it is stored. A value that cannot be read stays as it is, with the
/// reason.
pub(crate) fn normalized(dimension: Dimension, value: &str) -> (String, Option<String>) {
    match dimension {
        Dimension::Country => find_country(value).map_or_else(
            || {
                let fault = format!("No country matches “{value}”.");
                (value.to_owned(), Some(fault))
            },
            |code| (code, None),
        ),
        Dimension::Event => (canonical(value).0, None),
        _ => (value.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::code(Dimension::Country, "de", "DE", None)]
    #[case::name(Dimension::Country, "Germany", "DE", None)]
    #[case::label(Dimension::Country, "Germany (DE)", "DE", None)]
    #[case::unknown(
        Dimension::Country,
        "Germania",
        "Germania",
        Some("No country matches “Germania”.")
    )]
    #[case::event(Dimension::Event, "Purchase", "purchase", None)]
    #[case::other(Dimension::Campaign, "c1", "c1", None)]
    fn reads_values_as_people_write_them(
        #[case] dimension: Dimension,
        #[case] written: &str,
        #[case] value: &str,
        #[case] fault: Option<&str>,
    ) {
        let expected = (value.to_owned(), fault.map(str::to_owned));
        assert_eq!(normalized(dimension, written), expected);
    }
}
