//! `/apps/{app}/settings/what-if` — tries other attribution rules on recorded installs. A GET
//! request, because it changes nothing: the URL contains the rules and can be shared.

mod result;
mod stream;

use crate::access::ReportContext;
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::pages::settings::with_rules;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use stream::stream_result;
use tributary_domain::access::resource::WhatIfRead;
use tributary_domain::app::AttributionRules;
use tributary_domain::click::address::AddressHasher;
use tributary_domain::install::what_if::{WHAT_IF_DAYS, what_if_days};
use tributary_fields::Form;
use tributary_fields::app::read_tried_rules;
use tributary_store::WhatIfRequest;

#[derive(Template)]
#[template(path = "what_if.html")]
struct WhatIfPage {
    shell: Shell,
    form: FormState,
    /// The app's rules.
    rules: AttributionRules,
    /// Whether the result follows.
    is_running: bool,
}

impl WhatIfPage {
    const fn days(&self) -> i32 {
        WHAT_IF_DAYS
    }

    fn click_window_hint(&self) -> String {
        let now = hours_text(self.rules.click_window_hours);
        format!("1 to 720 hours (30 days). The app uses {now}.")
    }

    fn probabilistic_window_hint(&self) -> String {
        let now = hours_text(self.rules.probabilistic_window_hours);
        format!("1 to 24 hours. The app uses {now}.")
    }
}

/// Formats a number of hours, and in days if it has no rest: `168 hours (7 days)`.
fn hours_text(hours: i64) -> String {
    let days = text::hours_or_days(hours);
    if days.ends_with("days") {
        format!("{hours} hours ({days})")
    } else {
        days
    }
}

/// Shows the form with the app's rules, or the result of the submitted rules.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<WhatIfRead>,
) -> Result<Response, Failure> {
    let app = handles.store.app(&context.authorized, context.app()?.id);
    let app = app.await?;
    let mut page = WhatIfPage {
        shell: context.shell(Section::Settings),
        form: with_rules(FormState::default(), &app.attribution),
        rules: app.attribution.clone(),
        is_running: false,
    };
    if context.query.get("try").is_none() {
        return Ok(context.page(&page));
    }
    let form = Form::parse(context.query.with(&[]).as_bytes()).ok_or(Failure::TooLarge)?;
    let (change, faults) = form.read(read_tried_rules);
    page.is_running = faults.is_empty();
    page.form = FormState::from_form(&form).with_faults(faults);
    if !page.is_running {
        return Ok(context.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    let rules = app.attribution.changed(&change);
    page.form = with_rules(page.form, &rules);
    let request = WhatIfRequest {
        app: app.id,
        rules,
        range: what_if_days(handles.runtime.now(), app.timezone),
        hasher: AddressHasher::new(&handles.keyring),
    };
    Ok(stream_result(handles, context, &page, request).await)
}

#[cfg(test)]
mod tests {
    use crate::testing::TestDashboard;
    use axum::http::StatusCode;
    use tributary_domain::access::person::Role;

    #[tokio::test]
    async fn faulty_rules_are_shown_beside_their_fields() {
        let dashboard = TestDashboard::start().await;
        let owner = dashboard.sign_in_as(Role::Analyst).await;
        let admin = dashboard.sign_in_as(Role::Admin).await;
        let app = admin.create_app().await;
        let path = format!("/apps/{app}/settings/what-if");
        let query = "try=on&attribution.clickWindowHours=0&attribution.probabilistic.windowHours=99\
                     &attribution.fraud=odd";
        let page = owner.get(&format!("{path}?{query}")).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
        for field in ["clickWindowHours", "probabilistic.windowHours", "fraud"] {
            let id = format!("attribution.{field}-fault");
            assert!(page.text.contains(&id), "{id}: {}", page.text);
        }
    }

    #[tokio::test]
    async fn inputs_and_figures_have_units() {
        let dashboard = TestDashboard::start().await;
        let admin = dashboard.sign_in_as(Role::Admin).await;
        let app = admin.create_app().await;
        let path = format!("/apps/{app}/settings/what-if");
        let change = "name=Runner&timezone=Europe/Berlin&attribution.clickWindowHours=36&\
                      attribution.probabilistic.windowHours=1&attribution.fraud=flag&\
                      sdk.enabled=on&sdk.revenue=auto&sdk.identity=open&sdk.attestation=off&\
                      qualifiedTrial.delayHours=24";
        let page = admin.get(&path).await;
        assert!(page.text.contains("The app uses 168 hours (7 days)."));
        let saved = admin.post(&format!("/apps/{app}/settings"), change).await;
        assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
        let query = "try=on&attribution.clickWindowHours=720&attribution.fraud=flag";
        let page = admin.get(&format!("{path}?{query}")).await;
        for part in [
            "1 to 720 hours (30 days). The app uses 36 hours.",
            "1 to 24 hours. The app uses 1 hour.",
            "(Europe/Berlin) replayed with these rules: click window 30 days",
            "Net revenue<br><span class=\"unit\">US dollars, as on the overview</span>",
            "CPI<br><span class=\"unit\">US dollars per install</span>",
        ] {
            assert!(page.text.contains(part), "{part}: {}", page.text);
        }
    }

    #[tokio::test]
    async fn the_page_belongs_to_the_settings() {
        let dashboard = TestDashboard::start().await;
        let admin = dashboard.sign_in_as(Role::Admin).await;
        let app = admin.create_app().await;
        let settings = format!("/apps/{app}/settings");
        let query = "?environment=test";
        let page = admin.get(&format!("{settings}/what-if{query}")).await;
        let entry = format!("<a href=\"{settings}{query}\" aria-current=\"page\" data-key=\"s\">");
        assert!(page.text.contains(&entry), "the menu shows the section");
        let back = format!("<a href=\"{settings}{query}#attribution\">attribution settings</a>");
        assert!(page.text.contains(&back), "{}", page.text);
        let here = format!("<a href=\"{settings}/what-if{query}\"");
        assert!(
            page.text
                .contains(&format!("{here} aria-current=\"page\">What if</a>"))
        );
        for other in ["", "/mapping"] {
            let page = admin.get(&format!("{settings}{other}{query}")).await;
            assert!(
                page.text.contains(&format!("{here}>What if</a>")),
                "{other}"
            );
        }
        let elsewhere = admin.get(&format!("/apps/{app}/links")).await.text;
        let jump = format!("<a hidden href=\"{settings}/what-if\" data-jump=\"What if");
        assert!(elsewhere.contains(&jump), "the command palette leads here");
    }

    #[tokio::test]
    async fn the_result_follows_the_form_and_nothing_is_saved() {
        let dashboard = TestDashboard::start().await;
        let admin = dashboard.sign_in_as(Role::Admin).await;
        let app = admin.create_app().await;
        let path = format!("/apps/{app}/settings/what-if");
        let form = admin.get(&path).await;
        assert!(form.text.contains("value=\"168\"") && !form.text.contains("what-if-result"));
        let query = "try=on&attribution.clickWindowHours=24&attribution.fraud=flag";
        let page = admin.get(&format!("{path}?{query}")).await;
        assert_eq!(page.status, StatusCode::OK);
        assert!(page.text.contains("what-if-result"), "{}", page.text);
        assert!(page.text.contains("Nothing was saved"));
        assert!(page.text.trim_end().ends_with("</html>"));
        let settings = admin.get(&format!("/apps/{app}/settings")).await;
        assert!(settings.text.contains("value=\"168\""));
    }
}
