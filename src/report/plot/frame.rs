//! The canvas, the axes, and the positions of values on them.

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{PathElement, Rectangle, Text};
use plotters::prelude::SVGBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontTransform, IntoFont, IntoTextStyle, RGBColor};

use super::palette::{self, GRID_RGB, INK_RGB, PAPER_RGB};
use crate::report::format::percent;
use crate::report::html::escape;

/// The width of every plot, in pixels.
pub(super) const WIDTH: i32 = 720;
/// The size of text, in pixels.
pub(super) const TEXT: f64 = 13.0;

/// The words around a plot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    /// The description for readers who cannot see the plot.
    pub title: String,
    /// The label below the horizontal axis.
    pub x: String,
    /// The label beside the vertical axis.
    pub y: String,
}

impl Labels {
    /// Returns the title and the labels of both axes.
    pub fn new(title: impl Into<String>, x: &str, y: &str) -> Self {
        Labels { title: title.into(), x: x.to_owned(), y: y.to_owned() }
    }
}

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type DrawResult = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Returns an SVG document of [`WIDTH`] by `height`. `title` describes it to readers who cannot see it.
pub(super) fn canvas(height: i32, title: &str, draw: impl FnOnce(&Area) -> DrawResult) -> String {
    let mut svg = String::new();
    let size = (WIDTH as u32, height.max(1) as u32);
    let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    root.fill(&PAPER_RGB)
        .and_then(|()| draw(&root))
        .and_then(|()| root.present())
        .expect("the SVG backend appends to a string, which cannot fail");
    drop(root);
    svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{}\" ", escape(title)), 1)
}

/// The point of a text that is placed at the given position.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Left,
    Middle,
    Right,
    /// The middle; the text runs upwards.
    Upwards,
}

/// The font of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Face {
    pub family: &'static str,
    pub bold: bool,
}

impl Face {
    pub(super) const PLAIN: Face = Face { family: "sans-serif", bold: false };
    pub(super) const CODE: Face = Face { family: "monospace", bold: false };
}

/// Writes `text` in [`TEXT`] pixels, vertically centred at `at`.
pub(super) fn write(area: &Area, text: &str, at: (i32, i32), anchor: Anchor, face: Face) -> DrawResult {
    let horizontal = match anchor {
        Anchor::Left => HPos::Left,
        Anchor::Middle | Anchor::Upwards => HPos::Center,
        Anchor::Right => HPos::Right,
    };
    // plotters' font sizes are 1.24 times SVG's.
    let mut font = (face.family, TEXT * 1.24).into_font();
    if face.bold {
        font = font.style(plotters::style::FontStyle::Bold);
    }
    if matches!(anchor, Anchor::Upwards) {
        font = font.transform(FontTransform::Rotate270);
    }
    let style = font.color(&INK_RGB).into_text_style(area).pos(Pos::new(horizontal, VPos::Center));
    area.draw(&Text::new(text.to_owned(), at, style))
}

/// Returns a generous estimate of the width of `text`, in pixels.
pub(super) fn text_width(text: &str) -> i32 {
    (text.chars().count() as f64 * TEXT * 0.61).ceil() as i32
}

/// Draws the names of the series and their colours in one line that starts at `left`.
pub(super) fn legend<'n>(area: &Area, names: impl Iterator<Item = &'n String>, left: i32) -> DrawResult {
    let (mut x, y) = (left, 14);
    for (index, name) in names.enumerate() {
        let color = palette::series(index);
        area.draw(&Rectangle::new([(x, y - 6), (x + 12, y + 6)], color.filled()))?;
        write(area, name, (x + 18, y), Anchor::Left, Face::PLAIN)?;
        x += 18 + text_width(name) + 14;
    }
    Ok(())
}

/// A rectangle of pixels with a scale on each axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub left: i32,
    pub right: i32,
    pub top: i32,
    pub bottom: i32,
    /// The values at `left` and `right`; must differ.
    pub x: (f64, f64),
    /// The values at `bottom` and `top`; must differ.
    pub y: (f64, f64),
}

impl Frame {
    pub(super) fn x_pixel(&self, value: f64) -> i32 {
        scale(value, self.x, [self.left, self.right])
    }

    pub(super) fn y_pixel(&self, value: f64) -> i32 {
        scale(value, self.y, [self.bottom, self.top])
    }

