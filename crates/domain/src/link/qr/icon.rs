//! The product's icon: three streams that join, on a square with round corners. The same drawing as
//! `crates/dashboard/static/icon.svg`.

/// Side of the drawing.
pub(super) const SIDE: i32 = 32;
/// Radius of the corners.
const CORNER: i32 = 8;
/// Half the width of a line, in hundredths.
const HALF_LINE: i64 = 150;
/// Straight pieces that a curve is drawn with.
const PIECES: i64 = 12;

/// The shapes as SVG elements.
pub(super) const SVG_SHAPES: &str = "<rect width=\"32\" height=\"32\" rx=\"8\" fill=\"#0b6470\"/>\
    <g fill=\"none\" stroke=\"#fff\" stroke-linecap=\"round\" stroke-width=\"3\">\
    <path d=\"M16 26V15\"/><path d=\"M16 20C16 13 8 14 8 6.5\"/>\
    <path d=\"M16 17.5C16 11 24 12 24 6.5\"/><path d=\"M16 15V6.5\" opacity=\".6\"/></g>";

/// A colour of an image, as its number in the palette.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum IconColor {
    White,
    Black,
    Ground,
    /// White at 60 % on the ground.
    Faint,
}

/// Red, green and blue of each colour.
pub(super) const PALETTE: [[u8; 3]; 4] = [
    [0xff, 0xff, 0xff],
    [0x00, 0x00, 0x00],
    [0x0b, 0x64, 0x70],
    [0x9d, 0xc1, 0xc6],
];

type Point = (i64, i64);

/// The white curves: start, two control points and end, in hundredths. A straight line is a curve, too.
const CURVES: [[Point; 4]; 3] = [
    [(1600, 2600), (1600, 2600), (1600, 1500), (1600, 1500)],
    [(1600, 2000), (1600, 1300), (800, 1400), (800, 650)],
    [(1600, 1750), (1600, 1100), (2400, 1200), (2400, 650)],
];
/// The faint line.
const FAINT: (Point, Point) = ((1600, 1500), (1600, 650));

/// Returns the colour at a point, in hundredths of the drawing's unit.
pub(super) fn color_at(x: i32, y: i32) -> IconColor {
    let point = (i64::from(x), i64::from(y));
    let is_on_stream = || CURVES.iter().any(|curve| is_on_curve(curve, point));
    if is_outside_corner(x, y) || is_on_stream() {
        IconColor::White
    } else if is_on_line(FAINT.0, FAINT.1, point) {
        IconColor::Faint
    } else {
        IconColor::Ground
    }
}

/// Returns whether a point is beyond a round corner.
fn is_outside_corner(x: i32, y: i32) -> bool {
    let beyond = |at: i32| {
        let (low, high) = (CORNER * 100, (SIDE - CORNER) * 100);
        i64::from((low - at).max(at - high).max(0))
    };
    let (dx, dy) = (beyond(x), beyond(y));
    let radius = i64::from(CORNER * 100);
    dx * dx + dy * dy > radius * radius
}

fn is_on_curve(curve: &[Point; 4], point: Point) -> bool {
    let at = |step: i64| {
        let rest = PIECES - step;
        let weights = [
            rest * rest * rest,
            3 * rest * rest * step,
            3 * rest * step * step,
            step * step * step,
        ];
        let sum = |part: fn(&Point) -> i64| -> i64 {
            let terms = weights.iter().zip(curve);
            let sum: i64 = terms.map(|(weight, point)| weight * part(point)).sum();
            sum / (PIECES * PIECES * PIECES)
        };
        (sum(|point| point.0), sum(|point| point.1))
    };
    (0..PIECES).any(|step| is_on_line(at(step), at(step + 1), point))
}

/// Returns whether a point is on a line with round ends.
fn is_on_line(from: Point, to: Point, point: Point) -> bool {
    let minus = |a: Point, b: Point| (a.0 - b.0, a.1 - b.1);
    let dot = |a: Point, b: Point| a.0 * b.0 + a.1 * b.1;
    let (line, offset) = (minus(to, from), minus(point, from));
    let length = dot(line, line);
    let along = dot(offset, line).clamp(0, length);
    // The offset from the nearest point of the line, times the squared length: no division needed.
    let apart = (
        offset.0 * length - line.0 * along,
        offset.1 * length - line.1 * along,
    );
    let limit = HALF_LINE * length;
    let (x, y) = (i128::from(apart.0), i128::from(apart.1));
    length > 0 && x * x + y * y <= i128::from(limit) * i128::from(limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::corner(10, 10, IconColor::White)]
    #[case::ground(1600, 2900, IconColor::Ground)]
    #[case::edge(1600, 10, IconColor::Ground)]
    #[case::stem(1600, 2500, IconColor::White)]
    #[case::round_end(1600, 2700, IconColor::White)]
    #[case::left_stream(800, 700, IconColor::White)]
    #[case::right_stream(2400, 700, IconColor::White)]
    #[case::middle_stream(1600, 700, IconColor::Faint)]
    #[case::between_streams(1200, 700, IconColor::Ground)]
    fn colors(#[case] x: i32, #[case] y: i32, #[case] expected: IconColor) {
        assert_eq!(color_at(x, y), expected);
    }

    /// The dashboard's icon file is written with the same numbers.
    #[test]
    fn the_drawing_is_the_icon_file() {
        let file = include_str!("../../../../dashboard/static/icon.svg");
        let numbers = |text: &str| -> Vec<String> {
            let words = text.split(|letter: char| !(letter.is_ascii_digit() || letter == '.'));
            let words = words.filter(|word| word.chars().any(|letter| letter.is_ascii_digit()));
            words
                .map(|word| word.replace("6.500", "6.5").replace("17.500", "17.5"))
                .collect()
        };
        let shapes = &file[file.find("<rect").unwrap()..];
        assert_eq!(numbers(SVG_SHAPES), numbers(shapes));
    }
}
