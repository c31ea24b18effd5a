//! `POST /apps/{app}/links/preview` — an unsaved link's URL and redirects.

use crate::access::FormSubmission;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::AppsWrite;
use tributary_domain::app::App;
use tributary_domain::click::ClickParameters;
use tributary_domain::click::destination::{Destination, RedirectRequest};
use tributary_domain::device::Platform;
use tributary_domain::link::qr::{QrCode, QrIcon};
use tributary_domain::link::{Link, LinkCreation, Slug};
use tributary_domain::vocabulary::id::LinkId;
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_fields::link::read_change_form;

/// Placeholder for the click id, which is different for each click.
const CLICK: &str = "clk_…";
/// The placeholder as it appears in a URL.
const CLICK_ENCODED: &str = "clk_%E2%80%A6";
/// Slug of a link that has none yet.
const UNNAMED: &str = "your-slug";
/// Size of the QR code in pixels.
const QR_PIXELS: i32 = 180;

/// A link's preview.
#[derive(Template)]
#[template(path = "link_preview.html")]
pub(super) struct Preview {
    pub(super) url: String,
    landing: Option<String>,
    parameters: Option<&'static str>,
    ways: Vec<(&'static str, String)>,
    qr: Option<QrCode>,
    faults: Vec<String>,
}

impl Preview {
    pub(super) fn of(link: &Link, app: &App, base_url: &str, faults: Vec<String>) -> Self {
        let base = app.link_base(base_url);
        let url = link.url(&base);
        let is_named = link.slug.as_str() != UNNAMED;
        let parameters = ClickParameters::default();
        let way = |platform: Platform| {
            let tap = RedirectRequest {
                link,
                app,
                platform,
                parameters: &parameters,
                click: Some(CLICK),
            };
            match tap.destination() {
                // The placeholder is not encoded, so that it is read as one.
                Destination::Redirect(url) => url.replace(CLICK_ENCODED, CLICK),
                Destination::Page => "landing page with store buttons".to_owned(),
            }
        };
        Self {
            qr: QrCode::for_print(&url, QrIcon::Shown).filter(|_| is_named),
            landing: link.landing_url(&base).filter(|_| is_named),
            parameters: link.url_parameters(),
            ways: vec![
                ("iPhone, iPad", way(Platform::Ios)),
                ("Android", way(Platform::Android)),
                ("Other devices", way(Platform::Web)),
            ],
            url,
            faults,
        }
    }

    fn qr_pixels(&self) -> i32 {
        QR_PIXELS
    }
}

/// Returns an unsaved link with placeholder values.
pub(super) fn draft(app: &App) -> Link {
    let birth = LinkCreation {
        id: LinkId::from_bytes([0; 16]),
        app: app.id,
        at: Timestamp::from_millis(0),
    };
    let name = Name::parse("New link").expect("valid name");
    Link::new(&birth, name, Slug::parse(UNNAMED).expect("a slug"))
}

/// Returns the preview as a fragment.
pub(crate) async fn preview(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let id = submission.app()?.id;
    let app = handles
        .store
        .app(&submission.authorized.read_access(), id)
        .await?;
    let (change, faults) = submission.form.read(read_change_form);
    let mut link = draft(&app);
    link.apply(change);
    let mut messages: Vec<String> = faults
        .iter()
        .filter(|fault| fault.field != "name")
        .map(|fault| format!("{}: {}", fault.field, fault.message))
        .collect();
    if let Err(faults) = link.check() {
        messages.extend(faults.iter().map(|fault| fault.message.clone()));
    }
    Ok(submission.page(&Preview::of(&link, &app, &handles.base_url, messages)))
}
