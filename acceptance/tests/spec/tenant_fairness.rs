//! Fairness between organizations: one organization's reports and exports do not starve the others.

use super::clicks::COMPUTER;
use crate::routes::{Needs, ROUTES, RouteFixture};
use reqwest::Method;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tributary_domain::access::admission::{AdmissionLimits, SlotHolder};
use tributary_domain::access::{Actor, Environment, Permission};
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_store::report_slots::{ReportSlots, SlotKind};
use tributary_testkit::{TestServer, TestServerSettings, on_both_engines};

/// Routes that read many rows, and therefore need a slot.
const REPORTS: &[&str] = &[
    "/api/v1/apps/{appId}/billing",
    "/api/v1/apps/{appId}/integrations",
    "/api/v1/apps/{appId}/integrations/{network}",
    "/api/v1/apps/{appId}/deliveries",
    "/api/v1/apps/{appId}/skan/postbacks",
    "/api/v1/apps/{appId}/skan/stats",
    "/api/v1/apps/{appId}/stats",
    "/api/v1/apps/{appId}/overview",
    "/api/v1/apps/{appId}/cohorts",
    "/api/v1/apps/{appId}/costs",
    "/api/v1/apps/{appId}/events",
    "/api/v1/apps/{appId}/held",
    "/api/v1/apps/{appId}/export",
    "/api/v1/apps/{appId}/devices/{deviceId}",
    "/api/v1/apps/{appId}/devices/{deviceId}/data",
    "/api/v1/apps/{appId}/users/{userId}/data",
    "/api/v1/audit-log",
    "/api/v1/audit-log/export",
    "/api/v1/portfolio",
    "/api/v1/apps/{appId}/undelivered",
];

/// One slot and no queue.
const ONE_SLOT: AdmissionLimits = AdmissionLimits {
    total: 1,
    per_organization: 1,
    per_key: 1,
    waiting: 0,
    waiting_per_organization: 0,
};
/// The server's default limits.
const DEFAULT_LIMITS: AdmissionLimits = AdmissionLimits {
    total: 4,
    per_organization: 2,
    per_key: 1,
    waiting: 64,
    waiting_per_organization: 16,
};
/// Concurrent reports of the noisy tenant, as in the attack that was reported.
const NOISY_REPORTS: usize = 48;
const QUIET_TENANTS: usize = 9;
/// Taps and reports of each quiet tenant.
const ROUNDS: usize = 10;

/// An organization with an app and a link.
struct Tenant {
    key: String,
    analytics_key: String,
    app: String,
    slug: String,
}

impl Tenant {
    async fn new(server: &TestServer, slug: &str) -> Self {
        let organization = server.organization(slug).await;
        let key = server
            .key(organization, Permission::Full, Environment::Live)
            .await;
        let analytics_key = server
            .key(organization, Permission::Analytics, Environment::Live)
            .await;
        let app = server.app(&key).await;
        let link = json!({
            "name": "Spring", "slug": slug, "type": "web_funnel",
            "destinationUrl": "https://shop.example.com/",
        });
        server
            .post(&format!("{app}/links"), &key, link)
            .await
            .expect(201);
        Self {
            key,
            analytics_key,
            app,
            slug: slug.to_owned(),
        }
    }

    /// Requests a report with the tenant's analytics key, and returns the status.
    async fn report(&self, server: &TestServer) -> u16 {
        let path = format!("{}/stats?groupBy=network,link,campaign", self.app);
        let answer = server.get(&path, &self.analytics_key).await;
        let status = answer.status.as_u16();
        if status == 429 {
            assert_eq!(answer.code(), "rate_limited");
            let wait = answer.header("retry-after").unwrap();
            assert!((1..=60).contains(&wait.parse::<u32>().unwrap()), "{wait}");
        }
        status
    }

