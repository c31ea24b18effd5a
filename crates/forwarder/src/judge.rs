//! Step four: redacts a classified response and passes it to `domain`, which decides what happens
//! to the deliveries. Also delays other queues that share the quota, and logs that the network sent
//! a warning.

use crate::redaction::{self, Redactor};
use crate::send::{NetworkClient, RequestOutcome};
use tributary_domain::forwarding::Conversion;
use tributary_domain::forwarding::delivery::ANSWER_CHARS_MAX;
use tributary_domain::forwarding::judge::AttemptResponse;
use tributary_domain::forwarding::round::{Round, RoundRequest};
use tributary_networks::{Account, Judgement};

/// Applies the outcome of one request to its deliveries.
pub(crate) fn judge(
    client: &NetworkClient<'_>,
    round: &mut Round,
    request: RoundRequest,
    outcome: RequestOutcome,
) {
    let context = client.shared.decision_context();
    let message = response_text(client.account, &request.part.conversions(), &outcome);
    let judgement = outcome.judgement;
    let code = code_of(&judgement);
    if judgement.warning.is_some() {
        // Do not log the warning's text, which may repeat what was sent. The redacted text is
        // stored with the delivery's attempts.
        tracing::warn!(code, "network response contains a warning");
    }
    let response = AttemptResponse {
        sent_at: outcome.sent_at,
        duration: outcome.duration,
        status: judgement.status,
        ruling: judgement.ruling,
        code,
        message,
        pace: judgement.pace,
        retry_after: judgement
            .retry_after
            .and_then(|after| after.wait(context.now)),
        request_id: judgement.trace_id,
    };
    let throttled = round.judge(request, &response, context);
    if let Some((project, wait)) = client.account.quota_project().zip(throttled) {
        // Other integrations share the same quota.
        client.shared.pacer.delay(project, wait);
    }
}

/// Returns the network's response as one line, without secrets or personal data.
pub(crate) fn response_text(
    account: &Account,
    batch: &[Conversion],
    outcome: &RequestOutcome,
) -> Option<String> {
    let judgement = &outcome.judgement;
    let mut parts = Vec::new();
    if let Some(code) = &judgement.code {
        parts.push(format!("[{}]", redaction::clean_code(code)));
    }
    parts.extend(judgement.message.clone());
    parts.extend(judgement.warning.clone());
    if let Some(trace) = &judgement.trace_id {
        parts.push(format!("(trace {trace})"));
    }
    if parts.is_empty() {
        return None;
    }
    let text = Redactor::for_batch(batch).redact(account, outcome.token.as_ref(), &parts.join(" "));
    Some(text.chars().take(ANSWER_CHARS_MAX).collect())
}

/// Returns the network's code, or the HTTP status if there is no code.
fn code_of(judgement: &Judgement) -> String {
    let status = || match judgement.status {
        Some(status) => format!("http_{status}"),
        None => "no_answer".to_owned(),
    };
    judgement
        .code
        .as_deref()
        .map_or_else(status, redaction::clean_code)
}
