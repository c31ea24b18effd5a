//! The documents in `docs/`, in the binary. Only the binary contains them, so that an edited document
//! does not compile everything again. A test compares the list with the folder.

use tributary_server::DocumentSources;

macro_rules! documents {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../docs/", $name)))),*]
    };
}

/// All documents, the index first.
pub(crate) const DOCUMENTS: DocumentSources = documents![
    "README.md",
    "AGENTS.md",
    "API.md",
    "ARCHITECTURE.md",
    "ATTRIBUTION.md",
    "BENCHMARKS.md",
    "BILLING.md",
    "COMMAND-LINE.md",
    "DASHBOARD.md",
    "DATA-MODEL.md",
    "FORWARDING.md",
    "GLOSSARY.md",
    "GUIDE-APP.md",
    "GUIDE-WEB-SHOP.md",
    "OPERATIONS.md",
    "RELIABILITY.md",
    "REPORTS.md",
    "SCALING.md",
    "SDK-PROTOCOL.md",
    "SDK.md",
    "SECURITY-ASVS.md",
    "SECURITY.md",
    "SKAN.md",
    "TROUBLESHOOTING.md",
    "UPGRADING.md",
];
