//! The limits that the system puts on the process.

use super::check::Check;
use crate::config::Config;
use crate::descriptors;

const AREA: &str = "limits";

/// Looks at how many files may be open.
pub(super) fn examine(config: &Config) -> Vec<Check> {
    vec![judge(descriptors::possible(), descriptors::wanted(config))]
}

fn judge(allowed: Option<u64>, wanted: u64) -> Check {
    if let Some(shortage) = descriptors::shortage(allowed, wanted) {
        return Check::warning(AREA, shortage, "");
    }
    let allowed = allowed.map_or_else(|| "any number of".to_owned(), |count| count.to_string());
    // A supervisor may start the server with other limits than a shell starts the doctor with.
    Check::ok(
        AREA,
        format!("{allowed} files may be open at a time, as started here; {wanted} are wanted"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::unlimited(None, Verdict::Ok)]
    #[case::enough(Some(100), Verdict::Ok)]
    #[case::too_few(Some(99), Verdict::Warning)]
    fn open_files(#[case] allowed: Option<u64>, #[case] expected: Verdict) {
        assert_eq!(judge(allowed, 100).verdict, expected);
    }
}
