//! Step four: cleans an answer and lets `domain` judge it. What concerns other queues, or the operator, is noted here.

use crate::redaction::{self, Redactor};
use crate::send::{NetworkClient, RequestOutcome};
use tributary_domain::forwarding::Conversion;
use tributary_domain::forwarding::delivery::ANSWER_CHARS_MAX;
use tributary_domain::forwarding::judge::AttemptResponse;
use tributary_domain::forwarding::round::{Round, RoundRequest};
use tributary_networks::{Account, Judgement};

/// Judges what came of a request of a round.
pub(crate) fn judge(
    client: &NetworkClient<'_>,
    round: &mut Round,
    request: RoundRequest,
    outcome: RequestOutcome,
) {
    let moment = client.shared.decision_context();
    let words = response_text(client.account, &request.part.conversions(), &outcome);
    let judgement = outcome.judgement;
    let code = code_of(&judgement);
    if judgement.warning.is_some() {
        // Its words may repeat what was sent; the delivery's attempts have them, cleaned.
        tracing::warn!(code, "the network added a warning to its answer");
    }
    let answer = AttemptResponse {
        sent_at: outcome.sent_at,
        duration: outcome.duration,
        status: judgement.status,
        ruling: judgement.ruling,
        code,
        message: words,
        pace: judgement.pace,
        retry_after: judgement
            .retry_after
            .and_then(|after| after.wait(moment.now)),
        request_id: judgement.trace_id,
    };
    let throttled = round.judge(request, &answer, moment);
    if let Some((project, wait)) = client.account.quota_project().zip(throttled) {
        // Others count against the same limit.
        client.shared.pacer.delay(project, wait);
    }
}

/// Returns what the network said, in a line: no secret, no personal data.
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

/// Returns the network's code; the status where it gave none.
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
