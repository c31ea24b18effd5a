//! The body of an integration, described by its reader.

use crate::fields::described_body;
use crate::fields::integration::read_change;
use tributary_domain::integration::Network;

described_body! {
    /// What can be changed of an integration. Absent: unchanged; null: back to the default.
    pub(super) IntegrationFields("IntegrationFields") = |fields| read_change(fields, Network::A)
}
