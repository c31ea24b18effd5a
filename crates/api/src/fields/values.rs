//! Reading one value: its JSON type here, its form by a function of the domain.

use crate::json::Node;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::money::Amount;

/// What to say of a value of another type.
pub(crate) fn wrong_type(expected: &str) -> Problem {
    Problem::new(FaultCode::WrongType, format!("Must be {expected}."))
}

/// A string, as it is.
pub(crate) fn text(node: &Node) -> Result<String, Problem> {
    match node {
        Node::Text(text) => Ok(text.clone()),
        _ => Err(wrong_type("a string")),
    }
}

/// A string that is read further.
pub(crate) fn text_as<T>(
    read: impl FnOnce(&str) -> Result<T, Problem>,
) -> impl FnOnce(&Node) -> Result<T, Problem> {
    move |node| match node {
        Node::Text(text) => read(text),
        _ => Err(wrong_type("a string")),
    }
}

/// One of a few words.
pub(crate) fn choice<T>(
    parse: impl FnOnce(&str) -> Option<T>,
    choices: &'static str,
) -> impl FnOnce(&Node) -> Result<T, Problem> {
    text_as(move |text| {
        let unknown = || {
            Problem::new(
                FaultCode::UnknownValue,
                format!("Must be one of {choices}."),
            )
        };
        parse(text).ok_or_else(unknown)
    })
}

/// `true` or `false`.
pub(crate) fn flag(node: &Node) -> Result<bool, Problem> {
    match node {
        Node::Flag(flag) => Ok(*flag),
        _ => Err(wrong_type("true or false")),
    }
}

/// A whole number.
pub(crate) fn integer(node: &Node) -> Result<i64, Problem> {
    match node {
        Node::Number(digits) => match digits.parse() {
            Ok(number) => Ok(number),
            Err(_) if digits.contains(['.', 'e', 'E']) => Err(wrong_type("a whole number")),
            Err(_) => Err(Problem::new(FaultCode::OutOfRange, "Must fit 64 bits.")),
        },
        _ => Err(wrong_type("a whole number")),
    }
}

/// A whole number of a range.
pub(crate) fn integer_in(range: RangeInclusive<i64>) -> impl FnOnce(&Node) -> Result<i64, Problem> {
    move |node| {
        let number = integer(node)?;
        if range.contains(&number) {
            return Ok(number);
        }
        let message = format!(
            "Must be a whole number from {} to {}.",
            range.start(),
            range.end()
        );
        Err(Problem::new(FaultCode::OutOfRange, message))
    }
}

/// An amount: a number, whose float noise is rounded away, or an exact decimal in a string.
pub(crate) fn amount(node: &Node) -> Result<Amount, Problem> {
    match node {
        Node::Number(digits) => Amount::parse_number(digits),
        Node::Text(text) => Amount::parse_text(text),
        _ => Err(wrong_type("a number or a decimal string")),
    }
}

/// An object of strings.
pub(crate) fn text_map(node: &Node) -> Result<BTreeMap<String, String>, Problem> {
    let Node::Object(members) = node else {
        return Err(wrong_type("an object of strings"));
    };
    let mut map = BTreeMap::new();
    for (key, value) in members {
        let Node::Text(text) = value else {
            return Err(wrong_type("an object of strings"));
        };
        if map.insert(key.clone(), text.clone()).is_some() {
            let message = "A key stands here twice; send it once.";
            return Err(Problem::new(FaultCode::DuplicateField, message));
        }
    }
    Ok(map)
}
