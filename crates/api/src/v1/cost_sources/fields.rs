//! Request body for a cost source. The parser also generates its OpenAPI schema.

use crate::fields::cost_source::read_draft;
use crate::fields::described_body;
use tributary_domain::integration::Network;

described_body! {
    /// A cost source. Settings are replaced as a whole; credentials that are left out stay.
    pub(super) CostSourceFields("CostSourceFields") = |fields| read_draft(fields, Network::A)
}
