//! Finds the SQL in the sources of the PostgreSQL store.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A string literal in a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SqlText {
    /// Path below `src`.
    pub(super) file: String,
    /// Function, constant or static that contains the literal.
    pub(super) item: String,
    /// The text, with single spaces. Placeholders of `format!` remain as `{name}`.
    pub(super) text: String,
}

impl SqlText {
    /// Returns the place of the literal.
    pub(super) fn place(&self) -> String {
        format!("{} {}", self.file, self.item)
    }

    /// Returns whether the text is a statement and not a part of one.
    pub(super) fn is_statement(&self) -> bool {
        let verbs = [
            "select ",
            "insert into ",
            "update ",
            "delete from ",
            "with ",
        ];
        verbs.iter().any(|verb| self.text.starts_with(verb))
    }
}

/// A part of a source file that matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Semicolon,
}

/// Splits a source into words, string literals and semicolons. Drops everything else.
fn tokens(source: &str) -> Vec<Token> {
    let letters: Vec<char> = source.chars().collect();
    let at = |index: usize| letters.get(index).copied().unwrap_or('\0');
    let mut found = Vec::new();
    let mut index = 0;
    while index < letters.len() {
        match at(index) {
            '/' if at(index + 1) == '/' => {
                while index < letters.len() && at(index) != '\n' {
                    index += 1;
                }
            }
            '"' => {
                let (text, end) = literal(&letters, index + 1);
                found.push(Token::Text(text));
                index = end;
            }
            // A character, or otherwise a lifetime.
            '\'' if at(index + 1) == '\\' => index += 4,
            '\'' if at(index + 2) == '\'' => index += 3,
            '\'' => {
                index += 1;
                while at(index).is_alphanumeric() || at(index) == '_' {
                    index += 1;
                }
            }
            letter if letter.is_alphabetic() || letter == '_' => {
                let begin = index;
                while at(index).is_alphanumeric() || at(index) == '_' {
                    index += 1;
                }
                found.push(Token::Word(letters[begin..index].iter().collect()));
            }
            letter => {
                found.extend((letter == ';').then_some(Token::Semicolon));
                index += 1;
            }
        }
    }
    found
}

/// Reads a string literal up to its closing quote. Returns the text and the position after it.
fn literal(letters: &[char], begin: usize) -> (String, usize) {
    let mut text = String::new();
    let mut index = begin;
    while let Some(letter) = letters.get(index).filter(|letter| **letter != '"') {
        let escaped = letters.get(index + 1).filter(|_| *letter == '\\');
        text.push(*escaped.unwrap_or(letter));
        index += 1 + usize::from(escaped.is_some());
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    (words.join(" "), index + 1)
}

/// Returns the string literals of a source, without its tests.
pub(super) fn texts(file: &str, source: &str) -> Vec<SqlText> {
    let (mut function, mut constant) = (String::new(), None);
    let mut found = Vec::new();
    let mut before = String::new();
    for token in tokens(product(source)) {
        match token {
            Token::Word(word) => {
                match before.as_str() {
                    "fn" => function.clone_from(&word),
                    "const" | "static" if word != "fn" => constant = Some(word.clone()),
                    _ => {}
                }
                before = word;
            }
            Token::Text(text) => found.push(SqlText {
                file: file.to_owned(),
                item: constant.as_ref().unwrap_or(&function).clone(),
                text,
            }),
            Token::Semicolon => constant = None,
        }
    }
    found
}

/// Returns the statements whose number of rows a source uses: the literal that is passed to
/// `execute_counting`, or the last one before the call.
pub(super) fn counted(source: &str) -> Vec<String> {
    let tokens = tokens(product(source));
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let is_call = *token == Token::Word("execute_counting".to_owned());
        let is_declaration = index
            .checked_sub(1)
            .is_some_and(|before| tokens[before] == Token::Word("fn".to_owned()));
        if !is_call || is_declaration {
            continue;
        }
        let passed = match tokens.get(index + 1) {
            Some(Token::Text(text)) => Some(text),
            _ => tokens[..index].iter().rev().find_map(|token| match token {
                Token::Text(text) => Some(text),
                Token::Word(_) | Token::Semicolon => None,
            }),
        };
        found.extend(passed.cloned());
    }
    found
}

fn product(source: &str) -> &str {
    source
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or(source)
}

/// Returns the folder of the PostgreSQL store.
pub(super) fn folder() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../crates/store-postgres"
    ))
}

/// Returns the sources of the store with their paths below `src`.
pub(super) fn sources() -> Vec<(String, String)> {
    let root = folder().join("src");
    let mut found = Vec::new();
    collect(&root, &root, &mut found);
    found.sort();
    found
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with("test") {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, found);
        } else {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            found.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Returns the tables that can be distributed: their primary key begins with `app_id`.
pub(super) fn distributed_tables() -> BTreeSet<String> {
    let mut tables = BTreeSet::new();
    for entry in std::fs::read_dir(folder().join("migrations")).unwrap() {
        let sql = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for table in sql.split("create table ").skip(1) {
            let name = table.split_whitespace().next().unwrap_or_default();
            let definition = table.split("\n)").next().unwrap_or_default();
            if definition.contains("primary key (app_id") {
                tables.insert(name.to_owned());
            }
        }
    }
    tables
}

#[test]
fn literals_are_found_with_their_functions() {
    let source = "fn one() { const TWO: &str = \"c \\\"d\\\"\"; let a = '\"'; // \"no\"
                  f(\"a  \\\n b\", x as &'static str, \"e\") }\n#[cfg(test)]\nmod tests { \"f\" }";
    let found: Vec<(String, String)> = texts("x.rs", source)
        .into_iter()
        .map(|one| (one.item, one.text))
        .collect();
    let expected = [("TWO", "c \"d\""), ("one", "a b"), ("one", "e")];
    assert_eq!(
        found,
        expected.map(|(item, text)| (item.to_owned(), text.to_owned()))
    );
}
