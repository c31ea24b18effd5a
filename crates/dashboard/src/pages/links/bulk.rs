//! `/apps/{app}/links/bulk` — creates many links from CSV, with a preview of every row.

use crate::access::{FormSubmission, PageContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::AppsWrite;
use tributary_domain::link::{BULK_LINKS_MAX, Link, LinkDraft, new_links, split_item_field};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::fault::{Faults, Problem};
use tributary_fields::link_csv::{LINK_COLUMNS, LinkCsvRow, read_link_csv};
use tributary_store::StoreError;

/// Name of the field with the CSV text.
const TEXT: &str = "links";

#[derive(Template)]
#[template(path = "links_bulk.html")]
struct BulkPage {
    shell: Shell,
    form: FormState,
    rows: Vec<PreviewRow>,
}

/// A row as it would be created.
struct PreviewRow {
    line: usize,
    name: String,
    slug: String,
    kind: String,
    network: String,
    destination: String,
    /// Column and message of each fault.
    faults: Vec<(String, String)>,
}

impl PreviewRow {
    fn of(row: &LinkCsvRow) -> Self {
        let value = |column: &str| row.values.field(column);
        let faults = row.faults.iter();
        Self {
            line: row.line,
            name: value("name"),
            slug: value("slug"),
            kind: value("type"),
            network: value("network"),
            destination: value("destinationUrl"),
            faults: faults
                .map(|fault| (fault.field.clone(), fault.message.clone()))
                .collect(),
        }
    }
}

impl BulkPage {
    fn new(context: &PageContext<AppsWrite>, form: FormState) -> Self {
        Self {
            shell: context.shell(Section::Links),
            form,
            rows: Vec::new(),
        }
    }

    fn columns(&self) -> String {
        LINK_COLUMNS.join(", ")
    }

    const fn rows_max(&self) -> usize {
        BULK_LINKS_MAX
    }

    fn faulty_rows(&self) -> usize {
        let faulty = self.rows.iter().filter(|row| !row.faults.is_empty());
        faulty.count()
    }

    fn can_create(&self) -> bool {
        !self.rows.is_empty() && self.faulty_rows() == 0
    }

    /// Adds the faults to their rows. Returns those that belong to no row.
    fn add_faults(&mut self, faults: &Faults) -> Faults {
        let mut others = Faults::new();
        for fault in faults {
            let place = split_item_field(&fault.field);
            match place.and_then(|(index, field)| Some((self.rows.get_mut(index)?, field))) {
                Some((row, field)) => row.faults.push((field.to_owned(), fault.message.clone())),
                None => others.add(
                    fault.field.clone(),
                    Problem::new(fault.code, fault.message.clone()),
                ),
            }
        }
        others
    }
}

/// Shows the form.
pub(crate) async fn show(context: PageContext<AppsWrite>) -> Result<Response, Failure> {
    context.app()?;
    Ok(context.page(&BulkPage::new(&context, FormState::default())))
}

/// Previews the rows, or creates the links.
pub(crate) async fn submit(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let app = submission.app()?.id;
    let form = FormState::from_form(&submission.form);
    let rows = match read_link_csv(&submission.form.field(TEXT)) {
        Ok(rows) => rows,
        Err(problem) => {
            let mut faults = Faults::new();
            faults.add(TEXT, problem);
            let page = BulkPage::new(&submission.context, form.with_faults(faults));
            return Ok(submission.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page));
        }
    };
    let mut page = BulkPage::new(&submission.context, form);
    page.rows = rows.iter().map(PreviewRow::of).collect();
    let drafts: Option<Vec<LinkDraft>> = rows.into_iter().map(|row| row.draft).collect();
    let random = || handles.runtime.random_bytes();
    let links = drafts.map(|drafts| new_links(app, handles.runtime.now(), drafts, random));
    let is_preview = submission.form.field("action") != "create";
    let others = match links {
        None => Faults::new(),
        Some(Err(faults)) => page.add_faults(&faults),
        Some(Ok(_)) if is_preview => return Ok(submission.page(&page)),
        Some(Ok(links)) => match store(&handles, &submission, links).await? {
            Ok(()) => return submission.redirect("links", "created"),
            Err(faults) => page.add_faults(&faults),
        },
    };
    page.form = page.form.with_faults(others);
    Ok(submission.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

async fn store(
    handles: &DashboardHandles,
    submission: &FormSubmission<AppsWrite>,
    links: Vec<Link>,
) -> Result<Result<(), Faults>, Failure> {
    let app = submission.app()?.id;
    let links = links
        .into_iter()
        .map(|link| (link, submission.origin(handles)));
    let stored = handles
        .store
        .create_links(&submission.authorized, app, links.collect());
    match stored.await {
        Ok(_) => Ok(Ok(())),
        Err(StoreError::Refused(Refusal::Invalid(faults))) => Ok(Err(faults)),
        Err(error) => Err(error.into()),
    }
}
