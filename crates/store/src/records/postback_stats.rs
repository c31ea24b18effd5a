//! SQL and rows of postback figures.

use crate::{PostbackDimensions, PostbackStats, StoreError};
use tributary_domain::report::postback::{PostbackCounting, PostbackFigures};
use tributary_domain::skan::CoarseValue;
use tributary_domain::skan::postback::Protocol;
use tributary_domain::vocabulary::id::AppId;

/// SQL that both engines share. Periods and conditions differ between the engines.
#[derive(Debug, Clone)]
pub struct StatsSql {
    /// Columns, in the order of [`PostbackStatsRow`].
    pub select: String,
    /// Columns to group by.
    pub group_by: String,
}

impl StatsSql {
    /// Builds the SQL for these dimensions. `periods.n` is the index of the period.
    pub fn of(by: &PostbackDimensions) -> Self {
        let digits = by.source_digits.map(|digits| {
            format!(
                "case when length(source_identifier) >= {digits}
                 then substr(source_identifier, length(source_identifier) - {digits} + 1)
                 else '' end"
            )
        });
        let requested = |requested: bool, column: &str| requested.then(|| column.to_owned());
        // Each column, with the constant that replaces it if the dimension was not requested.
        let dimensions = [
            (Some("periods.n".to_owned()), ""),
            (requested(by.protocol, "protocol"), "cast('' as text)"),
            (
                requested(by.ad_network_id, "ad_network_id"),
                "cast('' as text)",
            ),
            (digits, "cast('' as text)"),
            (
                requested(by.campaign_id, "campaign_id"),
                "cast(0 as bigint)",
            ),
            (
                requested(by.sequence_index, "sequence_index"),
                "cast(-1 as bigint)",
            ),
            (requested(by.fine_value, "fine_value"), "cast(-1 as bigint)"),
            (
                requested(by.coarse_value, "coarse_value"),
                "cast('' as text)",
            ),
        ];
        let grouped: Vec<&str> = dimensions
            .iter()
            .filter_map(|(column, _)| column.as_deref())
            .collect();
        let group_by = grouped.join(", ");
        let mut select: Vec<String> = dimensions
            .iter()
            .map(|(column, constant)| column.clone().unwrap_or_else(|| (*constant).to_owned()))
            .collect();
        let sum = |what: &str| format!("cast(sum({what}) as bigint)");
        select.extend(PostbackFigures::COLUMNS.iter().map(|column| sum(column)));
        select.push(sum("case when fine_value < 0 and coarse_value = ''
             then installs + redownloads + reengagements + later else 0 end"));
        Self {
            select: select.join(", "),
            group_by,
        }
    }

    /// Returns the stored values of `counting` that count now.
    pub fn counting(accept_test_signals: bool) -> [&'static str; 2] {
        let now = if accept_test_signals {
            PostbackCounting::WithTests
        } else {
            PostbackCounting::WithoutTests
        };
        [PostbackCounting::Always.as_str(), now.as_str()]
    }
}

/// A row of postback figures. Empty texts, campaign 0 and negative values mean "none".
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "columns")]
pub struct PostbackStatsRow {
    pub period: i64,
    pub protocol: String,
    pub ad_network_id: String,
    pub source_identifier: String,
    pub campaign_id: i64,
    pub sequence_index: i64,
    pub fine_value: i64,
    pub coarse_value: String,
    pub figures: [i64; PostbackFigures::COUNT],
    pub withheld: i64,
}

impl PostbackStatsRow {
    /// Reads the row.
    pub fn read(self, app: AppId) -> Result<PostbackStats, StoreError> {
        let corrupt = |column| StoreError::corrupt("postback_counts", column, app);
        let filled = |text: String| (!text.is_empty()).then_some(text);
        let small = |number: i64| u8::try_from(number).ok();
        let protocol = filled(self.protocol).map(|text| Protocol::parse(&text));
        let coarse = filled(self.coarse_value).map(|text| CoarseValue::parse(&text));
        Ok(PostbackStats {
            period: usize::try_from(self.period).map_err(|_| corrupt("bucket"))?,
            protocol: protocol
                .map(|one| one.ok_or_else(|| corrupt("protocol")))
                .transpose()?,
            ad_network_id: filled(self.ad_network_id),
            source_identifier: filled(self.source_identifier),
            campaign_id: (self.campaign_id > 0).then_some(self.campaign_id),
            sequence_index: small(self.sequence_index),
            fine_value: small(self.fine_value),
            coarse_value: coarse
                .map(|one| one.ok_or_else(|| corrupt("coarse_value")))
                .transpose()?,
            figures: PostbackFigures::from_values(self.figures),
            withheld: self.withheld,
        })
    }
}
