//! The query string of a page's URL.

use url::form_urlencoded;

/// Names and values in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct UrlQuery(Vec<(String, String)>);

impl UrlQuery {
    /// Parses the text after the question mark.
    pub(crate) fn of(text: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(text.unwrap_or_default().as_bytes());
        Self(pairs.into_owned().collect())
    }

    /// Returns the first value for a name. An empty value counts as absent, because forms send
    /// empty fields.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(found, _)| found == name);
        found
            .map(|(_, value)| value.trim())
            .filter(|value| !value.is_empty())
    }

    /// Returns all values for a name that are not empty.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let found = self.0.iter().filter(move |(found, _)| found == name);
        found
            .map(|(_, value)| value.trim())
            .filter(|value| !value.is_empty())
    }

    /// Returns the pairs of names and values, without empty values, `notice` and `except`. Forms
    /// repeat them as hidden fields, so that a form changes only its own fields.
    pub(crate) fn fields_except(&self, except: &[&str]) -> Vec<(&str, &str)> {
        let is_kept = |name: &str| name != "notice" && !except.contains(&name);
        let pairs = self.0.iter();
        pairs
            .filter(|(name, value)| is_kept(name) && !value.trim().is_empty())
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect()
    }

    /// Returns a query with only these names.
    pub(crate) fn only(&self, names: &[&str]) -> Self {
        let is_kept = |(name, value): &&(String, String)| {
            names.contains(&name.as_str()) && !value.trim().is_empty()
        };
        Self(self.0.iter().filter(is_kept).cloned().collect())
    }

    /// Returns the query with some values replaced; `None` removes a value. `notice` is always
    /// removed.
    pub(crate) fn with(&self, changes: &[(&str, Option<&str>)]) -> String {
        let mut text = form_urlencoded::Serializer::new(String::new());
        let is_changed = |name: &str| changes.iter().any(|(changed, _)| *changed == name);
        for (name, value) in &self.0 {
            if !is_changed(name) && name != "notice" && !value.is_empty() {
                text.append_pair(name, value);
            }
        }
        for (name, value) in changes {
            if let Some(value) = value {
                text.append_pair(name, value);
            }
        }
        text.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_and_removes_values_by_name() {
        let query = UrlQuery::of(Some("a=1&b=&c=x%26y&notice=saved"));
        assert_eq!(query.get("a"), Some("1"));
        assert_eq!(query.get("b"), None);
        assert_eq!(query.with(&[("a", Some("2"))]), "c=x%26y&a=2");
        assert_eq!(query.with(&[("c", None)]), "a=1");
    }

    #[test]
    fn keeps_chosen_names() {
        let query = UrlQuery::of(Some("a=1&b=&c=x&c=y&notice=saved"));
        assert_eq!(query.all("c").collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(query.fields_except(&["a"]), [("c", "x"), ("c", "y")]);
        assert_eq!(query.only(&["b", "c"]).with(&[]), "c=x&c=y");
    }
}
