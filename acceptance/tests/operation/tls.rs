//! TLS without a proxy: the certificate, its replacement, and the redirect from http.

use super::metric;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};
use tributary_testkit::{
    Engine, ServerProcess, TestDatabase, TlsFault, client, test_authority, test_certificate,
};

/// Longer than a start, and than the server takes to notice a new certificate.
const WAIT_MAX: Duration = Duration::from_mins(2);

/// Certificate and key in a folder.
struct Files<'a>(&'a Path);

impl Files<'_> {
    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.path(name), content).unwrap();
    }

    fn write_pair(&self, fault: Option<TlsFault>) {
        let [certificate, key] = test_certificate(fault);
        self.write("certificate.pem", certificate);
        self.write("key.pem", key);
    }
}

/// When the certificates expire, as `/metrics` shows it: 2120-01-01.
const EXPIRY: &str = "4733510400";

/// Returns a client that trusts only the test authority.
fn https_client() -> reqwest::Client {
    let authority = reqwest::Certificate::from_pem(test_authority()).unwrap();
    reqwest::Client::builder()
        .tls_certs_only([authority])
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap()
}

async fn is_trusted(url: &str) -> bool {
    // A new client, because an open connection keeps its certificate.
    let response = https_client().get(url).send().await;
    response.is_ok_and(|response| response.status().is_success())
}

/// When the certificate was last read successfully, and when it last failed, in seconds since 1970.
async fn reload_times(base_url: &str) -> (f64, f64) {
    let response = https_client().get(format!("{base_url}/metrics")).send();
    let metrics = response.await.unwrap().text().await.unwrap();
    let name = "tributary_tls_certificate_expiry_timestamp_seconds";
    assert_eq!(metric(&metrics, name), Some(EXPIRY), "{metrics}");
    let time = |outcome: &str| -> f64 {
        let name = format!("tributary_tls_reload_timestamp_seconds{{outcome=\"{outcome}\"}}");
        metric(&metrics, &name).unwrap().parse().unwrap()
    };
    (time("ok"), time("failed"))
}

async fn wait_until(what: &str, mut is_reached: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_reached().await {
        assert!(begun.elapsed() < WAIT_MAX, "{what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tokio::test]
async fn a_server_speaks_https_with_a_certificate_that_may_be_replaced() {
    let database = TestDatabase::new(Engine::Sqlite).await;
    let folder = tempfile::tempdir().unwrap();
    let files = Files(folder.path());
    files.write_pair(Some(TlsFault::SelfSigned));
    let (https, http) = (free_address(), free_address());
    let port = https.rsplit(':').next().unwrap();
    let base_url = format!("https://localhost:{port}");
    let settings = [
        ("TRIBUTARY_LISTEN", https.as_str()),
        ("TRIBUTARY_BASE_URL", &base_url),
        ("TRIBUTARY_TLS__CERTIFICATE", &files.path("certificate.pem")),
        ("TRIBUTARY_TLS__KEY", &files.path("key.pem")),
        ("TRIBUTARY_TLS__REDIRECT_LISTEN", &http),
    ];
    let server = ServerProcess::spawn(&database, &settings);
    let redirected = format!("http://{http}/c/spring?a=b");
    wait_until("the server starts", async || {
        client().get(&redirected).send().await.is_ok()
    })
    .await;
    let response = client().get(&redirected).send().await.unwrap();
    assert_eq!(response.status(), 308);
    assert_eq!(
        response.headers()["location"],
        format!("{base_url}/c/spring?a=b")
    );
    let plain = client().get(format!("http://{https}/healthz")).send().await;
    assert!(plain.is_err(), "the port of https does not speak http");

    let health = format!("{base_url}/healthz");
    assert!(
        !is_trusted(&health).await,
        "the certificate is signed by itself"
    );
    files.write_pair(None);
    wait_until("the new certificate is used", async || {
        is_trusted(&health).await
    })
    .await;
    let (loaded, failed) = reload_times(&base_url).await;
    assert!(loaded > failed, "{loaded} {failed}");

    files.write("certificate.pem", b"unfinished");
    let is_logged = async || server.log().contains("keeping the previous one");
    wait_until("the broken certificate is logged", is_logged).await;
    assert!(
        is_trusted(&health).await,
        "the previous certificate stays in use"
    );
    let is_measured = async || {
        let (loaded, failed) = reload_times(&base_url).await;
        failed > loaded
    };
    wait_until("the metrics show the failure", is_measured).await;
    assert!(!server.log().contains("PRIVATE KEY"));
    assert!(server.terminate().success());

    let started = ServerProcess::try_start_with(&database, &settings).await;
    let exit = started.expect_err("no start without a certificate");
    assert_eq!(exit.status.code(), Some(2), "{exit}");
    assert!(exit.log.contains("tls.certificate"), "{exit}");
}
