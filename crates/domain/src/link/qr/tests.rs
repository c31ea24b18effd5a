//! Decodes the images as a phone does.

use super::*;
use rstest::rstest;

const SHORT: &str = "https://t.co/c/abc";
const USUAL: &str = "https://t.example.com/c/spring-social";

/// An image as a reader sees it.
struct GrayImage {
    side: usize,
    pixels: Vec<u8>,
}

fn number(bytes: &[u8]) -> usize {
    usize::try_from(u32::from_be_bytes(bytes.try_into().unwrap())).unwrap()
}

/// Reads a PNG file and checks its checksums.
fn read_png(file: &[u8]) -> GrayImage {
    let mut rest = file.strip_prefix(b"\x89PNG\r\n\x1a\n").unwrap();
    let (mut side, mut palette, mut packed) = (0, Vec::new(), Vec::new());
    while !rest.is_empty() {
        let length = number(&rest[..4]);
        let (kind, data) = (&rest[4..8], &rest[8..8 + length]);
        let checksum = number(&rest[8 + length..12 + length]);
        let expected = crc32fast::hash(&rest[4..8 + length]);
        assert_eq!(checksum, usize::try_from(expected).unwrap());
        match kind {
            b"IHDR" => {
                side = number(&data[..4]);
                assert_eq!(number(&data[4..8]), side, "square");
                assert_eq!(data[8..], [8, 3, 0, 0, 0]);
            }
            b"PLTE" => palette = data.chunks(3).map(<[u8]>::to_vec).collect(),
            b"IDAT" => packed.extend_from_slice(data),
            other => assert_eq!(other, b"IEND"),
        }
        rest = &rest[12 + length..];
    }
    let rows = miniz_oxide::inflate::decompress_to_vec_zlib(&packed).unwrap();
    let gray = |pixel: &u8| {
        let color: u32 = palette[usize::from(*pixel)]
            .iter()
            .map(|&part| u32::from(part))
            .sum();
        u8::try_from(color / 3).unwrap()
    };
    let row = |row: &[u8]| {
        assert_eq!(row[0], 0, "no filter");
        row[1..].iter().map(gray).collect::<Vec<u8>>()
    };
    let pixels: Vec<u8> = rows.chunks(side + 1).flat_map(row).collect();
    assert_eq!(pixels.len(), side * side);
    GrayImage { side, pixels }
}

/// Finds and decodes the one code in an image.
fn decoded(image: &GrayImage) -> Result<String, String> {
    let pixel = |x: usize, y: usize| image.pixels[y * image.side + x];
    let mut prepared = rqrr::PreparedImage::prepare_from_greyscale(image.side, image.side, pixel);
    let grids = prepared.detect_grids();
    let [grid] = &grids[..] else {
        return Err(format!("{} codes", grids.len()));
    };
    let (_, text) = grid.decode().map_err(|error| error.to_string())?;
    Ok(text)
}

#[rstest]
#[case::short(SHORT)]
#[case::usual(USUAL)]
#[case::longest_slug(&format!("https://links.example-company.com/c/{}", "s".repeat(64)))]
#[case::longest_host(&format!("https://{}/c/{}", ["h".repeat(63), "h".repeat(63), "h".repeat(63)].join("."), "s".repeat(64)))]
fn a_code_is_readable_with_and_without_the_icon(#[case] text: &str) {
    for icon in [QrIcon::Hidden, QrIcon::Shown] {
        let code = QrCode::for_print(text, icon).unwrap();
        let image = read_png(&code.png());
        assert!(image.side >= 1_024);
        assert_eq!(decoded(&image).as_deref(), Ok(text), "{icon:?}");
    }
}

/// A sticker that is damaged in one place is still readable, although the icon covers the middle.
#[test]
fn a_damaged_code_with_the_icon_is_readable() {
    let code = QrCode::for_print(USUAL, QrIcon::Shown).unwrap();
    let mut image = read_png(&code.png());
    let module = image.side / usize::try_from(code.side()).unwrap();
    for y in 14 * module..17 * module {
        for x in 24 * module..30 * module {
            image.pixels[y * image.side + x] = 255;
        }
    }
    assert_eq!(decoded(&image).as_deref(), Ok(USUAL));
}

/// Returns the dark modules drawn by the path.
fn drawn(code: &QrCode) -> Vec<(i32, i32)> {
    let mut squares = Vec::new();
    for run in code.outline().split_terminator('z') {
        let (place, rest) = run.trim_start_matches('M').split_once('h').unwrap();
        let (x, y) = place.split_once(' ').unwrap();
        let (x, y): (i32, i32) = (x.parse().unwrap(), y.parse().unwrap());
        let width: i32 = rest.split_once('v').unwrap().0.parse().unwrap();
        squares.extend((x..x + width).map(|x| (x, y)));
    }
    squares
}

#[rstest]
#[case::without(QrIcon::Hidden)]
#[case::with(QrIcon::Shown)]
fn the_outline_draws_the_dark_modules_outside_the_icon(#[case] icon: QrIcon) {
    let code = QrCode::for_print(USUAL, icon).unwrap();
    let expected = qrcodegen::QrCode::encode_text(USUAL, QrCodeEcc::High).unwrap();
    assert_eq!(code.side(), expected.size() + 8);
    let dark: Vec<(i32, i32)> = (0..expected.size())
        .flat_map(|y| (0..expected.size()).map(move |x| (x, y)))
        .filter(|(x, y)| expected.get_module(*x, *y))
        .map(|(x, y)| (x + QUIET_MODULES, y + QUIET_MODULES))
        .filter(|(x, y)| !code.cleared().is_some_and(|area| area.contains(*x, *y)))
        .collect();
    assert_eq!(drawn(&code), dark);
}

#[rstest]
#[case::smallest("A")]
#[case::short(SHORT)]
#[case::usual(USUAL)]
#[case::long(&"x".repeat(1_000))]
fn the_icon_is_in_the_middle_and_covers_little(#[case] text: &str) {
    let code = QrCode::for_print(text, QrIcon::Shown).unwrap();
    let area = code.cleared().unwrap();
    assert_eq!(
        area.start,
        code.side() - area.start - area.side,
        "in the middle"
    );
    let share = area.side * area.side * 1_000 / (code.code.size() * code.code.size());
    assert!((40..80).contains(&share), "{share} thousandths");
    let icon = code.icon_area().unwrap();
    assert_eq!((icon.start, icon.side), (area.start + 1, area.side - 2));
    assert_eq!(
        QrCode::for_print(text, QrIcon::Hidden).unwrap().cleared(),
        None
    );
}

#[test]
fn the_svg_document_contains_only_shapes() {
    let text = "https://t.example.com/?a=<script>\"'";
    let code = QrCode::for_print(text, QrIcon::Shown).unwrap();
    let allowed = |c: char| c.is_ascii_digit() || " Mhvz-".contains(c);
    assert!(code.outline().chars().all(allowed));
    let document = code.svg();
    assert!(document.starts_with("<svg xmlns=") && document.ends_with("</svg>\n"));
    assert!(document.contains("translate(") && !document.contains("script"));
    let plain = QrCode::for_print(text, QrIcon::Hidden).unwrap().svg();
    assert!(!plain.contains("<g"), "{plain}");
}

#[test]
fn a_text_that_is_too_long_has_no_code() {
    assert!(QrCode::of(&"a".repeat(3_000)).is_none());
    assert!(QrCode::of(&"a".repeat(2_000)).is_some());
    assert!(QrCode::for_print(&"a".repeat(2_000), QrIcon::Hidden).is_none());
}
