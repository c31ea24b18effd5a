//! Links in Markdown, rewritten for the address at which a document is served.

use super::document_path;

/// Rewrites the links in a text. A link to a served document gets its absolute path. A link to
/// another file of the repository, which is not served, becomes its label; so do images.
pub(super) fn rewrite(text: &str, is_served: impl Fn(&str) -> bool) -> String {
    let mut rewritten = String::with_capacity(text.len());
    let mut in_code = false;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            rewritten.push_str(line);
        } else {
            rewrite_line(line, &is_served, &mut rewritten);
        }
    }
    rewritten
}

fn rewrite_line(line: &str, is_served: &impl Fn(&str) -> bool, rewritten: &mut String) {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        let (Some((lead, label)), Some((target, tail))) =
            (before.rsplit_once('['), after.split_once(')'))
        else {
            rewritten.push_str(before);
            rewritten.push_str("](");
            rest = after;
            continue;
        };
        if let Some(target) = destination(target, is_served) {
            let link = format!("{lead}[{label}]({target})");
            rewritten.push_str(&link);
        } else {
            rewritten.push_str(lead.strip_suffix('!').unwrap_or(lead));
            rewritten.push_str(label);
        }
        rest = tail;
    }
    rewritten.push_str(rest);
}

/// Returns where a link leads; `None` if the file is not served.
fn destination(target: &str, is_served: &impl Fn(&str) -> bool) -> Option<String> {
    if target.starts_with('#') || target.contains("://") || target.starts_with("mailto:") {
        return Some(target.to_owned());
    }
    let (file, anchor) = match target.split_once('#') {
        Some((file, anchor)) => (file, format!("#{anchor}")),
        None => (target, String::new()),
    };
    is_served(file).then(|| document_path(file) + &anchor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::document("See [API](API.md).", "See [API](/docs/API.md).")]
    #[case::anchor("[Keys](API.md#keys)", "[Keys](/docs/API.md#keys)")]
    #[case::same_page("[Keys](#keys)", "[Keys](#keys)")]
    #[case::web("[MCP](https://example.com/a)", "[MCP](https://example.com/a)")]
    #[case::not_served("([adr 7](adr/0007-x.md))", "(adr 7)")]
    #[case::above("[README](../README.md), [API](API.md)", "README, [API](/docs/API.md)")]
    #[case::image("![Overview](images/a.png)!", "Overview!")]
    #[case::code("`[API.md](API.md)`", "`[API.md](/docs/API.md)`")]
    #[case::no_link("a[0](b", "a[0](b")]
    #[case::no_label("](API.md)", "](API.md)")]
    #[case::fence("```\n[API](API.md)\n```\n", "```\n[API](API.md)\n```\n")]
    fn links(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(rewrite(text, |name| name == "API.md"), expected);
    }
}
