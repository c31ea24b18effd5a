//! Notes in the chart: changes that may explain a change of the figures.

use crate::access::PageContext;
use crate::failure::Failure;
use crate::network_label::NetworkLabel;
use crate::state::DashboardHandles;
use crate::value_names::link_names;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::resource::OrganizationRead;
use tributary_domain::access::{AnalyticsRead, Scope};
use tributary_domain::audit::{Action, AuditEntry};
use tributary_domain::report::Period;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::AuditedChangesQuery;

/// Changes to read. A year with a few changes a day has fewer.
const CHANGES_MAX: u32 = 2_000;

/// Actions that may have a note.
const NOTED: [Action; 8] = [
    Action::LinkCreated,
    Action::CostsUpdated,
    Action::CostSourceUpdated,
    Action::CostSourceRemoved,
    Action::CostSourcePulled,
    Action::IntegrationPaused,
    Action::IntegrationResumed,
    Action::IntegrationUpdated,
];

/// Loads the notes of a period from the audit log. A viewer, who may not see the log, gets none.
pub(super) async fn annotations(
    handles: &DashboardHandles,
    context: &PageContext<AnalyticsRead>,
    app: AppId,
    period: Period,
) -> Result<Vec<(Timestamp, String)>, Failure> {
    if !context.session.user.role.grants(OrganizationRead::NAME) {
        return Ok(Vec::new());
    }
    let environment = context.authorized.environment();
    let reader = context.session.authorize::<OrganizationRead>(environment)?;
    let query = AuditedChangesQuery {
        actions: NOTED.to_vec(),
        period,
        limit: CHANGES_MAX,
    };
    let entries = handles.store.audited_changes(&reader, app, query).await?;
    let links = entries
        .iter()
        .filter(|one| one.action == Action::LinkCreated);
    let links = links.map(|one| &one.target);
    let names = link_names(handles, &context.authorized, app, links).await?;
    let notes = entries.iter().rev();
    let mut seen = BTreeSet::new();
    Ok(notes
        .filter_map(|entry| Some((entry.at, note(entry, &names)?)))
        .filter(|(at, note)| seen.insert((at.as_millis() / MILLIS_PER_HOUR, note.clone())))
        .collect())
}

/// Equal notes within an hour are shown once.
const MILLIS_PER_HOUR: i64 = 60 * 60 * 1_000;

/// Returns the note for an entry; `None` if it does not explain figures.
fn note(entry: &AuditEntry, names: &BTreeMap<String, String>) -> Option<String> {
    let network = || NetworkLabel::parse(&entry.target).map_or("a network", |label| label.name);
    Some(match entry.action {
        Action::LinkCreated => match names.get(&entry.target) {
            Some(name) => format!("Link created: {name}"),
            None => "Link created".to_owned(),
        },
        Action::CostsUpdated => "Costs saved".to_owned(),
        Action::CostSourceUpdated => format!("Cost import from {} saved", network()),
        Action::CostSourceRemoved => format!("Cost import from {} removed", network()),
        Action::CostSourcePulled => format!("Costs imported from {}", network()),
        Action::IntegrationPaused => format!("{} paused", network()),
        Action::IntegrationResumed => format!("{} resumed", network()),
        Action::IntegrationUpdated => {
            let enabled = entry.changes.iter().find(|one| one.field == "enabled")?;
            match enabled.after.as_deref() {
                Some("true") => format!("{} switched on", network()),
                _ => format!("{} switched off", network()),
            }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use tributary_domain::access::{Actor, Environment};
    use tributary_domain::audit::FieldChange;
    use tributary_domain::vocabulary::id::{AuditId, OrganizationId};

    #[rstest]
    #[case::link(Action::LinkCreated, "lnk_1", None, Some("Link created: Spring"))]
    #[case::other_link(Action::LinkCreated, "lnk_2", None, Some("Link created"))]
    #[case::cost(Action::CostsUpdated, "costs", None, Some("Costs saved"))]
    #[case::source(
        Action::CostSourceUpdated,
        "network_a",
        None,
        Some("Cost import from Meta saved")
    )]
    #[case::no_source(
        Action::CostSourceRemoved,
        "network_c",
        None,
        Some("Cost import from TikTok removed")
    )]
    #[case::import(
        Action::CostSourcePulled,
        "network_a",
        None,
        Some("Costs imported from Meta")
    )]
    #[case::paused(Action::IntegrationPaused, "network_a", None, Some("Meta paused"))]
    #[case::resumed(Action::IntegrationResumed, "network_c", None, Some("TikTok resumed"))]
    #[case::off(
        Action::IntegrationUpdated,
        "network_c",
        Some("false"),
        Some("TikTok switched off")
    )]
    #[case::on(
        Action::IntegrationUpdated,
        "network_c",
        Some("true"),
        Some("TikTok switched on")
    )]
    #[case::other_setting(Action::IntegrationUpdated, "network_c", None, None)]
    #[case::unrelated(Action::AppUpdated, "app_1", None, None)]
    fn changes_that_explain_figures_are_notes(
        #[case] action: Action,
        #[case] target: &str,
        #[case] enabled: Option<&str>,
        #[case] expected: Option<&str>,
    ) {
        let change = |after: &str| FieldChange {
            field: "enabled".to_owned(),
            before: None,
            after: Some(after.to_owned()),
        };
        let entry = AuditEntry {
            id: AuditId::from_bytes([2; 16]),
            organization: OrganizationId::from_bytes([3; 16]),
            sequence: None,
            at: Timestamp::from_millis(0),
            actor: Actor::Operator,
            action,
            app: None,
            target: target.to_owned(),
            changes: enabled.map(change).into_iter().collect(),
            address: None,
            request_id: None,
            environment: Environment::Live,
        };
        let names = BTreeMap::from([("lnk_1".to_owned(), "Spring".to_owned())]);
        assert_eq!(note(&entry, &names).as_deref(), expected);
        assert!(expected.is_none() || NOTED.contains(&action));
    }
}
