//! The files that tell where an address is: whether they can be used, where they are set. They are read as
//! the server reads them.

use super::check::Check;
use crate::config::Geo;
use crate::place::{self, Countries, MMDB_BYTES_MAX, RELAY_FILE_BYTES_MAX, RelayRanges};
use std::path::Path;

const AREA: &str = "geo";

/// Looks at the files.
pub(super) fn examine(geo: &Geo) -> Vec<Check> {
    let countries = |path: &Path| {
        let content = place::read_file(path, MMDB_BYTES_MAX)?;
        Countries::read(content).map(|countries| countries.describe())
    };
    let relays = |path: &Path| {
        let content = place::read_file(path, RELAY_FILE_BYTES_MAX)?;
        RelayRanges::read(content).map(|ranges| format!("{} ranges", ranges.len()))
    };
    vec![
        judge("geo.mmdb", geo.mmdb.as_deref(), countries),
        judge("geo.relay_ranges", geo.relay_ranges.as_deref(), relays),
    ]
}

fn judge(
    setting: &str,
    path: Option<&Path>,
    read: impl Fn(&Path) -> Result<String, String>,
) -> Check {
    let Some(path) = path else {
        return Check::ok(AREA, format!("off: {setting} is not set"));
    };
    let file = path.display();
    match read(path) {
        Ok(about) => Check::ok(AREA, format!("{setting}: {file} can be used: {about}")),
        Err(problem) => Check::failure(
            AREA,
            format!("{setting}: {file} cannot be used: {problem}"),
            format!("correct the path or the file, or leave {setting} empty"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use crate::place::test_mmdb;
    use rstest::rstest;
    use std::fs;

    #[rstest]
    #[case::not_set(None, None, Verdict::Ok, "off: geo.mmdb")]
    #[case::good(Some("good.mmdb"), None, Verdict::Ok, "Test-Country of 2026")]
    #[case::broken(Some("good.csv"), None, Verdict::Failure, "good.csv cannot be used")]
    #[case::empty(Some("empty"), None, Verdict::Failure, "empty cannot be used")]
    #[case::a_folder(Some("."), None, Verdict::Failure, "cannot be used")]
    #[case::missing(Some("missing"), None, Verdict::Failure, "No such file")]
    #[case::good_ranges(None, Some("good.csv"), Verdict::Ok, "good.csv can be used: 1 ranges")]
    #[case::broken_ranges(None, Some("good.mmdb"), Verdict::Failure, "cannot be used")]
    fn a_file_that_is_set_must_be_of_use(
        #[case] mmdb: Option<&str>,
        #[case] ranges: Option<&str>,
        #[case] verdict: Verdict,
        #[case] part: &str,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("good.mmdb"), test_mmdb::write(&[("10.0.0.0/8", "DE")])).unwrap();
        fs::write(at("good.csv"), "10.0.0.0/8,DE,,,\n").unwrap();
        fs::write(at("empty"), "").unwrap();
        let checks = examine(&Geo {
            mmdb: mmdb.map(at),
            relay_ranges: ranges.map(at),
            country_header: None,
        });
        let check = &checks[usize::from(ranges.is_some())];
        assert_eq!(check.verdict, verdict, "{check:?}");
        assert!(check.message.contains(part), "{check:?}");
    }
}
