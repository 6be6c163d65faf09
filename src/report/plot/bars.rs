//! Horizontal bars in groups, with one row per label and one bar per series.

use plotters::element::Rectangle;
use plotters::style::Color;

use super::frame::{
    Anchor, Area, DrawResult, Face, Frame, WIDTH, canvas, legend, line, text_width, ticks, write,
};
use super::palette;
use crate::report::format::{percent, shortened_middle};

/// The longest label of a bar, in characters.
const LABEL: usize = 36;

const BAR: i32 = 15;
const GAP: i32 = 14;

/// A chart of horizontal bars.
#[derive(Debug, Clone, PartialEq)]
pub struct BarChart {
    /// The description for readers who cannot see the chart.
    pub title: String,
    /// The label below the axis.
    pub x_label: String,
    /// The names of the series; a single series has no legend.
    pub series: Vec<String>,
    /// The rows, from top to bottom.
    pub bars: Vec<Bar>,
    /// The scale of values.
    pub scale: Scale,
}

/// One row of the chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// The label on the left, set as code; up to 36 characters are shown.
    pub label: String,
    /// Whether the label is bold.
    pub strong: bool,
    /// One value per series.
    pub values: Vec<BarValue>,
}

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct BarValue {
    /// The length of the bar. Without a value, or if the scale cannot show it, only the text is shown.
    pub value: Option<f64>,
    /// The text at the end of the bar.
    pub text: String,
}

/// The scale of a bar chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Fractions, from 0 to 100 %.
    Share,
    /// Powers of ten around the positive values; zero has no bar.
    Log,
}

/// Draws horizontal bars.
pub fn bars(chart: &BarChart) -> String {
    // The space for the legend, which a single series does not need.
    let top = if chart.series.len() > 1 { 34 } else { 10 };
    let rows: i32 = chart.bars.iter().map(|bar| bar.height() + GAP).sum();
    let frame = frame(chart, top, top + rows.max(GAP));
    canvas(frame.bottom + 50, &chart.title, |area| {
        if chart.series.len() > 1 {
            legend(area, chart.series.iter(), frame.left)?;
        }
        frame.x_axis(area, &axis_ticks(chart.scale, &frame), &chart.x_label, true)?;
        let mut y = top + GAP / 2;
        for bar in &chart.bars {
            draw_row(area, &frame, chart.scale, bar, y)?;
            y += bar.height() + GAP;
        }
        line(area, (frame.left, frame.top), (frame.left, frame.bottom), palette::INK_RGB)
    })
}

impl Bar {
    /// Returns the height of the row in pixels.
    fn height(&self) -> i32 {
        BAR * self.values.len().max(1) as i32
    }
}

/// Draws a row whose first bar begins at height `y`.
fn draw_row(area: &Area, frame: &Frame, scale: Scale, bar: &Bar, y: i32) -> DrawResult {
    let face = Face { bold: bar.strong, ..Face::CODE };
    write(
        area,
        &shortened_middle(&bar.label, LABEL),
        (frame.left - 10, y + bar.height() / 2),
        Anchor::Right,
        face,
    )?;
    for (index, value) in bar.values.iter().enumerate() {
        let upper = y + BAR * index as i32;
        draw_bar(area, frame, position(scale, value.value), palette::series(index), upper)?;
        let end = position(scale, value.value).map_or(frame.left, |p| frame.x_pixel(p));
        write(area, &value.text, (end + 6, upper + BAR / 2), Anchor::Left, Face::PLAIN)?;
    }
    Ok(())
}

fn draw_bar(
    area: &Area,
    frame: &Frame,
    position: Option<f64>,
    colour: plotters::style::RGBColor,
    upper: i32,
) -> DrawResult {
    let Some(position) = position else { return Ok(()) };
    let end = frame.x_pixel(position);
    // At least two pixels, so that a short bar is visible.
    let end = if position > frame.x.0 { end.max(frame.left + 2) } else { end };
    area.draw(&Rectangle::new([(frame.left, upper + 1), (end, upper + BAR - 1)], colour.filled()))
}

