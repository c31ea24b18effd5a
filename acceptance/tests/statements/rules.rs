//! What a distributed PostgreSQL accepts and sends to one shard.

use std::collections::BTreeSet;

/// Columns that tables are distributed by.
const DISTRIBUTION_COLUMNS: [&str; 3] = ["app_id", "app_store_id", "organization_id"];
/// Tables that are small and not distributed.
const LOCAL_TABLES: [&str; 1] = ["exchange_rates"];

/// How a statement finds the shards of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AppFilter {
    /// `app_id = $1`.
    App,
    /// `app_id = any($1)`.
    Apps,
    /// Joined with app ids in `unnest`. When distributed, also `app_id = any($1)` with these ids.
    Batch,
    /// Inserts rows that have an app id.
    Insert,
    /// Some table has no condition on the app.
    Missing,
}

/// Begin and end of a part that is only for a distributed database.
const DISTRIBUTED_PART: (&str, &str) = ("/* distributed: ", " */");

/// Returns a statement as a distributed database gets it.
fn distributed_text(text: &str) -> String {
    let (begin, end) = DISTRIBUTED_PART;
    text.replace(begin, "").replace(end, "")
}

/// Returns a statement as other databases get it.
fn plain_text(text: &str) -> String {
    let (begin, end) = DISTRIBUTED_PART;
    let mut parts = text.split(begin);
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once(end).map_or("", |(_, rest)| rest));
    rest.fold(first, |text, rest| text + rest)
}

/// Splits a statement into words. A placeholder counts as a word.
fn words(text: &str) -> Vec<&str> {
    text.split(|letter: char| !(letter.is_alphanumeric() || "_{}$".contains(letter)))
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns the distributed tables that a statement names, as often as it names them. The name may be
/// a placeholder.
pub(super) fn tables<'a>(text: &'a str, distributed: &BTreeSet<String>) -> Vec<&'a str> {
    let words = words(text);
    let named = words.windows(2).filter_map(|pair| match pair {
        ["from" | "join" | "into" | "update" | "using", table] => Some(*table),
        _ => None,
    });
    named
        .filter(|name| name.starts_with('{') || distributed.contains(*name))
        .collect()
}

/// Counts the places where `app_id` is followed by this text.
fn app_conditions(text: &str, after: &str) -> usize {
    let pattern = format!("app_id{after}");
    let is_whole = |index: usize| {
        let before = text[..index].chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
    };
    text.match_indices(&pattern)
        .filter(|(index, _)| is_whole(*index))
        .count()
}

/// Returns how a statement finds its shards. Each table must have a condition on the app.
pub(super) fn app_filter(text: &str, tables: usize) -> AppFilter {
    let plain = plain_text(text);
    let inserts = plain.starts_with("insert into ");
    let columns = plain.split_once('(').map_or("", |(_, rest)| rest);
    let columns = columns.split_once(')').map_or("", |(columns, _)| columns);
    let has_app = columns.contains('{') || words(columns).contains(&"app_id");
    let conditions = app_conditions(&plain, " = ") + usize::from(inserts && has_app);
    let batch = app_parameter(&plain).map_or(0, |apps| {
        app_conditions(&distributed_text(text), &format!(" = any({apps})"))
    });
    if conditions < tables {
        AppFilter::Missing
    } else if app_conditions(&plain, " = $") > 0 {
        AppFilter::App
    } else if app_conditions(&plain, " = any($") > 0 {
        AppFilter::Apps
    } else if inserts {
        AppFilter::Insert
    } else if batch >= tables {
        AppFilter::Batch
    } else {
        AppFilter::Missing
    }
}

/// Returns the parameter with the app ids of a statement's `unnest`.
fn app_parameter(text: &str) -> Option<String> {
    let (parameters, rest) = text.split_once("unnest(")?.1.split_once(") ")?;
    let columns = rest.split_once('(')?.1.split_once(')')?.0;
    let position = words(columns)
        .iter()
        .position(|column| *column == "app_id")?;
    if parameters.starts_with('{') {
        return Some(format!("${}", position + 1));
    }
    words(parameters)
        .get(position)
        .map(|name| (*name).to_owned())
}

