//! Parts of statements that only a distributed database needs.
//!
//! Such a part is a comment of the form `/* distributed: … */`, so the server ignores it unless the
//! database is distributed. There are two kinds:
//!
//! * `and app_id = any($1)`, where `$1` contains the apps of the batch. It repeats a join with
//!   `unnest`. With it, the database recognises the shards of the statement. A batch belongs to one
//!   shard, so the statement goes to that shard only. Elsewhere, the condition would be checked once
//!   per row and app.
//! * `partition by app_id`, for windows in lateral subqueries. Without it, the database rejects the
//!   window when it does not know the shard. Elsewhere, the clause would keep PostgreSQL 15 from
//!   stopping at the first rows of the window.

use std::borrow::Cow;

const BEGIN: &str = "/* distributed:";
const END: &str = "*/";

/// Returns the text to send to the server.
pub(crate) fn statement_text(sql: &str, is_distributed: bool) -> Cow<'_, str> {
    if is_distributed && sql.contains(BEGIN) {
        Cow::Owned(sql.replace(BEGIN, "").replace(END, ""))
    } else {
        Cow::Borrowed(sql)
    }
}

#[cfg(test)]
mod tests {
    use super::statement_text;

    #[test]
    fn only_a_distributed_database_gets_the_conditions_on_shards() {
        let sql = "select a from t where b = $2 /* distributed: and app_id = any($1) */ limit 1";
        let distributed = "select a from t where b = $2  and app_id = any($1)  limit 1";
        assert_eq!(statement_text(sql, true), distributed);
        assert_eq!(statement_text(sql, false), sql);
    }
}
