//! Dashboard pages, requested with a session cookie like a browser.

use crate::child::{Server, setup_link};
use crate::pace::Latencies;
use crate::site::{BenchSite, send_request};
use anyhow::{Context as _, bail};
use std::time::Instant;
use tributary_testkit::TestDatabase;

/// Pages about one app, the portfolio, the audit log and a shared overview. Reports appear with their
/// most expensive options.
pub(crate) const PAGES: [&str; 34] = [
    "/portfolio",
    "/apps/{app}",
    "/apps/{app}?range=today&stack=network&second=netRevenue&compare=year",
    "/apps/{app}?range=90d&stack=campaign&second=installs",
    "/apps/{app}?network=network_a&country=DE&stack=campaign",
    "/apps/{app}/explore?groupBy=day&then=network",
    "/apps/{app}/explore?groupBy=campaign",
    "/apps/{app}/explore?groupBy=campaign&then=country",
    "/apps/{app}/explore?groupBy=country&then=platform&network=network_a",
    "/apps/{app}/explore?groupBy=hour&range=today&sort=roas",
    "/apps/{app}/cohorts",
    "/apps/{app}/cohorts?by=network&interval=day",
    "/apps/{app}/cohorts?show=paidRoas&by=country&network=network_a&platform=ios",
    "/apps/{app}/cohorts?show=payerShare&by=campaign&interval=day&range=90d",
    "/apps/{app}/events",
    "/apps/{app}/events?name=purchase&source=sdk",
    "/apps/{app}/events/{event}",
    "/apps/{app}/links",
    "/apps/{app}/links?search=link",
    "/apps/{app}/links/{link}",
    "/apps/{app}/devices/{device}",
    "/apps/{app}/deliveries",
    "/apps/{app}/undelivered?days=30",
    "/apps/{app}/held",
    "/apps/{app}/costs",
    "/apps/{app}/start",
    "/apps/{app}/shares",
    "/apps/{app}/notices",
    "/apps/{app}/integrations",
    "/apps/{app}/conversion-values",
    "/apps/{app}/settings",
    "/apps/{app}/settings/what-if",
    "/shared/{share}",
    "/audit-log",
];

/// A browser with a session cookie.
pub(crate) struct SignedInBrowser {
    cookie: String,
}

impl SignedInBrowser {
    /// Creates an account with a setup link.
    pub(crate) fn sign_up(server: &Server, database: &TestDatabase) -> anyhow::Result<Self> {
        let link = setup_link(database)?;
        let (_, path) = link.split_once("/setup/").context("not a setup link")?;
        let body = "email=bench%40example.com&password=a+lazy+fox+in+the+coal+mine";
        let headers = format!(
            "Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\nContent-Length: {}\r\n",
            body.len()
        );
        let path = format!("/setup/{path}");
        let (head, _) = send_request(server.address, "POST", &path, &headers, body)?;
        let cookie = header(&head, "set-cookie").with_context(|| format!("no cookie: {head}"))?;
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        Ok(Self { cookie })
    }

    /// Fetches a page and returns its body.
    fn fetch(&self, server: &Server, path: &str) -> anyhow::Result<String> {
        let headers = format!("Cookie: {}\r\n", self.cookie);
        let (head, body) = send_request(server.address, "GET", path, &headers, "")?;
        if !head.starts_with("HTTP/1.1 200") {
            bail!("{path}: {head}");
        }
        Ok(body)
    }

    /// Finds an event and shares an overview. Returns the placeholders of [`PAGES`] for them.
    pub(crate) fn find_items(
        &self,
        server: &Server,
        site: &BenchSite,
    ) -> anyhow::Result<[(&'static str, String); 2]> {
        let app = format!("/apps/{}", site.app);
        let events = self.fetch(server, &format!("{app}/events"))?;
        let event = between(&events, &format!("href=\"{app}/events/"), "\"")?;
        let path = format!("{app}/shares");
        let page = self.fetch(server, &path)?;
        let token = between(&page, "name=\"formToken\" value=\"", "\"")?;
        let body = format!("formToken={token}&name=Board&days=7&query=range%3D90d");
        let headers = format!(
            "Cookie: {}\r\nContent-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\nContent-Length: {}\r\n",
            self.cookie,
            body.len()
        );
        let (_, shared) = send_request(server.address, "POST", &path, &headers, &body)?;
        let share = between(&shared, "/shared/", "<")?;
        Ok([("{event}", event), ("{share}", share)])
    }

    /// Fetches a page `times` times and returns the latencies.
    pub(crate) fn measure_page(
        &self,
        server: &Server,
        site: &BenchSite,
        page: &str,
        times: usize,
    ) -> anyhow::Result<Latencies> {
        let path = page.replace("{app}", &site.app);
        let path = path.replace("{link}", &site.link);
        let mut latencies = Vec::with_capacity(times);
        // The first request warms caches and is not counted.
        for number in 0..=times {
            let started = Instant::now();
            self.fetch(server, &path)?;
            if number > 0 {
                latencies.push(started.elapsed());
            }
        }
        Ok(Latencies::of(latencies))
    }

    /// Returns the bytes that a first visit to the overview transfers, including its static files.
    pub(crate) fn transfer(&self, server: &Server, site: &BenchSite) -> anyhow::Result<u64> {
        let page = self.fetch(server, &format!("/apps/{}", site.app))?;
        let mut bytes = page.len();
        for part in page.split(['"', '\'']) {
            if part.starts_with("/static/") {
                bytes += self.fetch(server, part)?.len();
            }
        }
        Ok(u64::try_from(bytes)?)
    }
}

/// Returns the text between two others.
fn between(text: &str, before: &str, after: &str) -> anyhow::Result<String> {
    let (_, rest) = text
        .split_once(before)
        .with_context(|| format!("no {before}"))?;
    let (found, _) = rest
        .split_once(after)
        .with_context(|| format!("no {after}"))?;
    Ok(found.to_owned())
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines
        .filter(|(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
        .next()
}
