//! Reads and parses the lines of export files.

use anyhow::Context as _;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;
use tributary_api::{EXPORT_LINE_BYTES_MAX, read_exported_event};
use tributary_domain::event::import::ImportedEvent;
use tributary_domain::vocabulary::fault::Faults;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::IMPORT_BATCH_EVENTS_MAX;

/// Path argument for standard input.
const STANDARD_INPUT: &str = "-";
/// First bytes of a gzip file. No line of an export begins with them.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Bytes read from a file at a time.
const READ_BYTES: usize = 256 * 1_024;

/// An opened file.
pub(super) struct LineInput {
    position: usize,
    name: String,
    bytes: Box<dyn Read + Send>,
}

/// Opens all files, so that a wrong name is found before anything is stored.
pub(super) fn open(files: &[PathBuf]) -> anyhow::Result<Vec<LineInput>> {
    let open = |(position, file): (usize, &PathBuf)| {
        if file.as_path() == Path::new(STANDARD_INPUT) {
            return Ok(LineInput {
                position,
                name: "standard input".to_owned(),
                bytes: Box::new(io::stdin()),
            });
        }
        let name = file.display().to_string();
        let opened = File::open(file).with_context(|| format!("cannot open {name}"))?;
        Ok(LineInput {
            position,
            name,
            bytes: Box::new(opened),
        })
    };
    files.iter().enumerate().map(open).collect()
}

/// The content of a file.
struct Content {
    bytes: Box<dyn Read + Send>,
    is_compressed: bool,
}

impl Content {
    /// Decompresses the bytes if they are compressed with gzip. Only the bytes decide, so that
    /// standard input and files with any name can be compressed.
    fn of(mut bytes: Box<dyn Read + Send>) -> io::Result<Self> {
        let mut head = Vec::new();
        let head_bytes = GZIP_MAGIC.len() as u64;
        bytes.by_ref().take(head_bytes).read_to_end(&mut head)?;
        let is_compressed = head == GZIP_MAGIC;
        let whole = Cursor::new(head).chain(bytes);
        Ok(Self {
            bytes: if is_compressed {
                Box::new(MultiGzDecoder::new(whole))
            } else {
                Box::new(whole)
            },
            is_compressed,
        })
    }
}

/// Where a line is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LinePlace {
    /// Position of the file among the arguments.
    pub(super) position: usize,
    /// Name of the file.
    pub(super) file: Arc<str>,
    /// Number of the line, counted from one.
    pub(super) line: u64,
}

/// A line that cannot be read.
#[derive(Debug)]
pub(super) struct RejectedLine {
    pub(super) place: LinePlace,
    pub(super) reason: String,
}

/// Parsed lines.
#[derive(Debug, Default)]
pub(super) struct LineBatch {
    /// Events of valid lines.
    pub(super) events: Vec<ImportedEvent>,
    /// Places of the events.
    pub(super) places: Vec<LinePlace>,
    /// Invalid lines.
    pub(super) rejected: Vec<RejectedLine>,
}

/// Lines for one of the tasks that store batches.
struct Lane {
    sender: mpsc::Sender<LineBatch>,
    batch: LineBatch,
}

/// Reads lines and sends them in batches. All events of a device go to the same lane.
pub(super) struct LineReader {
    app: AppId,
    lanes: Vec<Lane>,
    hashes: RandomState,
}

impl LineReader {
    /// Creates a reader with one lane for each sender.
    pub(super) fn new(app: AppId, senders: Vec<mpsc::Sender<LineBatch>>) -> Self {
        let lane = |sender| Lane {
            sender,
            batch: LineBatch::default(),
        };
        Self {
            app,
            lanes: senders.into_iter().map(lane).collect(),
            hashes: RandomState::new(),
        }
    }

    /// Reads a file. Its lines are sent when a batch is full.
    pub(super) fn read(&mut self, input: LineInput) -> anyhow::Result<()> {
        let LineInput {
            position,
            name,
            bytes,
        } = input;
        let content = Content::of(bytes).with_context(|| format!("cannot read {name}"))?;
        let problem = if content.is_compressed {
            "cannot decompress; copy or export it again:"
        } else {
            "cannot read"
        };
        let mut input = BufReader::with_capacity(READ_BYTES, content.bytes);
        let file: Arc<str> = name.as_str().into();
        let mut line_bytes = Vec::new();
        let mut line = 0;
        loop {
            line_bytes.clear();
            let is_complete = read_limited(&mut input, &mut line_bytes)
                .with_context(|| format!("{problem} {name}"))?;
            if line_bytes.is_empty() || self.has_failed_lane() {
                return Ok(());
            }
            line += 1;
            let place = LinePlace {
                position,
                file: file.clone(),
                line,
            };
            self.add(place, &line_bytes, is_complete);
        }
    }

    fn add(&mut self, place: LinePlace, bytes: &[u8], is_complete: bool) {
        let parsed = if is_complete {
            parse(self.app, bytes)
        } else {
            let bytes_max = EXPORT_LINE_BYTES_MAX;
            Err(format!("line: Must have at most {bytes_max} bytes."))
        };
        let hash = match &parsed {
            Ok(Some(imported)) => self.hashes.hash_one(&imported.event.device),
            Ok(None) | Err(_) => 0,
        };
        let lanes = self.lanes.len() as u64;
        let index = usize::try_from(hash.checked_rem(lanes).unwrap_or(0)).unwrap_or(0);
        let Some(lane) = self.lanes.get_mut(index) else {
            return;
        };
        let batch = &mut lane.batch;
        match parsed {
            Ok(None) => return,
            Ok(Some(event)) => {
                batch.events.push(event);
                batch.places.push(place);
            }
            Err(reason) => batch.rejected.push(RejectedLine { place, reason }),
        }
        if batch.events.len() + batch.rejected.len() >= IMPORT_BATCH_EVENTS_MAX {
            lane.send();
        }
    }

    /// Returns whether a lane has stopped after an error. The rest of the lines is then dropped.
    fn has_failed_lane(&self) -> bool {
        self.lanes.iter().any(|lane| lane.sender.is_closed())
    }

    /// Sends the last lines.
    pub(super) fn finish(mut self) {
        for lane in &mut self.lanes {
            lane.send();
        }
    }
}

impl Lane {
    fn send(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        // A receiver that has stopped after an error reports it.
        let _stopped = self.sender.blocking_send(batch);
    }
}

/// Reads a line, up to its maximum length. Returns false if the line is longer; the rest is skipped.
fn read_limited(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    let bytes_max = EXPORT_LINE_BYTES_MAX as u64 + 1;
    input.by_ref().take(bytes_max).read_until(b'\n', line)?;
    if line.ends_with(b"\n") || line.len() <= EXPORT_LINE_BYTES_MAX {
        return Ok(true);
    }
    input.skip_until(b'\n')?;
    Ok(false)
}

/// Parses a line. Empty lines are skipped.
fn parse(app: AppId, bytes: &[u8]) -> Result<Option<ImportedEvent>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "line: Must be UTF-8.".to_owned())?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let parsed = read_exported_event(app, text);
    parsed.map(Some).map_err(|faults| describe(&faults))
}

fn describe(faults: &Faults) -> String {
    let faults = faults.iter();
    let faults: Vec<String> = faults
        .map(|fault| format!("{}: {}", fault.field, fault.message))
        .collect();
    faults.join(" ")
}