/// Returns the texts in parentheses, each with the text around it.
fn groups(text: &str) -> Vec<(&str, String)> {
    let mut open = Vec::new();
    let mut found = Vec::new();
    for (index, letter) in text.char_indices() {
        match letter {
            '(' => open.push(index),
            ')' => {
                if let Some(begin) = open.pop() {
                    let around = format!("{}{}", &text[..begin], &text[index..]);
                    found.push((&text[begin + 1..index], around));
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns why a distributed database rejects a statement or a part of one.
pub(super) fn rejection(text: &str, tables: usize) -> Option<&'static str> {
    let text = &distributed_text(text);
    let locks = ["for update", "for share", "for no key update"];
    let locks_rows = |text: &str| {
        let text = format!("{text} ");
        locks.iter().any(|lock| text.contains(&format!(" {lock} ")))
    };
    if locks_rows(&text.replace(')', " ")) && app_conditions(text, " = $") < tables {
        return Some("locks rows of several apps");
    }
    let is_recurring = |around: &str| {
        around.contains("unnest(")
            || words(around)
                .windows(2)
                .any(|two| two == ["from", "organizations"])
    };
    groups(text)
        .into_iter()
        .filter(|(_, around)| is_recurring(around))
        .find_map(|(subquery, _)| subquery_rejection(subquery))
}

/// Returns why a distributed database rejects a lateral subquery over rows that are on every shard.
fn subquery_rejection(subquery: &str) -> Option<&'static str> {
    let words = words(subquery);
    let is_subquery = words
        .first()
        .is_some_and(|word| *word == "select" || word.starts_with('{'));
    let is_local = LOCAL_TABLES.iter().any(|table| words.contains(table));
    // With an app as a parameter, the whole statement goes to one shard, which accepts any form.
    let has_shard = app_conditions(subquery, " = $") > 0;
    if !is_subquery || !words.contains(&"from") || is_local || has_shard {
        return None;
    }
    if words.contains(&"limit") || words.contains(&"offset") {
        return Some("has a limit in a lateral subquery");
    }
    let window = subquery.split_once("over (").map(|(_, window)| window);
    if window.is_some_and(|window| !window.starts_with("partition by app_id")) {
        return Some("has a window without the app in a lateral subquery");
    }
    let grouped = subquery.split_once("group by ").map(|(_, columns)| columns);
    let by_key = |columns: &str| {
        DISTRIBUTION_COLUMNS
            .iter()
            .any(|column| columns.contains(column))
    };
    if grouped.is_some_and(|columns| !by_key(columns)) {
        return Some("groups by other columns than the app in a lateral subquery");
    }
    let aggregates = ["count", "sum", "min", "max", "bool_or"];
    let has_aggregate = aggregates.iter().any(|name| words.contains(name));
    (has_aggregate && grouped.is_none() && window.is_none())
        .then_some("has an aggregate without groups in a lateral subquery")
}

#[test]
fn rejected_forms_are_recognised() {
    let from = "select * from unnest($1, $2) as wanted (app_id, key) cross join lateral";
    let by_app = "from t where app_id = wanted.app_id";
    for bad in [
        format!("{from} (select a {by_app} limit 1) as t"),
        format!("{from} (select a {by_app} offset 0) as t"),
        format!("{from} (select count(*) as n from (select 1 {by_app} limit $3) as u) as t"),
        format!("{from} (select count(*) as n {by_app}) as t"),
        format!("{from} (select a, count(*) {by_app} group by a) as t"),
        format!("{from} (select row_number() over (order by a) as n {by_app}) as t"),
        format!("{from} (select a {by_app} for update skip locked) as t"),
        "select wanted.n, (select 1 from t where app_id = wanted.app_id limit 3) from unnest($1) \
         as wanted (n, app_id)"
            .to_owned(),
        "select a from t where app_id = any($1) order by a for share".to_owned(),
        "select a from t where app_id = $1 and not exists (select 1 from t as u where u.app_id = \
         t.app_id) for update"
            .to_owned(),
    ] {
        let tables = tables(&bad, &BTreeSet::from(["t".to_owned()])).len();
        assert!(rejection(&bad, tables).is_some(), "{bad}");
    }
    for good in [
        format!("{from} (select a {by_app} group by app_id, a) as t"),
        format!(
            "{from} (select row_number() over (/* distributed: partition by app_id */ order by a) \
             as n {by_app}) as t"
        ),
        format!("{from} (select a from t where app_id = $3 limit 1) as t"),
        format!("{from} (select a from exchange_rates where b = wanted.b limit 1) as t"),
        "select a from t where app_id = $1 and b = any($2) order by b for update".to_owned(),
        "select a from unnest($1) as wanted (app_id) join t on t.app_id = wanted.app_id limit 3"
            .to_owned(),
    ] {
        let tables = tables(&good, &BTreeSet::from(["t".to_owned()])).len();
        assert_eq!(rejection(&good, tables), None, "{good}");
    }
}

#[test]
fn every_table_needs_a_condition_on_its_app() {
    let distributed = BTreeSet::from(["t".to_owned(), "u".to_owned()]);
    let filter = |text: &str| app_filter(text, tables(text, &distributed).len());
    let joined = "select a from unnest($1, $2) as w (n, app_id) join t on t.app_id = w.app_id";
    for (text, expected) in [
        ("select a from t where app_id = $1", AppFilter::App),
        ("select a from t where app_id = any($1)", AppFilter::Apps),
        (
            "select a from t where other_app_id = $1",
            AppFilter::Missing,
        ),
        ("select a from t where b = $1", AppFilter::Missing),
        ("update t set a = 1 where b = $1", AppFilter::Missing),
        (
            "delete from t using unnest($1) as old (b) where t.b = old.b",
            AppFilter::Missing,
        ),
        (
            &format!("{joined} /* distributed: where t.app_id = any($2) */"),
            AppFilter::Batch,
        ),
        (
            &format!("{joined} /* distributed: where t.app_id = any($1) */"),
            AppFilter::Missing,
        ),
        (joined, AppFilter::Missing),
        (
            &format!("{joined} join u on u.b = t.b /* distributed: where t.app_id = any($2) */"),
            AppFilter::Missing,
        ),
        (
            "insert into t (app_id, b) select * from unnest($1, $2)",
            AppFilter::Insert,
        ),
        (
            "insert into t (app_id, b) values ($1, $2)",
            AppFilter::Insert,
        ),
        ("insert into t (b) values ($1)", AppFilter::Missing),
    ] {
        assert_eq!(filter(text), expected, "{text}");
    }
}
