//! Tenants of one server, and the traffic of the quiet ones.

use crate::load::Requests;
use crate::site::BenchSite;
use crate::template::{IdOrder, Template};
use std::net::SocketAddr;
use tributary_domain::access::{Actor, Environment, Permission};
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_domain::vocabulary::text::Name;
use tributary_server::system::runtime;
use tributary_store::{NewKey, Organization, Store};
use tributary_testkit::TestDatabase;

/// Status of a redirect.
const FOUND: u16 = 302;

/// Keys of one organization.
#[derive(Debug)]
pub(crate) struct TenantKeys {
    pub(crate) full: String,
    pub(crate) analytics: String,
}

/// Creates organizations with their keys, directly in the store.
pub(crate) async fn create_tenants(
    database: &TestDatabase,
    count: usize,
) -> anyhow::Result<Vec<TenantKeys>> {
    let store = database.open().await;
    let mut tenants = Vec::new();
    for number in 0..count {
        let at = runtime().now();
        let id = OrganizationId::new(at, runtime().random_bytes());
        let name = Name::parse(&format!("Tenant {number}"));
        let organization = Organization {
            id,
            name: name.map_err(|problem| anyhow::anyhow!("{problem:?}"))?,
            created_at: at,
        };
        let origin = runtime().origin(Actor::Operator, None, None);
        store.create_organization(organization, origin).await?;
        tenants.push(TenantKeys {
            full: create_key(&*store, id, Permission::Full).await?,
            analytics: create_key(&*store, id, Permission::Analytics).await?,
        });
    }
    store.close().await;
    Ok(tenants)
}

async fn create_key(
    store: &dyn Store,
    organization: OrganizationId,
    permission: Permission,
) -> anyhow::Result<String> {
    let (key, text) =
        runtime().new_private_key(organization, "Bench", permission, Environment::Live);
    let digest = text.digest();
    let origin = runtime().origin(Actor::Operator, None, None);
    store.create_key(NewKey { key, digest }, origin).await?;
    Ok(text.reveal().to_owned())
}

/// Requests of several tenants, in turn.
#[derive(Debug)]
pub(crate) struct QuietTenants(Vec<Template>);

impl QuietTenants {
    /// Taps on the tenants' links.
    pub(crate) fn taps(sites: &[BenchSite], server: SocketAddr) -> Self {
        let tap = |site: &BenchSite| site.tap_request(server).expecting_status(FOUND);
        Self(sites.iter().map(tap).collect())
    }

    /// Purchases on the tenants' websites.
    pub(crate) fn web_events(sites: &[BenchSite], server: SocketAddr) -> Self {
        let host = server.to_string();
        let purchase = |site: &BenchSite| site.purchase(&host, IdOrder::InOrder);
        Self(sites.iter().map(purchase).collect())
    }

    fn index(&self, number: u64) -> usize {
        usize::try_from(number % self.0.len().max(1) as u64).unwrap_or(0)
    }
}

impl Requests for QuietTenants {
    fn request_bytes(&mut self, number: u64, millis: i64) -> &[u8] {
        let index = self.index(number);
        self.0[index].request_bytes(number, millis)
    }

    fn expected_status(&self, number: u64) -> u16 {
        self.0[self.index(number)].expected_status(number)
    }
}
