//! A file that may be replaced while the server runs.
//!
//! The last valid content stays in use until a newer file has been read completely and is valid. An
//! unfinished copy, a broken download or a briefly missing file therefore does no harm. Errors are
//! logged once per version of a file.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Identifies a version of the file at the path. It includes the change time, because a file may be
/// moved here with its old modification time, or become readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    size: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

/// State of the path when last checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileState {
    File(Stamp),
    Nothing(io::ErrorKind),
}

/// A file that may be replaced.
pub(crate) struct WatchedFile<T> {
    /// Setting that names the file, for the log.
    setting: &'static str,
    path: Option<PathBuf>,
    bytes_max: u64,
    read: fn(Vec<u8>) -> Result<T, String>,
    last_state: Mutex<Option<FileState>>,
    value: RwLock<Option<Arc<T>>>,
}

impl<T> WatchedFile<T> {
    pub(crate) const fn new(
        setting: &'static str,
        path: Option<PathBuf>,
        bytes_max: u64,
        read: fn(Vec<u8>) -> Result<T, String>,
    ) -> Self {
        Self {
            setting,
            path,
            bytes_max,
            read,
            last_state: Mutex::new(None),
            value: RwLock::new(None),
        }
    }

    /// Returns the content of the last valid file.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        let value = self.value.read().unwrap_or_else(PoisonError::into_inner);
        value.clone()
    }

    /// Reads the file if it changed. Returns whether the new content is now in use. Blocks.
    pub(crate) fn refresh(&self) -> bool {
        let Some(path) = &self.path else {
            return false;
        };
        let mut last_state = self
            .last_state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Check the state before reading, so that a write in between counts as a new version next
        // time.
        let now = observe(path);
        if *last_state == Some(now) {
            return false;
        }
        *last_state = Some(now);
        let (setting, file) = (self.setting, path.display());
        match read_file(path, self.bytes_max).and_then(self.read) {
            Ok(value) => {
                let mut current = self.value.write().unwrap_or_else(PoisonError::into_inner);
                *current = Some(Arc::new(value));
                tracing::info!(setting, %file, "loaded GeoIP file");
                true
            }
            Err(problem) => {
                let fallback = if self.get().is_some() {
                    "keeping the previous file"
                } else {
                    "lookups are disabled"
                };
                tracing::warn!(
                    setting,
                    %file,
                    error = problem,
                    "cannot use GeoIP file; {fallback}"
                );
                false
            }
        }
    }
}

/// Returns the state of a path, which changes with its content.
pub(crate) fn observe(path: &Path) -> FileState {
    match path.metadata() {
        Ok(found) => FileState::File(Stamp {
            inode: found.ino(),
            size: found.size(),
            written: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }),
        Err(error) => FileState::Nothing(error.kind()),
    }
}

/// Reads a file up to a size limit, or returns the reason for the failure.
pub(crate) fn read_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let read = File::open(path).and_then(|file| {
        let one_more = bytes_max.saturating_add(1);
        file.take(one_more).read_to_end(&mut content)
    });
    read.map_err(|error| error.to_string())?;
    if content.len() as u64 > bytes_max {
        return Err(format!("it has more than {bytes_max} bytes"));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn number(content: Vec<u8>) -> Result<u32, String> {
        let text = String::from_utf8(content).map_err(|error| error.to_string())?;
        text.parse().map_err(|_| "not a number".to_owned())
    }

    fn watched(path: &Path) -> WatchedFile<u32> {
        WatchedFile::new("test.file", Some(path.to_owned()), 5, number)
    }

    #[test]
    fn a_new_file_replaces_the_old_one_unless_it_is_invalid() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = watched(&path);
        let refresh = |content: Option<&str>| {
            match content {
                // As the documentation recommends: write a new file, then rename it into place.
                Some(content) => {
                    let beside = folder.path().join("new");
                    fs::write(&beside, content).unwrap();
                    fs::rename(&beside, &path).unwrap();
                }
                None => fs::remove_file(&path).unwrap(),
            }
            let is_new = file.refresh();
            assert!(!file.refresh(), "an unchanged file is not read again");
            (is_new, file.get().map(|value| *value))
        };
        assert_eq!(refresh(Some("1")), (true, Some(1)));
        assert_eq!(refresh(Some("2")), (true, Some(2)), "same size");
        assert_eq!(refresh(Some("broken")), (false, Some(2)));
        assert_eq!(refresh(Some("123456")), (false, Some(2)), "too large");
        assert_eq!(refresh(None), (false, Some(2)));
        assert_eq!(refresh(Some("3")), (true, Some(3)));
    }

    #[test]
    fn finds_a_file_that_is_created_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = watched(&path);
        assert!(!file.refresh());
        assert_eq!(file.get(), None);
        fs::write(&path, "12345").unwrap();
        assert!(file.refresh(), "at the size limit");
        assert_eq!(file.get().as_deref(), Some(&12_345));
    }

    #[test]
    fn rejects_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!watched(folder.path()).refresh());
        assert!(read_file(folder.path(), 5).is_err());
    }
}
