//! Notices.

use super::members::lock_answering_member;
use super::secret_keys::admit_sealed;
use crate::tables::Tables;
use std::collections::BTreeSet;
use tributary_domain::access::person::User;
use tributary_domain::access::{Actor, ScopeName};
use tributary_domain::app::AuditedChange;
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::forwarding::alert::Alert;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::notice::{
    Notice, NoticeSettings, Occasion, admit_another, notices_of_removed_member,
};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, NoticeId, OrganizationId, UserId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{NoticeMessageRow, audit_row};
use tributary_store::{CheckedNotice, FINISHED_MESSAGES_KEPT, SentMessage};

/// Stores a new notice. Returns it with its owner.
pub async fn create_notice<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    notice: &Notice,
    origin: &AuditContext,
) -> Result<Notice, T::Failure> {
    admit_sealed(tables, sealed_url(&notice.settings)).await?;
    let owner = lock_answering_member(tables, organization, ScopeName::AppsWrite, origin).await?;
    tables.require_app(organization, notice.app).await?;
    admit_another(tables.notices_of(notice.app).await?.len())?;
    let notice = Notice {
        owner,
        ..notice.clone()
    };
    tables.write_notice(&notice, notice.first_look()).await?;
    let (action, changes) = (Action::NoticeCreated, notice.creation_changes());
    let app = Some(notice.app);
    let row = audit_row(organization, origin, action, app, notice.id, &changes);
    tables.insert_audit(&row).await?;
    Ok(notice)
}

/// Pauses the notices of a member who is removed, except those in `wanted`, which the acting member
/// takes over. The members are locked. Returns the changed notices, whose audit entries
/// [`audit_notices`] writes.
pub(super) async fn change_owned_notices<T: Tables>(
    tables: &T,
    members: &[User],
    member: UserId,
    wanted: &BTreeSet<NoticeId>,
    (organization, origin): (OrganizationId, &AuditContext),
) -> Result<Vec<AuditedChange<Notice>>, T::Failure> {
    let owned = tables.active_notices(organization, Some(member)).await?;
    let by = members
        .iter()
        .find(|one| Actor::User(one.id) == origin.actor);
    let changed = notices_of_removed_member(owned, member, (by, wanted), origin.at);
    for one in &changed {
        let notice = &one.after;
        tables.write_notice(notice, notice.first_look()).await?;
    }
    Ok(changed)
}

/// Writes the audit entries of changed notices. Returns the context of the next entry.
pub(super) async fn audit_notices<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    changed: &[AuditedChange<Notice>],
    origin: &AuditContext,
) -> Result<AuditContext, T::Failure> {
    let mut origin = origin.clone();
    for AuditedChange { after, changes } in changed {
        let (app, action) = (Some(after.app), Action::NoticeUpdated);
        let row = audit_row(organization, &origin, action, app, after.id, changes);
        tables.insert_audit(&row).await?;
        origin = origin.following();
    }
    Ok(origin)
}

/// Replaces the settings of a notice. Returns the updated notice.
pub async fn replace_notice<T: Tables>(
    tables: &T,
    (organization, app, notice): (OrganizationId, AppId, NoticeId),
    settings: &NoticeSettings,
    precondition: &Precondition,
    origin: &AuditContext,
) -> Result<Notice, T::Failure> {
    admit_sealed(tables, []).await?;
    let by = lock_answering_member(tables, organization, ScopeName::AppsWrite, origin).await?;
    tables.require_app(organization, app).await?;
    let stored = tables.app(app).await?.ok_or(Refusal::AppNotFound)?;
    let current = find(tables, app, notice).await?;
    let is_new = |url: &&SealedSecret| Some(*url) != sealed_url(&current.settings);
    admit_sealed(tables, sealed_url(settings).filter(is_new)).await?;
    let (settings, by) = (settings.clone(), (&stored.timezone, by));
    let changed = current.changed(settings, precondition, by, origin.at)?;
    if changed.changes.is_empty() {
        return Ok(changed.after);
    }
    let after = changed.after;
    tables.write_notice(&after, after.first_look()).await?;
    let action = Action::NoticeUpdated;
    let row = audit_row(
        organization,
        origin,
        action,
        Some(app),
        notice,
        &changed.changes,
    );
    tables.insert_audit(&row).await?;
    Ok(after)
}

/// Deletes a notice and its messages.
pub async fn delete_notice<T: Tables>(
    tables: &T,
    (organization, app, notice): (OrganizationId, AppId, NoticeId),
    precondition: &Precondition,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    tables.require_app(organization, app).await?;
    find(tables, app, notice).await?.admit(precondition)?;
    tables.remove_notice(app, notice).await?;
    let action = Action::NoticeDeleted;
    let row = audit_row(organization, origin, action, Some(app), notice, &[]);
    tables.insert_audit(&row).await
}

/// Stores the result of a look at a notice, unless the notice changed meanwhile.
pub async fn settle_notice<T: Tables>(
    tables: &T,
    checked: &CheckedNotice,
) -> Result<(), T::Failure> {
    let (notice, progress) = (&checked.notice, checked.progress);
    if !tables
        .write_progress(notice, progress, checked.due_at)
        .await?
    {
        return Ok(());
    }
    if let Some(occasion) = &checked.occasion {
        let row = NoticeMessageRow::write(notice, occasion, checked.at);
        tables.insert_message(&row).await?;
    }
    Ok(())
}

/// Queues a message for every notice that wants the alert.
pub async fn queue_alert_messages<T: Tables>(
    tables: &T,
    alert: &Alert,
    now: Timestamp,
) -> Result<(), T::Failure> {
    let rows = tables.notice_rows(alert.app).await?.into_iter();
    // An unreadable notice must not keep the alert from the others.
    let notices = rows.filter_map(|row| row.read().ok());
    let occasion = Occasion::Alert(alert.clone());
    for notice in notices.filter(|notice| notice.wants(alert)) {
        let row = NoticeMessageRow::write(&notice, &occasion, now);
        tables.insert_message(&row).await?;
    }
    Ok(())
}

/// Stores the result of an attempt to send a message, and forgets messages that finished long ago.
pub async fn settle_message<T: Tables>(tables: &T, sent: &SentMessage) -> Result<(), T::Failure> {
    tables.write_attempt(sent).await?;
    let before = sent.at.minus(FINISHED_MESSAGES_KEPT);
    tables.forget_messages(sent.app, before).await
}

/// Returns the encrypted URL of a notice's channel.
fn sealed_url(settings: &NoticeSettings) -> Option<&SealedSecret> {
    settings.channel.url().map(|url| &url.sealed)
}

async fn find<T: Tables>(tables: &T, app: AppId, notice: NoticeId) -> Result<Notice, T::Failure> {
    let mut stored = tables.notices_of(app).await?.into_iter();
    let found = stored.find(|one| one.id == notice);
    Ok(found.ok_or(Refusal::NoticeNotFound)?)
}
