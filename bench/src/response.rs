//! Minimal HTTP response parsing for the load generator: status and length only.

/// A complete HTTP response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    /// Length of head and body together, in bytes.
    pub(crate) length: usize,
}

/// Parses the response at the start of `bytes`, or returns `None` while it is incomplete.
/// Requires `Content-Length`, which both servers send.
pub(crate) fn read(bytes: &[u8]) -> Option<RawResponse> {
    let head_end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(bytes.get(..head_end)?).ok()?;
    let status = head.get(9..12)?.parse().ok()?;
    let length = head.lines().skip(1).find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>().ok())?
    });
    let length = head_end + length.unwrap_or(0);
    (bytes.len() >= length).then_some(RawResponse { status, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_complete_once_its_content_length_arrived() {
        let whole = b"HTTP/1.1 202 Accepted\r\nContent-Length: 3\r\nx: y\r\n\r\nabcHTTP/1.1";
        let length = whole.len() - "HTTP/1.1".len();
        let expected = RawResponse {
            status: 202,
            length,
        };
        assert_eq!(read(whole), Some(expected));
        assert_eq!(read(&whole[..length]), Some(expected));
        for cut in 0..length {
            assert_eq!(read(&whole[..cut]), None, "{cut}");
        }
    }
}
