//! The folder of the demo: gone when it ends, unless it is to be kept.

use crate::secret_key;
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What the folder's name begins with, for whoever finds one that a killed demo could not remove.
const PREFIX: &str = "tributary-demo-";

/// The folder of the demo.
pub(super) enum DemoFolder {
    /// Removed at the end.
    Temporary(TempDir),
    /// Kept.
    Kept(PathBuf),
}

impl DemoFolder {
    /// A new one: that which is to be kept, or one among the temporary ones of the machine.
    pub(super) fn new(keep: Option<PathBuf>) -> anyhow::Result<Self> {
        let Some(folder) = keep else {
            let made = tempfile::Builder::new().prefix(PREFIX).tempdir();
            let made = made.context(
                "no temporary folder can be made; say with --keep which folder is to be used",
            )?;
            return Ok(Self::Temporary(made));
        };
        secret_key::create_data_folder(&folder)?;
        let mut entries = folder
            .read_dir()
            .with_context(|| format!("{} cannot be read", folder.display()))?;
        if entries.next().is_some() {
            anyhow::bail!(
                "{} is not empty; --keep wants a folder that is new or empty, so that no data is mixed",
                folder.display()
            );
        }
        Ok(Self::Kept(folder))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Temporary(folder) => folder.path(),
            Self::Kept(folder) => folder,
        }
    }

    /// Removes what is not to be kept.
    pub(super) fn clean_up(self) -> anyhow::Result<()> {
        match self {
            Self::Temporary(folder) => {
                let path = folder.path().display().to_string();
                folder
                    .close()
                    .with_context(|| format!("{path} could not be removed; remove it by hand"))
            }
            Self::Kept(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_folder_is_removed_with_what_is_in_it() {
        let folder = DemoFolder::new(None).unwrap();
        let path = folder.path().to_owned();
        std::fs::write(path.join("x"), "x").unwrap();
        folder.clean_up().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_to_be_kept_is_made_and_stays() {
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
