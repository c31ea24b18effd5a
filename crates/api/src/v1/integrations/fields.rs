//! Request body of an integration, described by its reader.

use crate::fields::described_body;
use crate::fields::integration::read_change;
use tributary_domain::integration::Network;

described_body! {
    /// Settings of an integration. Missing: unchanged; null: default.
    pub(super) IntegrationFields("IntegrationFields") = |fields| read_change(fields, Network::A)
}
