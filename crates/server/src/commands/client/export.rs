//! `tributary events export`: writes an export to standard output or a file.

use super::connection::ApiConnection;
use super::progress::ClientProgress;
use super::{app_path, note, write_out};
use crate::cli::EventsExportOptions;
use crate::outbound::{OutboundError, read_chunk};
use anyhow::Context as _;
use reqwest::Response;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;
use tempfile::NamedTempFile;

/// Longest export. Years of events take hours on a slow line.
const EXPORT_MAX: Duration = Duration::from_hours(24);
/// Longest wait for the next part. A server waits up to a minute until it may read one.
const PART_MAX: Duration = Duration::from_mins(2);

/// Runs the command.
pub(super) async fn run(options: &EventsExportOptions) -> anyhow::Result<()> {
    let connection = ApiConnection::open(&options.connection)?;
    let path = app_path(&connection, options.app, "export").await?;
    let mut file = options
        .output
        .as_deref()
        .map(OutputFile::create)
        .transpose()?;
    let is_visible = file.is_none() && io::stdout().is_terminal();
    let mut progress = ClientProgress::start(!is_visible);
    let parameters = options.parameters();
    let mut response = connection.get(&path, &parameters, EXPORT_MAX).await?;
    let mut received = 0_u64;
    while let Some(part) = next_part(&mut response).await.map_err(|cause| {
        progress.clear();
        connection.no_answer(cause)
    })? {
        received += part.len() as u64;
        if let Some(file) = &mut file {
            file.write(&part)?;
        } else if write_out(&part)?.is_break() {
            return Ok(());
        }
        progress.show(&format!("{} received", megabytes(received)));
    }
    progress.clear();
    if let Some(file) = file {
        let path = file.finish()?;
        note(&format!("{} written to {path}", megabytes(received)));
    }
    Ok(())
}

/// Returns the next part, or `None` at the end. A server that fails ends the connection early, which is
/// an error here.
async fn next_part(response: &mut Response) -> Result<Option<Vec<u8>>, OutboundError> {
    tokio::time::timeout(PART_MAX, read_chunk(response))
        .await
        .unwrap_or(Err(OutboundError::TimedOut))
}

/// Returns the size in megabytes, with one digit after the point.
fn megabytes(bytes: u64) -> String {
    let tenths = bytes / 100_000;
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

/// A file that gets its name when it is complete.
struct OutputFile<'a> {
    path: &'a Path,
    file: NamedTempFile,
}

impl<'a> OutputFile<'a> {
    fn create(path: &'a Path) -> anyhow::Result<Self> {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let file = NamedTempFile::new_in(folder)
            .with_context(|| format!("cannot create a file in {}", folder.display()))?;
        Ok(Self { path, file })
    }

    fn write(&mut self, part: &[u8]) -> anyhow::Result<()> {
        let written = self.file.write_all(part);
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn finish(self) -> anyhow::Result<String> {
        let synced = self.file.as_file().sync_all();
        synced
            .and_then(|()| self.file.persist(self.path).map_err(|error| error.error))
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(self.path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.ndjson");
        std::fs::write(&path, "old").unwrap();
        let files = || folder.path().read_dir().unwrap().count();
        let mut file = OutputFile::create(&path).unwrap();
        file.write(b"half").unwrap();
        assert_eq!(
            (std::fs::read(&path).unwrap(), files()),
            (b"old".to_vec(), 2)
        );
        drop(file);
        assert_eq!(
            (std::fs::read(&path).unwrap(), files()),
            (b"old".to_vec(), 1)
        );
        let mut file = OutputFile::create(&path).unwrap();
        file.write(b"new").unwrap();
        file.finish().unwrap();
        assert_eq!(
            (std::fs::read(&path).unwrap(), files()),
            (b"new".to_vec(), 1)
        );
    }

    #[test]
    fn sizes_are_megabytes() {
        assert_eq!(megabytes(12_345_678), "12.3 MB");
        assert_eq!(megabytes(0), "0.0 MB");
    }
}
