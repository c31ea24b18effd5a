//! Request body for an integration. The parser also generates its OpenAPI schema.

use crate::fields::described_body;
use crate::fields::integration::read_change;
use tributary_domain::integration::Network;

described_body! {
    /// An integration's settings. Missing fields are unchanged; null resets a field to its default.
    pub(super) IntegrationFields("IntegrationFields") = |fields| read_change(fields, Network::A)
}
