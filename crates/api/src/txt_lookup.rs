//! Lookup of DNS TXT records, which prove that an organization controls a link domain.

use std::pin::Pin;
use std::sync::Arc;

/// The TXT records of a name, each as one text. Empty if the name has none; `None` if the DNS
/// servers did not answer.
pub type TxtLookupFuture = Pin<Box<dyn Future<Output = Option<Vec<String>>> + Send>>;

/// Looks up the TXT records of a name.
pub type TxtLookup = Arc<dyn Fn(String) -> TxtLookupFuture + Send + Sync>;

/// Returns a lookup that never answers.
#[cfg(test)]
pub(crate) fn no_txt_lookup() -> TxtLookup {
    Arc::new(|_| Box::pin(async { None }))
}
