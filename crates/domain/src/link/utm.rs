//! UTM parameters, which web analytics read from the URL of a page.

use crate::vocabulary::fault::Problem;
use crate::vocabulary::text::check_length;
use crate::vocabulary::web_url::PageUrl;
use url::form_urlencoded;

/// Maximum length of a UTM parameter in characters.
pub const UTM_CHARS_MAX: usize = 200;

/// UTM parameters to set. A missing one leaves the URL's parameter as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "each field is the parameter of that name")]
pub struct UtmParameters {
    pub source: Option<String>,
    pub medium: Option<String>,
    pub campaign: Option<String>,
    pub term: Option<String>,
    pub content: Option<String>,
}

/// Parses the value of a UTM parameter. Surrounding white space is dropped.
pub fn utm_value(text: &str) -> Result<String, Problem> {
    let text = text.trim();
    check_length(text, 1, UTM_CHARS_MAX)?;
    Ok(text.to_owned())
}

impl UtmParameters {
    fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("utm_source", &self.source),
            ("utm_medium", &self.medium),
            ("utm_campaign", &self.campaign),
            ("utm_term", &self.term),
            ("utm_content", &self.content),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }

    /// Returns whether nothing is to be set.
    pub fn is_empty(&self) -> bool {
        self.pairs().next().is_none()
    }

    /// Sets the parameters in a URL. The first parameter of the same name is replaced and further
    /// ones are removed; new parameters follow the others. Everything else stays as it is written,
    /// and the fragment stays at the end. Rejected if the URL becomes too long.
    pub fn applied_to(&self, url: &PageUrl) -> Result<PageUrl, Problem> {
        let (rest, fragment) = match url.as_str().split_once('#') {
            Some((rest, fragment)) => (rest, format!("#{fragment}")),
            None => (url.as_str(), String::new()),
        };
        let (page, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut missing: Vec<(&str, &str)> = self.pairs().collect();
        let mut parts = Vec::new();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let name = name_of(part);
            if let Some(place) = missing.iter().position(|(wanted, _)| *wanted == name) {
                let (name, value) = missing.remove(place);
                parts.push(written(name, value));
            } else if self.pairs().all(|(wanted, _)| wanted != name) {
                parts.push(part.to_owned());
            }
        }
        parts.extend(
            missing
                .into_iter()
                .map(|(name, value)| written(name, value)),
        );
        let mark = if parts.is_empty() { "" } else { "?" };
        PageUrl::parse(&format!("{page}{mark}{}{fragment}", parts.join("&")))
    }
}

/// Returns a parameter's name, decoded and in lower case.
fn name_of(part: &str) -> String {
    let mut decoded = form_urlencoded::parse(part.as_bytes());
    let name = decoded.next().map(|(name, _)| name.to_ascii_lowercase());
    name.unwrap_or_default()
}

fn written(name: &str, value: &str) -> String {
    let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
    // Some pages read `+` in a query as a plus sign.
    format!("{name}={}", value.replace('+', "%20"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::fault::FaultCode;
    use rstest::rstest;

    fn of(source: &str, campaign: &str) -> UtmParameters {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        UtmParameters {
            source: given(source),
            campaign: given(campaign),
            ..UtmParameters::default()
        }
    }

    #[rstest]
    #[case::new(
        "https://e.com/a",
        "x",
        "y",
        "https://e.com/a?utm_source=x&utm_campaign=y"
    )]
    #[case::nothing_to_set(
        "https://e.com/a?b=1&utm_source=z#f",
        "",
        "",
        "https://e.com/a?b=1&utm_source=z#f"
    )]
    #[case::after_others("https://e.com/?b=1", "x", "", "https://e.com/?b=1&utm_source=x")]
    #[case::replaced_in_place(
        "https://e.com/?utm_source=z&b=1",
        "x",
        "",
        "https://e.com/?utm_source=x&b=1"
    )]
    #[case::repeated(
        "https://e.com/?utm_source=z&b=1&utm_source=w",
        "x",
        "",
        "https://e.com/?utm_source=x&b=1"
    )]
    #[case::other_case("https://e.com/?UTM_Source=z", "x", "", "https://e.com/?utm_source=x")]
    #[case::encoded_name(
        "https://e.com/?utm%5Fsource=z",
        "x",
        "",
        "https://e.com/?utm_source=x"
    )]
    #[case::similar_name(
        "https://e.com/?utm_source_platform=z",
        "x",
        "",
        "https://e.com/?utm_source_platform=z&utm_source=x"
    )]
    #[case::fragment("https://e.com/a#top", "x", "", "https://e.com/a?utm_source=x#top")]
    #[case::question_mark_in_the_fragment(
        "https://e.com/a#b?c",
        "x",
        "",
        "https://e.com/a?utm_source=x#b?c"
    )]
    #[case::other_values_stay_as_written(
        "https://e.com/?q=a+b%2Bc&d",
        "x",
        "",
        "https://e.com/?q=a+b%2Bc&d&utm_source=x"
    )]
    #[case::empty_query("https://e.com/?", "x", "", "https://e.com/?utm_source=x")]
    #[case::own_computer(
        "http://localhost:3000/",
        "x",
        "",
        "http://localhost:3000/?utm_source=x"
    )]
    #[case::encoded_value(
        "https://e.com/",
        "a b&c=d+é",
        "",
        "https://e.com/?utm_source=a%20b%26c%3Dd%2B%C3%A9"
    )]
    fn sets_parameters(
        #[case] url: &str,
        #[case] source: &str,
        #[case] campaign: &str,
        #[case] expected: &str,
    ) {
        let url = PageUrl::parse(url).unwrap();
        let set = of(source, campaign).applied_to(&url).unwrap();
        assert_eq!(set.as_str(), expected);
        assert_eq!(
            of(source, campaign).applied_to(&set).unwrap(),
            set,
            "twice is once"
        );
    }

    #[test]
    fn all_five_parameters_are_set() {
        let value = |text: &str| Some(text.to_owned());
        let all = UtmParameters {
            source: value("s"),
            medium: value("m"),
            campaign: value("c"),
            term: value("t"),
            content: value("o"),
        };
        let url = PageUrl::parse("https://e.com/").unwrap();
        assert_eq!(
            all.applied_to(&url).unwrap().as_str(),
            "https://e.com/?utm_source=s&utm_medium=m&utm_campaign=c&utm_term=t&utm_content=o"
        );
        assert!(!all.is_empty() && UtmParameters::default().is_empty());
    }

    #[test]
    fn a_url_that_becomes_too_long_is_rejected() {
        let url = PageUrl::parse(&format!("https://e.com/{}", "a".repeat(1_900))).unwrap();
        let long = of(&"é".repeat(200), "").applied_to(&url);
        assert_eq!(long.unwrap_err().code, FaultCode::TooLong);
        assert!(utm_value(&"a".repeat(201)).is_err());
        assert_eq!(utm_value(" a ").unwrap(), "a");
    }
}
