//! Appends audit entries to a file.

use super::AuditSink;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use tributary_domain::audit::stream::AuditStream;

/// Only the server's user reads the file: entries contain addresses of people.
const MODE: u32 = 0o600;

/// A file that is opened for every part, so that it can be renamed at any time.
#[derive(Debug, Clone)]
pub(in crate::workers) struct FileSink {
    path: PathBuf,
}

impl FileSink {
    pub(in crate::workers) const fn new(path: PathBuf) -> Self {
        Self { path }
    }
}

impl AuditSink for FileSink {
    const STREAM: AuditStream = AuditStream::File;
    const NAME: &'static str = "audit_file";

    fn write(&self, lines: &[String]) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .mode(MODE)
            .open(&self.path)?;
        let mut text = String::new();
        if file.seek(SeekFrom::End(0))? > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            // A full disk or a power cut left a part of a line.
            if last != [b'\n'] {
                text.push('\n');
            }
        }
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        file.write_all(text.as_bytes())?;
        file.sync_data()
    }
}
