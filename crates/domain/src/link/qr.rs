//! QR codes as SVG paths.

use qrcodegen::QrCodeEcc;
use std::fmt::Write as _;

/// Width of the quiet zone in modules, as required by the standard.
const QUIET_SQUARES: i32 = 4;

/// A QR code to draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QrCode {
    /// Side length in modules, including the quiet zone.
    pub side: i32,
    /// The dark modules as SVG path data: digits, spaces and a few letters.
    pub outline: String,
}

impl QrCode {
    /// Encodes a text; `None` if it is too long for a QR code.
    pub fn of(text: &str) -> Option<Self> {
        let code = qrcodegen::QrCode::encode_text(text, QrCodeEcc::Medium).ok()?;
        let mut outline = String::new();
        for y in 0..code.size() {
            let mut x = 0;
            while x < code.size() {
                let dark = (x..code.size())
                    .take_while(|x| code.get_module(*x, y))
                    .count();
                let width = i32::try_from(dark).ok()?;
                if width > 0 {
                    let (left, top) = (x + QUIET_SQUARES, y + QUIET_SQUARES);
                    // Writing to a String cannot fail.
                    let _infallible = write!(outline, "M{left} {top}h{width}v1h-{width}z");
                }
                // Skips the dark run and the light module that ended it.
                x += width + 1;
            }
        }
        Some(Self {
            side: code.size() + 2 * QUIET_SQUARES,
            outline,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the dark modules drawn by the path.
    fn drawn(code: &QrCode) -> Vec<(i32, i32)> {
        let mut squares = Vec::new();
        for run in code.outline.split_terminator('z') {
            let (place, rest) = run.trim_start_matches('M').split_once('h').unwrap();
            let (x, y) = place.split_once(' ').unwrap();
            let (x, y): (i32, i32) = (x.parse().unwrap(), y.parse().unwrap());
            let width: i32 = rest.split_once('v').unwrap().0.parse().unwrap();
            squares.extend((x..x + width).map(|x| (x, y)));
        }
        squares
    }

    #[test]
    fn the_outline_matches_the_code() {
        let text = "https://t.example.com/g/spring-social?gclid=abc";
        let code = QrCode::of(text).unwrap();
        let expected = qrcodegen::QrCode::encode_text(text, QrCodeEcc::Medium).unwrap();
        let dark: Vec<(i32, i32)> = (0..expected.size())
            .flat_map(|y| (0..expected.size()).map(move |x| (x, y)))
            .filter(|(x, y)| expected.get_module(*x, *y))
            .map(|(x, y)| (x + QUIET_SQUARES, y + QUIET_SQUARES))
            .collect();
        assert_eq!(drawn(&code), dark);
        assert_eq!(code.side, expected.size() + 8);
    }

    #[test]
    fn the_outline_is_plain_path_data() {
        let code = QrCode::of("https://t.example.com/?a=<script>\"'").unwrap();
        let allowed = |c: char| c.is_ascii_digit() || " Mhvz-".contains(c);
        assert!(code.outline.chars().all(allowed));
    }

    #[test]
    fn a_text_that_is_too_long_has_no_code() {
        assert_eq!(QrCode::of(&"a".repeat(3_000)), None);
    }
}
