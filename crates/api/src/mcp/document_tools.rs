//! Tools and resources that read the documents of this version.

use super::message::RpcFault;
use super::result::{RESULT_BYTES_MAX, RpcResult, error_result, json_result, text_result};
use crate::documents::{Documents, ServedDocument, document_path};
use serde_json::{Map, Value, json};

pub(super) const SEARCH: &str = "search_docs";
pub(super) const READ: &str = "read_doc";

/// Longest query in characters. A question is shorter.
const QUERY_CHARS_MAX: usize = 500;

/// Describes the tools for `tools/list`.
pub(super) fn definitions() -> [Value; 2] {
    let annotations = |title: &str| {
        json!({"title": title, "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true,
            "openWorldHint": false})
    };
    let text = |description: &str| json!({"type": "string", "description": description});
    [
        json!({
            "name": SEARCH,
            "title": "Search the documentation",
            "description": "Searches Tributary's documentation for words and returns the best sections, with \
                the document and heading of each. Use it for the meaning of a figure, a reason or an error code, \
                and for how to set something up. Then use read_doc for the whole section.",
            "inputSchema": {
                "type": "object",
                "properties": {"query": text("Words to search for, such as `consent skipped reason`.")},
                "required": ["query"],
                "additionalProperties": false,
            },
            "annotations": annotations("Search the documentation"),
        }),
        json!({
            "name": READ,
            "title": "Read the documentation",
            "description": "Returns a document as Markdown, or one of its sections. README.md lists the documents.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "name": text("Name of the document, such as `FORWARDING.md`."),
                    "section": text("Heading of a section. Default: the whole document."),
                },
                "required": ["name"],
                "additionalProperties": false,
            },
            "annotations": annotations("Read the documentation"),
        }),
    ]
}

/// Runs a tool; `None` if it is none of these.
pub(super) fn call(
    documents: &Documents,
    name: &str,
    arguments: &Map<String, Value>,
) -> Option<RpcResult> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    match name {
        SEARCH => Some(search(documents, text("query"))),
        READ => Some(read(documents, text("name"), text("section"))),
        _ => None,
    }
}

fn search(documents: &Documents, query: Option<&str>) -> RpcResult {
    let Some(query) = query.filter(|query| query.chars().count() <= QUERY_CHARS_MAX) else {
        let message = format!("`query` must be a text of at most {QUERY_CHARS_MAX} characters.");
        return error_result(&message);
    };
    let hits = documents.search(query);
    let hits: Vec<Value> = hits
        .iter()
        .map(|hit| {
            json!({"document": hit.document.name, "section": hit.heading, "text": hit.excerpt})
        })
        .collect();
    let text = json!({ "data": hits }).to_string();
    json_result(text).unwrap_or_else(|error| error_result(&error.to_string()))
}

fn read(documents: &Documents, name: Option<&str>, section: Option<&str>) -> RpcResult {
    let Some(document) = name.and_then(|name| documents.find(name)) else {
        let names: Vec<&str> = documents
            .all()
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        let names = names.join(", ");
        return error_result(&format!("No such document. Documents: {names}."));
    };
    let headings = || document.headings().join("; ");
    let text = match section {
        None => Some(document.text.as_str()),
        Some(heading) => document.section(heading),
    };
    match text {
        None => error_result(&format!("No such section. Sections: {}.", headings())),
        Some(text) if text.len() > RESULT_BYTES_MAX => {
            let length = text.len();
            error_result(&format!(
                "The text has {length} bytes, more than {RESULT_BYTES_MAX}. Name a `section`: {}.",
                headings()
            ))
        }
        Some(text) => text_result(text),
    }
}

/// Lists the documents as resources.
pub(super) fn resources(documents: &Documents, base_url: &str) -> RpcResult {
    let resource = |document: &ServedDocument| {
        json!({
            "uri": uri(document, base_url),
            "name": document.name,
            "title": document.title,
            "description": document.summary,
            "mimeType": "text/markdown",
            "size": document.text.len(),
        })
    };
    let all: Vec<Value> = documents.all().iter().map(resource).collect();
    RpcResult::of(json!({ "resources": all }))
}

/// Reads a resource.
pub(super) fn read_resource(
    documents: &Documents,
    base_url: &str,
    params: &Map<String, Value>,
) -> Result<RpcResult, RpcFault> {
    let wanted = params.get("uri").and_then(Value::as_str);
    let is_wanted = |document: &&ServedDocument| Some(uri(document, base_url).as_str()) == wanted;
    let found = documents.all().iter().find(is_wanted).ok_or_else(|| {
        RpcFault::invalid_params("No such resource. resources/list lists the resources.")
    })?;
    let content = json!({"uri": wanted, "mimeType": "text/markdown", "text": found.text});
    Ok(RpcResult::of(json!({ "contents": [content] })))
}

fn uri(document: &ServedDocument, base_url: &str) -> String {
    format!("{base_url}{}", document_path(&document.name))
}
