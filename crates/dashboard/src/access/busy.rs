//! The page for a request that got no slot for its report.

use super::PageContext;
use crate::response::try_again_after;
use crate::shell::{Section, Shell};
use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use tributary_store::report_slots::SlotRejection;

#[derive(Template)]
#[template(path = "busy.html")]
struct BusyPage {
    shell: Shell,
    seconds: u64,
}

/// Renders the page, which loads the requested one again after a moment.
pub(super) fn page<S>(context: &PageContext<S>, rejection: SlotRejection) -> Response {
    let seconds = rejection.kind.retry_seconds();
    let page = BusyPage {
        shell: context.shell(Section::Unlisted),
        seconds,
    };
    let mut response = context.page_with(StatusCode::TOO_MANY_REQUESTS, &page);
    let retry = HeaderValue::from(seconds);
    response.headers_mut().insert(header::RETRY_AFTER, retry);
    try_again_after(&mut response, seconds);
    response
}

#[cfg(test)]
mod tests {
    use crate::testing::TestDashboard;
    use axum::http::{StatusCode, header};
    use tributary_domain::access::admission::AdmissionLimits;
    use tributary_domain::access::person::Role;
    use tributary_store::report_slots::ReportSlots;

    /// No request gets a slot, and none waits.
    const NONE: AdmissionLimits = AdmissionLimits {
        total: 0,
        per_organization: 0,
        per_key: 0,
        waiting: 0,
        waiting_per_organization: 0,
    };

    #[tokio::test]
    async fn a_page_without_a_slot_keeps_the_menu_and_tries_again() {
        let dashboard = TestDashboard::with_slots(ReportSlots::new(NONE, NONE, NONE)).await;
        let owner = dashboard.sign_in_as(Role::Owner).await;
        let app = owner.create_app().await;
        for path in ["", "/explore", "/start", "/deliveries"] {
            let answer = owner.get(&format!("/apps/{app}{path}")).await;
            assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS, "{path}");
            for name in [header::RETRY_AFTER, header::REFRESH] {
                assert_eq!(answer.headers[&name], "2", "{path}");
            }
            let menu = format!("href=\"/apps/{app}/deliveries\"");
            assert!(answer.text.contains(&menu), "{path}: {}", answer.text);
        }
    }

    #[tokio::test]
    async fn log_pages_do_not_need_a_slot_for_reports() {
        let unlimited = AdmissionLimits::UNLIMITED;
        let slots = ReportSlots::new(NONE, unlimited, unlimited);
        let dashboard = TestDashboard::with_slots(slots).await;
        let owner = dashboard.sign_in_as(Role::Owner).await;
        let app = owner.create_app().await;
        for path in [
            format!("/apps/{app}/start"),
            format!("/apps/{app}/deliveries"),
            format!("/apps/{app}/conversion-values/postbacks"),
            "/audit-log".to_owned(),
        ] {
            assert_eq!(owner.get(&path).await.status, StatusCode::OK, "{path}");
        }
        let report = owner.get(&format!("/apps/{app}/explore")).await;
        assert_eq!(report.status, StatusCode::TOO_MANY_REQUESTS);
    }
}