/// Returns the position of `value` on the axis, in the units of [`Frame::x`].
fn position(scale: Scale, value: Option<f64>) -> Option<f64> {
    let value = value.filter(|v| v.is_finite())?;
    match scale {
        Scale::Share => Some(value),
        Scale::Log => (value > 0.0).then(|| value.log10()),
    }
}

fn frame(chart: &BarChart, top: i32, bottom: i32) -> Frame {
    let labels =
        chart.bars.iter().map(|bar| text_width(&shortened_middle(&bar.label, LABEL))).max().unwrap_or(0);
    let values = || chart.bars.iter().flat_map(|bar| &bar.values);
    let left = labels + 18;
    let positions = || values().filter_map(|value| position(chart.scale, value.value));
    let highest = positions().fold(f64::NEG_INFINITY, f64::max);
    let lowest = positions().fold(f64::INFINITY, f64::min);
    let x = match chart.scale {
        Scale::Share => (0.0, 1.0),
        // One more decade on the left, so that the smallest value still has a bar.
        Scale::Log if highest.is_finite() => (lowest.floor() - 1.0, highest.ceil().max(lowest.floor() + 1.0)),
        Scale::Log => (-4.0, 1.0),
    };
    // The axis ends where each text still fits after its bar.
    let room = values().filter_map(|value| {
        let part = (position(chart.scale, value.value)? - x.0) / (x.1 - x.0);
        let free = f64::from(WIDTH - 14 - text_width(&value.text) - left);
        (part > 0.0).then(|| left.saturating_add((free / part) as i32))
    });
    let right = room.min().unwrap_or(WIDTH).clamp(left + 160, (WIDTH - 24).max(left + 160));
    Frame { left, right, top, bottom, x, y: (0.0, 1.0) }
}

fn axis_ticks(scale: Scale, frame: &Frame) -> Vec<(f64, String)> {
    match scale {
        Scale::Share => ticks(0.0, 1.0, 5).into_iter().map(|t| (t, percent(t).replace(".0", ""))).collect(),
        Scale::Log => {
            let (low, high) = frame.x;
            let (least, most) = (low.ceil() as i32, high.floor() as i32);
            let widest = (least..=most).map(|power| text_width(&decimal(power))).max().unwrap_or(0) + 12;
            let pitch = f64::from(frame.right - frame.left) / (high - low);
            let step = (f64::from(widest) / pitch).ceil().max(1.0) as usize;
            let powers = (least..=most).step_by(step);
            powers.map(|power| (f64::from(power), decimal(power))).collect()
        }
    }
}

/// `10^power` in decimals.
fn decimal(power: i32) -> String {
    match power {
        0..=5 => format!("1{}", "0".repeat(power as usize)),
        -6..0 => format!("0.{}1", "0".repeat(power.unsigned_abs() as usize - 1)),
        _ => format!("1e{power}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(scale: Scale, values: &[Option<f64>]) -> BarChart {
        let bar = |&value: &Option<f64>| Bar {
            label: "0.0000,<".to_owned(),
            strong: false,
            values: vec![BarValue { value, text: "text".to_owned() }],
        };
        BarChart {
            title: "a & b".to_owned(),
            x_label: "Å".to_owned(),
            series: vec!["one".to_owned()],
            bars: values.iter().map(bar).collect(),
            scale,
        }
    }

    #[test]
    fn draws_whatever_it_is_given() {
        for scale in [Scale::Share, Scale::Log] {
            for values in
                [&[][..], &[None], &[Some(0.0)], &[Some(0.5), Some(1e-9)], &[Some(f64::NAN), Some(3.0)]]
            {
                let svg = bars(&chart(scale, values));
                assert_eq!(svg.matches("0.0000,&lt;").count(), values.len());
                assert!(
                    svg.starts_with("<svg role=\"img\" aria-label=\"a &amp; b\" ")
                        && svg.ends_with("</svg>\n")
                );
                assert_eq!(svg, bars(&chart(scale, values)));
            }
        }
    }

    #[test]
    fn powers_of_ten_in_decimals() {
        assert_eq!([-4, -1, 0, 2, 7].map(decimal), ["0.0001", "0.1", "1", "100", "1e7"]);
    }
}
