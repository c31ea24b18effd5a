//! Finds the known name that is closest to a mistyped name.

/// Returns the first candidate with the smallest edit distance.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    candidates
        .into_iter()
        .min_by_key(|candidate| distance(name, candidate))
}

/// Returns the Levenshtein distance between two texts, computed row by row.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::same("listen", "listen", 0)]
    #[case::dropped("listn", "listen", 1)]
    #[case::added("listenn", "listen", 1)]
    #[case::replaced("lisden", "listen", 1)]
    #[case::from_nothing("", "geo", 3)]
    #[case::to_nothing("geo", "", 3)]
    #[case::kitten("kitten", "sitting", 3)]
    fn computes_edit_distances(#[case] from: &str, #[case] to: &str, #[case] expected: usize) {
        assert_eq!(distance(from, to), expected);
    }

    #[test]
    fn finds_the_nearest_known_name() {
        let known = ["listen", "limits.connections", "log.level"];
        assert_eq!(
            nearest("limit.connection", known),
            Some("limits.connections")
        );
        assert_eq!(nearest("loglevel", known), Some("log.level"));
        assert_eq!(nearest("anything", []), None);
    }
}
