//! Checks the GeoIP files, if configured, by reading them the way the server does.

use super::check::DoctorCheck;
use crate::config::GeoConfig;
use crate::geo::{CountryDatabase, MMDB_BYTES_MAX, RELAY_FILE_BYTES_MAX, RelayRanges};
use crate::watched_file::read_file;
use std::path::Path;

const AREA: &str = "geo";

/// Checks the files.
pub(super) fn examine(geo: &GeoConfig) -> Vec<DoctorCheck> {
    let countries = |path: &Path| {
        let content = read_file(path, MMDB_BYTES_MAX)?;
        CountryDatabase::read(content).map(|countries| countries.describe())
    };
    let relays = |path: &Path| {
        let content = read_file(path, RELAY_FILE_BYTES_MAX)?;
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
) -> DoctorCheck {
    let Some(path) = path else {
        return DoctorCheck::ok(AREA, format!("off: {setting} is not set"));
    };
    let file = path.display();
    match read(path) {
        Ok(about) => DoctorCheck::ok(AREA, format!("{setting}: {file} can be used: {about}")),
        Err(problem) => DoctorCheck::error(
            AREA,
            format!("{setting}: {file} cannot be used: {problem}"),
            format!("correct the path or the file, or leave {setting} empty"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus;
    use super::*;
    use crate::geo::test_mmdb;
    use rstest::rstest;
    use std::fs;

    #[rstest]
    #[case::not_set(None, None, CheckStatus::Ok, "off: geo.mmdb")]
    #[case::good(Some("good.mmdb"), None, CheckStatus::Ok, "Test-Country from 2026")]
    #[case::broken(Some("good.csv"), None, CheckStatus::Error, "good.csv cannot be used")]
    #[case::empty(Some("empty"), None, CheckStatus::Error, "empty cannot be used")]
    #[case::a_folder(Some("."), None, CheckStatus::Error, "cannot be used")]
    #[case::missing(Some("missing"), None, CheckStatus::Error, "No such file")]
    #[case::good_ranges(
        None,
        Some("good.csv"),
        CheckStatus::Ok,
        "good.csv can be used: 1 ranges"
    )]
    #[case::broken_ranges(None, Some("good.mmdb"), CheckStatus::Error, "cannot be used")]
    fn a_configured_file_must_be_valid(
        #[case] mmdb: Option<&str>,
        #[case] ranges: Option<&str>,
        #[case] verdict: CheckStatus,
        #[case] part: &str,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("good.mmdb"), test_mmdb::write(&[("10.0.0.0/8", "DE")])).unwrap();
        fs::write(at("good.csv"), "10.0.0.0/8,DE,,,\n").unwrap();
        fs::write(at("empty"), "").unwrap();
        let checks = examine(&GeoConfig {
            mmdb: mmdb.map(at),
            relay_ranges: ranges.map(at),
            country_header: None,
        });
        let check = &checks[usize::from(ranges.is_some())];
        assert_eq!(check.status, verdict, "{check:?}");
        assert!(check.message.contains(part), "{check:?}");
    }
}