    /// Taps the link and expects a click id.
    async fn tap(&self, server: &TestServer) {
        let request = server.request(Method::GET, &format!("/w/{}", self.slug));
        let answer = server
            .send(request.header("user-agent", COMPUTER))
            .await
            .expect(302);
        let location = answer.header("location").unwrap();
        assert!(
            location.contains("clk_"),
            "the tap is not recorded: {location}"
        );
    }
}

on_both_engines! {
    async fn every_report_needs_a_slot(engine: Engine) {
        let slots = ReportSlots::new(ONE_SLOT, ONE_SLOT, ONE_SLOT);
        let settings = TestServerSettings { report_slots: slots.clone(), ..TestServerSettings::default() };
        let server = TestServer::start_with(engine, settings).await;
        let key = server.full_key().await;
        let fixture = RouteFixture::new(&server, &key).await;
        let other = SlotHolder {
            organization: OrganizationId::from_bytes([9; 16]),
            actor: Actor::Operator,
        };
        let report = slots.admit(SlotKind::Report, other.clone()).await.unwrap();
        let export = slots.admit(SlotKind::Export, other).await.unwrap();
        let mut rejected = 0;
        let needs_key = |needs: Needs| !matches!(needs, Needs::Nothing | Needs::SdkKey);
        for route in ROUTES.iter().filter(|route| route.method == "GET" && needs_key(route.needs)) {
            let answer = server.get(&route.path_for(&fixture), &key).await;
            let is_rejected = answer.status.as_u16() == 429;
            assert_eq!(is_rejected, REPORTS.contains(&route.path), "{route:?}: {answer:?}");
            if is_rejected {
                assert_eq!(answer.code(), "rate_limited");
                assert!(answer.header("retry-after").is_some(), "{answer:?}");
                rejected += 1;
            }
        }
        assert_eq!(rejected, REPORTS.len());
        drop((report, export));
        for path in REPORTS.iter().filter(|path| !path.contains("{deviceId}")) {
            let route = ROUTES.iter().find(|route| route.path == *path).unwrap();
            server.get(&route.path_for(&fixture), &key).await.expect(200);
        }
    }

    async fn a_noisy_tenant_does_not_starve_quiet_ones(engine: Engine) {
        let settings = TestServerSettings {
            report_slots: ReportSlots::new(DEFAULT_LIMITS, DEFAULT_LIMITS, DEFAULT_LIMITS),
            ..TestServerSettings::default()
        };
        let server = Arc::new(TestServer::start_with(engine, settings).await);
        let noisy = Arc::new(Tenant::new(&server, "noisy").await);
        let mut quiet = Vec::new();
        for number in 0..QUIET_TENANTS {
            quiet.push(Tenant::new(&server, &format!("quiet-{number}")).await);
        }
        let (is_over, rejected) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let noise: Vec<_> = (0..NOISY_REPORTS).map(|_| {
            let (server, noisy) = (server.clone(), noisy.clone());
            let (is_over, rejected) = (is_over.clone(), rejected.clone());
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    match noisy.report(&server).await {
                        200 => {}
                        429 => {
                            rejected.fetch_add(1, Ordering::Relaxed);
                        }
                        other => panic!("status {other}"),
                    }
                }
            })
        }).collect();
        let visits = quiet.into_iter().map(|tenant| {
            let server = server.clone();
            tokio::spawn(async move {
                for _ in 0..ROUNDS {
                    tenant.tap(&server).await;
                    assert_eq!(tenant.report(&server).await, 200, "a quiet tenant's report");
                    server.get(&tenant.app, &tenant.key).await.expect(200);
                }
            })
        });
        for visit in visits.collect::<Vec<_>>() {
            visit.await.unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        for one in noise {
            one.await.unwrap();
        }
        let clicks = server.database.ids("clicks", "click_id").await.len();
        assert_eq!(clicks, QUIET_TENANTS * ROUNDS, "every tap is recorded");
        assert!(rejected.load(Ordering::Relaxed) > 0, "the noisy tenant gets 429");
    }
}
