//! The signed message: its fields, their order and how they are joined.

/// U+2063 INVISIBLE SEPARATOR, between the signed values and not at the ends.
pub const SEPARATOR: char = '\u{2063}';

/// Versions with a known signed message. An exact set, because "10.0" compares below "2.0" as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkAdNetworkVersion {
    /// 1.0, also assumed if the version is absent.
    V1_0,
    /// 2.0, the last one signed with the P-192 key.
    V2_0,
    /// 2.1: the fields of 2.0, signed with the P-256 key.
    V2_1,
    /// 2.2: adds `fidelity-type`.
    V2_2,
    /// 3.0: adds `did-win`.
    V3_0,
    /// 4.0: adds source identifiers, three windows and web ads.
    V4_0,
}

/// Elliptic curve of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SignatureCurve {
    P192,
    P256,
}

crate::keywords! {
    SkAdNetworkVersion[6] {
        V1_0 => "1.0",
        V2_0 => "2.0",
        V2_1 => "2.1",
        V2_2 => "2.2",
        V3_0 => "3.0",
        V4_0 => "4.0",
    }
}

impl SkAdNetworkVersion {
    pub(super) const fn curve(self) -> SignatureCurve {
        match self {
            Self::V1_0 | Self::V2_0 => SignatureCurve::P192,
            Self::V2_1 | Self::V2_2 | Self::V3_0 | Self::V4_0 => SignatureCurve::P256,
        }
    }
}

/// Fields that can be signed. Those that a version does not sign are ignored.
#[derive(Debug, Clone, Copy)]
pub(super) struct SignedFields<'a> {
    pub(super) ad_network_id: &'a str,
    pub(super) campaign_id: Option<i64>,
    pub(super) source_identifier: Option<&'a str>,
    pub(super) app_id: i64,
    pub(super) transaction_id: &'a str,
    pub(super) redownload: Option<bool>,
    pub(super) source_app_id: Option<i64>,
    pub(super) source_domain: Option<&'a str>,
    pub(super) fidelity: Option<u8>,
    pub(super) did_win: bool,
    pub(super) sequence_index: u8,
}

/// Returns the signed text. A missing value is left out together with its separator.
pub(super) fn signed_text(version: SkAdNetworkVersion, values: SignedFields<'_>) -> String {
    use SkAdNetworkVersion::{V1_0, V2_2, V3_0, V4_0};
    let campaign = match version {
        V4_0 => values.source_identifier.map(str::to_owned),
        _ => values.campaign_id.map(|id| id.to_string()),
    };
    let domain = values.source_domain.filter(|_| version == V4_0);
    let source = values.source_app_id.map(|id| id.to_string());
    let source = source.or_else(|| domain.map(str::to_owned));
    let since = |first, value| if version >= first { value } else { None };
    let parts = [
        (version != V1_0).then(|| version.as_str().to_owned()),
        Some(values.ad_network_id.to_owned()),
        campaign,
        Some(values.app_id.to_string()),
        Some(values.transaction_id.to_owned()),
        values
            .redownload
            .filter(|_| version != V1_0)
            .map(|again| again.to_string()),
        source.filter(|_| version != V1_0),
        since(V2_2, values.fidelity.map(|type_| type_.to_string())),
        since(V3_0, Some(values.did_win.to_string())),
        since(V4_0, Some(values.sequence_index.to_string())),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(SEPARATOR.encode_utf8(&mut [0; 4]))
}
