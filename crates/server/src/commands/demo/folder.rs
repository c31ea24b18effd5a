//! The demo's data folder, removed at the end unless `--keep` is given.

use crate::secret_key;
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Prefix of the folder's name, so that a folder left behind by a killed demo is recognisable.
const PREFIX: &str = "tributary-demo-";

/// Data folder of the demo.
pub(super) enum DemoFolder {
    /// Removed at the end.
    Temporary(TempDir),
    /// Kept at the end.
    Kept(PathBuf),
}

impl DemoFolder {
    /// Creates the folder given with `--keep`, or a temporary folder.
    pub(super) fn new(keep: Option<PathBuf>) -> anyhow::Result<Self> {
        let Some(folder) = keep else {
            let created = tempfile::Builder::new().prefix(PREFIX).tempdir();
            let created =
                created.context("cannot create a temporary folder; choose a folder with --keep")?;
            return Ok(Self::Temporary(created));
        };
        secret_key::create_data_folder(&folder)?;
        let mut entries = folder
            .read_dir()
            .with_context(|| format!("{} cannot be read", folder.display()))?;
        if entries.next().is_some() {
            anyhow::bail!(
                "{} is not empty; --keep needs a new or empty folder",
                folder.display()
            );
        }
        Ok(Self::Kept(folder))
    }

    /// Returns the folder's path.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Temporary(folder) => folder.path(),
            Self::Kept(folder) => folder,
        }
    }

    /// Removes a temporary folder.
    pub(super) fn clean_up(self) -> anyhow::Result<()> {
        match self {
            Self::Temporary(folder) => {
                let path = folder.path().display().to_string();
                folder
                    .close()
                    .with_context(|| format!("cannot remove {path}; remove it manually"))
            }
            Self::Kept(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_a_temporary_folder_with_its_content() {
        let folder = DemoFolder::new(None).unwrap();
        let path = folder.path().to_owned();
        std::fs::write(path.join("x"), "x").unwrap();
        folder.clean_up().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn creates_and_keeps_the_given_folder() {
        let parent = tempfile::tempdir().unwrap();
        let folder = DemoFolder::new(Some(parent.path().join("new"))).unwrap();
        let path = folder.path().to_owned();
        std::fs::write(path.join("x"), "x").unwrap();
        folder.clean_up().unwrap();
        assert!(path.join("x").exists());
        let refused = DemoFolder::new(Some(path)).err().unwrap().to_string();
        assert!(refused.contains("not empty"), "{refused}");
    }
}
