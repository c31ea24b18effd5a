//! QR codes as SVG and PNG, with the product's icon in the middle on request.
//!
//! Codes for print have the highest level of error correction, which restores up to 30 % of a code.
//! The icon covers about 6 %, so the code remains readable when a print is damaged as well.

mod icon;
mod png;

use icon::IconColor;
use qrcodegen::QrCodeEcc;
use std::fmt::{self, Write as _};

/// Width of the quiet zone in modules, as required by the standard.
const QUIET_MODULES: i32 = 4;
/// The side of the area for the icon is this part of the code's side.
const ICON_PART: i32 = 4;
/// Side of a PNG image in pixels, at least: enough for a printed poster.
const PNG_PIXELS_MIN: i32 = 1_024;

/// Whether the product's icon is in the middle of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QrIcon {
    /// The icon covers the middle.
    Shown,
    /// Only the code.
    Hidden,
}

/// A QR code to draw. Coordinates are in modules and include the quiet zone.
#[derive(Clone, PartialEq, Eq)]
pub struct QrCode {
    code: qrcodegen::QrCode,
    icon: QrIcon,
}

/// A square in the middle of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Square {
    start: i32,
    side: i32,
}

impl Square {
    const fn contains(self, x: i32, y: i32) -> bool {
        let end = self.start + self.side;
        self.start <= x && x < end && self.start <= y && y < end
    }
}

impl fmt::Debug for QrCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = formatter.debug_struct("QrCode");
        text.field("side", &self.side()).finish_non_exhaustive()
    }
}

impl QrCode {
    /// Encodes a text for a screen, without the icon; `None` if it is too long for a QR code.
    pub fn of(text: &str) -> Option<Self> {
        let code = qrcodegen::QrCode::encode_text(text, QrCodeEcc::Medium).ok()?;
        let icon = QrIcon::Hidden;
        Some(Self { code, icon })
    }

    /// Encodes a text for print; `None` if it is too long for a QR code.
    pub fn for_print(text: &str, icon: QrIcon) -> Option<Self> {
        let code = qrcodegen::QrCode::encode_text(text, QrCodeEcc::High).ok()?;
        Some(Self { code, icon })
    }

    /// Returns the side length.
    pub fn side(&self) -> i32 {
        self.code.size() + 2 * QUIET_MODULES
    }

    /// Returns the light area for the icon. Its side is odd, as that of the code, so that it lies in
    /// the middle and ends between modules.
    fn cleared(&self) -> Option<Square> {
        let side = (self.code.size() / ICON_PART) | 1;
        let start = QUIET_MODULES + (self.code.size() - side) / 2;
        (self.icon == QrIcon::Shown).then_some(Square { start, side })
    }

    /// Returns the area of the icon: the cleared area without a margin of one module.
    fn icon_area(&self) -> Option<Square> {
        self.cleared().map(|area| Square {
            start: area.start + 1,
            side: area.side - 2,
        })
    }

    /// Returns whether a module is dark.
    fn is_dark(&self, x: i32, y: i32) -> bool {
        let is_cleared = self.cleared().is_some_and(|area| area.contains(x, y));
        // Modules outside the code are light.
        !is_cleared && self.code.get_module(x - QUIET_MODULES, y - QUIET_MODULES)
    }

    /// Returns the dark modules as SVG path data: digits, spaces and a few letters.
    pub fn outline(&self) -> String {
        let mut outline = String::new();
        for y in 0..self.side() {
            let mut x = 0;
            while x < self.side() {
                let start = x;
                while self.is_dark(x, y) {
                    x += 1;
                }
                let width = x - start;
                if width > 0 {
                    // Writing to a String cannot fail.
                    let _infallible = write!(outline, "M{start} {y}h{width}v1h-{width}z");
                }
                // The light module that ended the run.
                x += 1;
            }
        }
        outline
    }

    /// Returns the SVG transformation that moves the icon from its drawing to its place in the code.
    pub fn icon_transform(&self) -> Option<String> {
        let area = self.icon_area()?;
        let thousandths = area.side * 1_000 / icon::SIDE;
        let (whole, rest) = (thousandths / 1_000, thousandths % 1_000);
        let start = area.start;
        Some(format!(
            "translate({start} {start}) scale({whole}.{rest:03})"
        ))
    }

    /// Returns an SVG document.
    pub fn svg(&self) -> String {
        let (side, outline) = (self.side(), self.outline());
        let icon = self
            .icon_transform()
            .map(|transform| format!("<g transform=\"{transform}\">{}</g>", icon::SVG_SHAPES));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {side} {side}\" \
             shape-rendering=\"geometricPrecision\">\
             <rect width=\"{side}\" height=\"{side}\" fill=\"#fff\"/>\
             <path fill=\"#000\" d=\"{outline}\"/>{}</svg>\n",
            icon.unwrap_or_default()
        )
    }

    /// Returns a PNG image. Each module is a square of whole pixels.
    pub fn png(&self) -> Vec<u8> {
        let scale = (PNG_PIXELS_MIN + self.side() - 1) / self.side();
        let side = scale * self.side();
        let area = self.icon_area();
        let mut pixels = Vec::new();
        for y in 0..side {
            for x in 0..side {
                let in_icon = area.filter(|area| area.contains(x / scale, y / scale));
                let color = match in_icon {
                    Some(area) => {
                        let place = |at: i32| {
                            // The centre of the pixel, in hundredths of the drawing's unit.
                            let pixels = 2 * (at - area.start * scale) + 1;
                            pixels * icon::SIDE * 50 / (area.side * scale)
                        };
                        icon::color_at(place(x), place(y))
                    }
                    None if self.is_dark(x / scale, y / scale) => IconColor::Black,
                    None => IconColor::White,
                };
                pixels.push(color as u8);
            }
        }
        png::encode(side, &icon::PALETTE, &pixels)
    }
}

#[cfg(test)]
mod tests;
