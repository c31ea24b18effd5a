//! `tributary audit …`: verifies and exports the audit log. The server may be running.

mod report;

use super::admin::find_organization;
use crate::cli::{AuditCommand, ExportAudit, VerifyAudit};
use crate::config::Config;
use crate::{system, wiring};
use anyhow::Context as _;
use report::Verified;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::ExitCode;
use tributary_domain::access::Actor;
use tributary_domain::audit::Action;
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_store::{ActionNote, ChainLines, ChainReport, Store, verify_audit_chain};

/// Organizations read at a time.
const ORGANIZATIONS_AT_ONCE: u32 = 500;
/// Entries read at a time.
const ENTRIES_AT_ONCE: u32 = 500;
/// Longest line of an exported file. An entry contains at most the values of one request before and
/// after a change, with escapes; a longer line is none of ours and must not fill the memory.
const LINE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Runs an `audit` command. The exit code says whether everything verifies.
pub async fn run(config: &Config, command: AuditCommand) -> anyhow::Result<ExitCode> {
    match command {
        AuditCommand::Verify(options) => match &options.file {
            Some(path) => verify_file(path, options.json),
            None => with_store(config, async |store| verify(store, &options).await).await,
        },
        AuditCommand::Export(options) => {
            with_store(config, async |store| {
                export(store, &system::runtime(), &options).await?;
                Ok(ExitCode::SUCCESS)
            })
            .await
        }
    }
}

async fn with_store(
    config: &Config,
    work: impl AsyncFnOnce(&dyn Store) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    wiring::require_database(config)?;
    let store = wiring::open_existing_store(config).await?;
    let done = work(&*store).await;
    store.close().await;
    done
}

/// Verifies the chains of one or all organizations.
async fn verify(store: &dyn Store, options: &VerifyAudit) -> anyhow::Result<ExitCode> {
    let mut found = Vec::new();
    for organization in organizations(store, options.organization.as_deref()).await? {
        if let Some(report) = verify_audit_chain(store, organization).await? {
            found.push(of_chain(organization, &report));
        }
    }
    Ok(report::print(&found, options.json))
}

fn of_chain(organization: OrganizationId, report: &ChainReport) -> Verified {
    let (chain, end) = (&report.chain, report.end);
    Verified {
        organization: organization.to_string(),
        verified: report.verified,
        end,
        removed_until: chain.anchor.end.sequence,
        removed_at: chain.anchor.at,
        is_waiting: chain.is_waiting,
        broken: report.broken,
    }
}

async fn organizations(
    store: &dyn Store,
    name: Option<&str>,
) -> anyhow::Result<Vec<OrganizationId>> {
    if name.is_some() {
        return Ok(vec![find_organization(store, name).await?]);
    }
    let mut found = Vec::new();
    loop {
        let after = found.last().copied();
        let page = store.audited_organizations(after, ORGANIZATIONS_AT_ONCE);
        let page = page.await?;
        if page.is_empty() {
            return Ok(found);
        }
        found.extend(page);
    }
}

/// Verifies an exported file, line by line, without a database.
fn verify_file(path: &Path, is_json: bool) -> anyhow::Result<ExitCode> {
    let mut input: Box<dyn io::BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        Box::new(BufReader::new(file))
    };
    let mut files = report::FileVerifier::default();
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let read = io::Read::take(&mut input, LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if read.context("cannot read the file")? == 0 {
            break;
        }
        let text = str::from_utf8(&line).ok().map(str::trim_end);
        let checked = text.and_then(|text| files.check(text));
        checked.with_context(|| {
            format!("line {number} is not an entry of an exported audit log; export it again")
        })?;
    }
    Ok(report::print(&files.finish(), is_json))
}

/// Writes an organization's entries to standard output. The export is an entry, too: the last one.
async fn export(store: &dyn Store, runtime: &Runtime, options: &ExportAudit) -> anyhow::Result<()> {
    let organization = find_organization(store, options.organization.as_deref()).await?;
    let origin = runtime.origin(Actor::Operator, None, None);
    let note = ActionNote {
        organization,
        action: Action::AuditLogExported,
        app: None,
        target: organization.to_string(),
    };
    store.note_action(note, origin).await?;
    let mut lines = ChainLines::after(organization, options.after);
    let mut output = io::stdout().lock();
    loop {
        let part = lines.next(store, ENTRIES_AT_ONCE).await?;
        let part = part.context("the organization has no audit log")?;
        for line in &part.lines {
            // A closed pipe (`| head`) is not an error.
            if writeln!(output, "{line}").is_err() {
                return Ok(());
            }
        }
        if !part.has_more {
            return Ok(());
        }
    }
}
