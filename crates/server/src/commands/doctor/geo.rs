//! The country database: whether it can be read, where one is set.

use super::check::Check;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

const AREA: &str = "geo";

/// Looks at the file.
pub(super) fn examine(mmdb: Option<&Path>) -> Vec<Check> {
    vec![judge(mmdb, mmdb.map(first_byte))]
}

/// Reading one byte notices folders, empty files and missing permissions alike.
fn first_byte(path: &Path) -> io::Result<()> {
    File::open(path)?.read_exact(&mut [0])
}

fn judge(mmdb: Option<&Path>, read: Option<io::Result<()>>) -> Check {
    match (mmdb, read) {
        (Some(path), Some(Err(error))) => Check::failure(
            AREA,
            format!("geo.mmdb: {} cannot be read: {error}", path.display()),
            "correct the path, give the file to the user of the server, or leave geo.mmdb empty",
        ),
        (Some(path), _) => Check::ok(AREA, format!("geo.mmdb: {} can be read", path.display())),
        (None, _) => Check::ok(AREA, "off: geo.mmdb is not set"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn a_file_that_is_set_must_be_readable() {
        let folder = tempfile::tempdir().unwrap();
        let verdict = |path: Option<&Path>| examine(path)[0].verdict;
        let (full, empty) = (folder.path().join("full"), folder.path().join("empty"));
        std::fs::write(&full, "x").unwrap();
        std::fs::write(&empty, "").unwrap();
        assert_eq!(verdict(None), Verdict::Ok);
        assert_eq!(verdict(Some(&full)), Verdict::Ok);
        assert_eq!(verdict(Some(&empty)), Verdict::Failure);
        assert_eq!(verdict(Some(folder.path())), Verdict::Failure);
        assert_eq!(
            verdict(Some(&folder.path().join("missing"))),
            Verdict::Failure
        );
    }
}
