//! The colours of plots and pages.

use plotters::style::RGBColor;

/// Text and axes.
pub const INK: &str = "#1F2328";
/// Grid lines and rules.
pub const GRID: &str = "#D8DEE4";
/// The background.
pub const PAPER: &str = "#FFFFFF";

pub(super) const INK_RGB: RGBColor = RGBColor(0x1F, 0x23, 0x28);
pub(super) const GRID_RGB: RGBColor = RGBColor(0xD8, 0xDE, 0xE4);
pub(super) const PAPER_RGB: RGBColor = RGBColor(0xFF, 0xFF, 0xFF);

/// Blue, orange, bluish green, reddish purple, sky blue, vermilion and yellow of Okabe and Ito (jfly.uni-koeln.de/color, 2008), in the
/// order of use.
const SERIES: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0x56, 0xB4, 0xE9),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0xF0, 0xE4, 0x42),
];

/// Returns the colour of series `index`.
pub(super) fn series(index: usize) -> RGBColor {
    SERIES[index % SERIES.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_agree() {
        for (text, RGBColor(r, g, b)) in [(INK, INK_RGB), (GRID, GRID_RGB), (PAPER, PAPER_RGB)] {
            assert_eq!(text, format!("#{r:02X}{g:02X}{b:02X}"));
        }
    }
}
