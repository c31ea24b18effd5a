//! A file that may be replaced while the server runs.
//!
//! What was read stays in use until a newer file was read whole and found good: a copy that is under way, a
//! broken download or a file that is gone for a moment takes nothing away. What is wrong with a file is
//! logged once per file.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// What tells one file from another at the same path. The time of its last change of any kind is among it:
/// a file may be moved here with its old time, or become readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

/// What was found at the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileState {
    File(Stamp),
    Nothing(io::ErrorKind),
}

/// A file that may be replaced.
pub(super) struct WatchedFile<T> {
    /// The setting that names it, for the log.
    setting: &'static str,
    path: Option<PathBuf>,
    bytes_max: u64,
    read: fn(Vec<u8>) -> Result<T, String>,
    last_state: Mutex<Option<FileState>>,
    value: RwLock<Option<Arc<T>>>,
}

impl<T> WatchedFile<T> {
    pub(super) const fn new(
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

    /// What the last good file holds.
    pub(super) fn get(&self) -> Option<Arc<T>> {
        let value = self.value.read().unwrap_or_else(PoisonError::into_inner);
        value.clone()
    }

    /// Reads the file when it is another one than before; true when it is in use now. It blocks.
    pub(super) fn refresh(&self) -> bool {
        let Some(path) = &self.path else {
            return false;
        };
        let mut seen = self
            .last_state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Looked at before it is read: whatever is written meanwhile is another file next time.
        let now = observe(path);
        if *seen == Some(now) {
            return false;
        }
        *seen = Some(now);
        let (setting, file) = (self.setting, path.display());
        match read_file(path, self.bytes_max).and_then(self.read) {
            Ok(value) => {
                let mut place = self.value.write().unwrap_or_else(PoisonError::into_inner);
                *place = Some(Arc::new(value));
                tracing::info!("{setting}: {file} is in use now");
                true
            }
            Err(problem) => {
                let rest = if self.get().is_some() {
                    "the one before stays in use"
                } else {
                    "nothing is known from it"
                };
                tracing::warn!("{setting}: {file} cannot be used, {rest}: {problem}");
                false
            }
        }
    }
}

fn observe(path: &Path) -> FileState {
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

/// Reads a file of at most so many bytes, or says why not.
pub fn read_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
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
        text.parse().map_err(|_| "no number".to_owned())
    }

    fn watched(path: &Path) -> WatchedFile<u32> {
        WatchedFile::new("test.file", Some(path.to_owned()), 5, number)
    }

    #[test]
    fn a_new_file_replaces_the_old_one_and_a_broken_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = watched(&path);
        let refresh = |content: Option<&str>| {
            match content {
                // As people are told to: written beside it, then moved into its place.
                Some(content) => {
                    let beside = folder.path().join("new");
                    fs::write(&beside, content).unwrap();
                    fs::rename(&beside, &path).unwrap();
                }
                None => fs::remove_file(&path).unwrap(),
            }
            let is_new = file.refresh();
            assert!(!file.refresh(), "it is read once");
            (is_new, file.get().map(|value| *value))
        };
        assert_eq!(refresh(Some("1")), (true, Some(1)));
        assert_eq!(refresh(Some("2")), (true, Some(2)), "of the same size");
        assert_eq!(refresh(Some("broken")), (false, Some(2)));
        assert_eq!(refresh(Some("123456")), (false, Some(2)), "too large");
        assert_eq!(refresh(None), (false, Some(2)));
        assert_eq!(refresh(Some("3")), (true, Some(3)));
    }

    #[test]
    fn a_file_that_is_not_there_at_first_is_found_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = watched(&path);
        assert!(!file.refresh());
        assert_eq!(file.get(), None);
        fs::write(&path, "12345").unwrap();
        assert!(file.refresh(), "at the limit of its size");
        assert_eq!(file.get().as_deref(), Some(&12_345));
    }

    #[test]
    fn a_folder_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!watched(folder.path()).refresh());
        assert!(read_file(folder.path(), 5).is_err());
    }
}