    /// Draws vertical grid lines at `ticks`, the tick labels below them, and `name` below the labels.
    pub(super) fn x_axis(&self, area: &Area, ticks: &[(f64, String)], name: &str, grid: bool) -> DrawResult {
        for (value, label) in ticks {
            let x = self.x_pixel(*value);
            if grid {
                line(area, (x, self.top), (x, self.bottom), GRID_RGB)?;
            }
            write(area, label, (x, self.bottom + 14), Anchor::Middle, Face::PLAIN)?;
        }
        write(area, name, ((self.left + self.right) / 2, self.bottom + 36), Anchor::Middle, Face::PLAIN)
    }

    /// Draws horizontal grid lines at `ticks`, the tick labels to the left, and `name` vertically beside the labels.
    pub(super) fn y_axis(&self, area: &Area, ticks: &[(f64, String)], name: &str) -> DrawResult {
        for (value, label) in ticks {
            let y = self.y_pixel(*value);
            line(area, (self.left, y), (self.right, y), GRID_RGB)?;
            write(area, label, (self.left - 8, y), Anchor::Right, Face::PLAIN)?;
        }
        let x = self.left - 18 - ticks.iter().map(|(_, label)| text_width(label)).max().unwrap_or(0);
        write(area, name, (x.max(8), (self.top + self.bottom) / 2), Anchor::Upwards, Face::PLAIN)
    }

    /// [`Frame::x_axis`] with about `count` round numbers.
    pub(super) fn number_axis(&self, area: &Area, count: usize, name: &str) -> DrawResult {
        let marks = ticks(self.x.0, self.x.1, count).into_iter().map(|t| (t, format!("{t}")));
        self.x_axis(area, &marks.collect::<Vec<_>>(), name, true)
    }

    /// [`Frame::y_axis`] of shares, from 0 to the top of the frame.
    pub(super) fn share_axis(&self, area: &Area, name: &str) -> DrawResult {
        let marks = ticks(0.0, self.y.1, 5).into_iter().map(|t| (t, percent(t).replace(".0 ", " ")));
        self.y_axis(area, &marks.collect::<Vec<_>>(), name)
    }

    /// Draws the line on which the plot stands.
    pub(super) fn base_line(&self, area: &Area) -> DrawResult {
        line(area, (self.left, self.bottom), (self.right, self.bottom), INK_RGB)
    }
}

fn scale(value: f64, axis: (f64, f64), [start, end]: [i32; 2]) -> i32 {
    // Values beyond the frame are drawn at its edge.
    let part = ((value - axis.0) / (axis.1 - axis.0)).clamp(0.0, 1.0);
    (f64::from(start) + part * f64::from(end - start)).round() as i32
}

/// Draws a line one pixel wide.
pub(super) fn line(area: &Area, from: (i32, i32), to: (i32, i32), color: RGBColor) -> DrawResult {
    area.draw(&PathElement::new(vec![from, to], color.stroke_width(1)))
}

/// Round values from `low` to `high`, about `count` of them: multiples of 1, 2 or 5 times a power of ten.
pub(super) fn ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let rough = (high - low) / count.max(1) as f64;
    if !rough.is_finite() || rough <= 0.0 {
        return vec![];
    }
    let power = rough.log10().floor() as i32;
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * 10f64.powi(power) >= rough * 0.999);
    // Dividing by a whole power of ten gives the decimal nearest to the tick; multiplying does not.
    let (unit, divisor) = match factor {
        Some(factor) => (factor, 10f64.powi(-power)),
        None => (1.0, 10f64.powi(-power - 1)),
    };
    let step = unit / divisor;
    // A tolerance of a billionth of a step, so that a tick at the end is not lost to rounding.
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|k| k as f64 * unit / divisor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0.0, 0.5, 5), [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]);
        assert_eq!(ticks(-12.0, 11.0, 5), [-10.0, -5.0, 0.0, 5.0, 10.0]);
        assert_eq!(ticks(0.0, 3000.0, 4), [0.0, 1000.0, 2000.0, 3000.0]);
        assert_eq!(ticks(0.0, 0.0007, 4), [0.0, 0.0002, 0.0004, 0.0006]);
        assert!(ticks(1.0, 1.0, 4).is_empty() && ticks(0.0, f64::NAN, 4).is_empty());
    }

    #[test]
    fn values_outside_stay_on_the_edge() {
        let frame = Frame { left: 10, right: 110, top: 0, bottom: 50, x: (0.0, 1.0), y: (0.0, 1.0) };
        assert_eq!((frame.x_pixel(2.0), frame.x_pixel(-1.0), frame.y_pixel(0.5)), (110, 10, 25));
    }
}
