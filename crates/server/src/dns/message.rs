//! DNS messages: the query for TXT records, and a strict parser for its response (RFC 1035).

/// Longest name in a message, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// Longest label of a name, in bytes.
const LABEL_BYTES_MAX: usize = 63;
/// Compression pointers followed per name. A valid name needs at most one per label; a hostile
/// message could point in circles.
const POINTERS_MAX: usize = 128;
/// Answers read. A zone with more records at this name is not for verification.
const ANSWERS_MAX: u16 = 100;
/// CNAME records followed.
const ALIASES_MAX: usize = 8;

const HEADER_BYTES: usize = 12;
const TYPE_CNAME: u16 = 5;
const TYPE_TXT: u16 = 16;
const CLASS_INTERNET: u16 = 1;
/// Flag of a query: recursion desired.
const RECURSION_DESIRED: u16 = 0x0100;
const RESPONSE: u16 = 0x8000;
const OPCODE: u16 = 0x7800;
const TRUNCATED: u16 = 0x0200;
const RCODE: u16 = 0x000f;
const RCODE_OK: u16 = 0;
const RCODE_NO_SUCH_NAME: u16 = 3;

/// A parsed response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DnsResponse {
    /// The TXT records of the name; none if the name does not exist.
    Records(Vec<String>),
    /// The response does not fit into a datagram. Ask again over TCP.
    Truncated,
    /// The server could not answer.
    Failed,
}

/// Builds a query for the TXT records of a name. Returns `None` if the name does not fit.
pub(super) fn query(id: u16, name: &str) -> Option<Vec<u8>> {
    let mut message = Vec::with_capacity(HEADER_BYTES + name.len() + 6);
    for field in [id, RECURSION_DESIRED, 1, 0, 0, 0] {
        message.extend(field.to_be_bytes());
    }
    for label in name.split('.') {
        let length = u8::try_from(label.len()).ok()?;
        if label.is_empty() || label.len() > LABEL_BYTES_MAX {
            return None;
        }
        message.push(length);
        message.extend(label.as_bytes());
    }
    message.push(0);
    if message.len() - HEADER_BYTES > NAME_BYTES_MAX {
        return None;
    }
    message.extend(TYPE_TXT.to_be_bytes());
    message.extend(CLASS_INTERNET.to_be_bytes());
    Some(message)
}

/// Parses the response to a query. Returns `None` if it is malformed or answers another query.
pub(super) fn parse(message: &[u8], id: u16, name: &str) -> Option<DnsResponse> {
    let mut reader = Reader { message, at: 0 };
    let (answers_to, flags) = (reader.number()?, reader.number()?);
    let (questions, answers) = (reader.number()?, reader.number()?);
    reader.at = HEADER_BYTES;
    if answers_to != id || flags & RESPONSE == 0 || flags & OPCODE != 0 || questions != 1 {
        return None;
    }
    let question = (reader.name()?, reader.number()?, reader.number()?);
    if question != (name.to_ascii_lowercase(), TYPE_TXT, CLASS_INTERNET) {
        return None;
    }
    match flags & RCODE {
        RCODE_NO_SUCH_NAME => return Some(DnsResponse::Records(Vec::new())),
        RCODE_OK if flags & TRUNCATED != 0 => return Some(DnsResponse::Truncated),
        RCODE_OK => {}
        _ => return Some(DnsResponse::Failed),
    }
    let mut records = Vec::new();
    for _ in 0..answers.min(ANSWERS_MAX) {
        records.push(reader.record()?);
    }
    Some(DnsResponse::Records(texts_of(&question.0, &records)))
}

/// A record of the answer section.
struct Record {
    name: String,
    content: Content,
}

enum Content {
    Alias(String),
    Text(String),
    Other,
}

/// Returns the texts of a name, following aliases. Records of other names do not count.
fn texts_of(name: &str, records: &[Record]) -> Vec<String> {
    let mut name = name;
    for _ in 0..ALIASES_MAX {
        let alias = records.iter().find_map(|record| match &record.content {
            Content::Alias(target) if record.name == name => Some(target),
            _ => None,
        });
        match alias {
            Some(target) => name = target,
            None => break,
        }
    }
    let text = |record: &Record| match &record.content {
        Content::Text(text) if record.name == name => Some(text.clone()),
        _ => None,
    };
    records.iter().filter_map(text).collect()
}

struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let bytes = self.message.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.bytes(2)?.try_into().ok()?))
    }

    /// Reads a name in lower case, following compression pointers.
    fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        let mut pointers = 0;
        let mut after = None;
        loop {
            let length = usize::from(self.byte()?);
            if length == 0 {
                break;
            }
            if length > LABEL_BYTES_MAX {
                let is_pointer = length & 0xc0 == 0xc0;
                let target = ((length & 0x3f) << 8) | usize::from(self.byte()?);
                pointers += 1;
                if !is_pointer || pointers > POINTERS_MAX {
                    return None;
                }
                after.get_or_insert(self.at);
                self.at = target;
                continue;
            }
            let label = std::str::from_utf8(self.bytes(length)?).ok()?;
            // One label `a.b` is another name than the labels `a` and `b`, but has the same text.
            if label.contains('.') {
                return None;
            }
            if !name.is_empty() {
                name.push('.');
            }
            name.push_str(&label.to_ascii_lowercase());
            if name.len() > NAME_BYTES_MAX {
                return None;
            }
        }
        self.at = after.unwrap_or(self.at);
        Some(name)
    }

    fn record(&mut self) -> Option<Record> {
        let name = self.name()?;
        let (kind, class) = (self.number()?, self.number()?);
        let _time_to_live = self.bytes(4)?;
        let length = usize::from(self.number()?);
        let end = self.at.checked_add(length)?;
        let content = match (kind, class) {
            (TYPE_CNAME, CLASS_INTERNET) => Content::Alias(self.name()?),
            (TYPE_TXT, CLASS_INTERNET) => Content::Text(self.text(end)?),
            _ => {
                self.bytes(length)?;
                Content::Other
            }
        };
        (self.at == end).then_some(Record { name, content })
    }

    /// Reads the strings of a TXT record as one text.
    fn text(&mut self, end: usize) -> Option<String> {
        let mut text = Vec::new();
        while self.at < end {
            let length = usize::from(self.byte()?);
            text.extend(self.bytes(length)?);
        }
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const ID: u16 = 0x1234;
    const NAME: &str = "_tributary.go.example.com";

    /// Builds a response: the query with other flags, a count, and these records.
    fn response(flags: u16, records: &[(&[u8], u16, &[u8])]) -> Vec<u8> {
        let mut message = query(ID, NAME).unwrap();
        message[2..4].copy_from_slice(&flags.to_be_bytes());
        let count = u16::try_from(records.len()).unwrap();
        message[6..8].copy_from_slice(&count.to_be_bytes());
        for (name, kind, data) in records {
            message.extend(*name);
            message.extend(kind.to_be_bytes());
            message.extend(CLASS_INTERNET.to_be_bytes());
            message.extend(60_u32.to_be_bytes());
            message.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
            message.extend(*data);
        }
        message
    }

    /// Points at the question's name.
    const SAME: &[u8] = &[0xc0, 12];
    const OTHER: &[u8] = b"\x05other\x04test\x00";

    #[rstest]
    #[case::one_record(&[(SAME, TYPE_TXT, b"\x03abc".as_slice())], &["abc"])]
    #[case::two_strings(&[(SAME, TYPE_TXT, b"\x02ab\x01c".as_slice())], &["abc"])]
    #[case::two_records(&[(SAME, TYPE_TXT, b"\x01a".as_slice()), (SAME, TYPE_TXT, b"\x01b")], &["a", "b"])]
    #[case::of_another_name(&[(OTHER, TYPE_TXT, b"\x03abc".as_slice())], &[])]
    #[case::through_an_alias(&[(SAME, TYPE_CNAME, OTHER), (OTHER, TYPE_TXT, b"\x03abc".as_slice())], &["abc"])]
    #[case::of_another_type(&[(SAME, 1, b"\x7f\x00\x00\x01".as_slice())], &[])]
    #[case::none(&[], &[])]
    fn reads_records(#[case] records: &[(&[u8], u16, &[u8])], #[case] expected: &[&str]) {
        let expected = expected.iter().map(|text| (*text).to_owned()).collect();
        let parsed = parse(&response(RESPONSE, records), ID, NAME);
        assert_eq!(parsed, Some(DnsResponse::Records(expected)));
    }

    #[rstest]
    #[case::truncated(RESPONSE | TRUNCATED, DnsResponse::Truncated)]
    #[case::no_such_name(RESPONSE | RCODE_NO_SUCH_NAME, DnsResponse::Records(Vec::new()))]
    #[case::server_failure(RESPONSE | 2, DnsResponse::Failed)]
    fn reads_the_outcome(#[case] flags: u16, #[case] expected: DnsResponse) {
        assert_eq!(parse(&response(flags, &[]), ID, NAME), Some(expected));
    }

    #[rstest]
    #[case::a_query(0, ID, NAME)]
    #[case::another_id(RESPONSE, ID + 1, NAME)]
    #[case::another_name(RESPONSE, ID, "_tributary.example.com")]
    fn ignores_messages_that_answer_something_else(
        #[case] flags: u16,
        #[case] id: u16,
        #[case] name: &str,
    ) {
        assert_eq!(parse(&response(flags, &[]), id, name), None);
    }

    #[rstest]
    #[case::pointer_to_itself(&[0xc0, 43], b"\x03abc")]
    #[case::pointer_past_the_end(&[0xff, 0xff], b"\x03abc")]
    #[case::string_past_the_record(SAME, b"\x09abc")]
    #[case::label_with_dots(b"\x19_tributary.go.example.com\x00", b"\x03abc")]
    fn rejects_malformed_records(#[case] name: &[u8], #[case] data: &[u8]) {
        let message = response(RESPONSE, &[(name, TYPE_TXT, data)]);
        assert_eq!(parse(&message, ID, NAME), None);
    }

    #[test]
    fn rejects_every_shortened_message() {
        let whole = response(RESPONSE, &[(SAME, TYPE_TXT, b"\x03abc".as_slice())]);
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length], ID, NAME), None, "{length}");
        }
    }

    #[rstest]
    #[case::empty_label("a..b")]
    #[case::long_label(&format!("{}.com", "a".repeat(64)))]
    #[case::long_name(&["abcdefgh"; 29].join("."))]
    fn rejects_names_that_do_not_fit(#[case] name: &str) {
        assert_eq!(query(ID, name), None);
    }
}
