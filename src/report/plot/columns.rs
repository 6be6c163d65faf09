//! Vertical columns over whole numbers: the distribution of a count.

use plotters::element::Rectangle;
use plotters::style::Color;

use super::frame::{Anchor, Face, Frame, Labels, WIDTH, canvas, text_width, write};
use super::palette;
use crate::report::format::percent;

/// The distribution of a whole number, such as the tokens of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// The title and the labels of the axes, of which the vertical one has shares.
    pub labels: Labels,
    /// The values and how often each was counted, in any order.
    pub counts: Vec<(i64, u64)>,
}

/// Draws one column per value, from the smallest to the largest, as a share of all.
pub fn columns(plot: &Columns) -> String {
    let total: u64 = plot.counts.iter().map(|&(_, count)| count).sum();
    let low = plot.counts.iter().map(|&(value, _)| value).min().unwrap_or(0);
    let high = plot.counts.iter().map(|&(value, _)| value).max().unwrap_or(0);
    let share = |count: u64| drift_data::stats::share(count, total);
    let peak = plot.counts.iter().map(|&(_, count)| share(count)).fold(0.0, f64::max);
    // An axis needs two different ends.
    let peak = if peak > 0.0 { peak } else { 1.0 };
    let frame = Frame {
        left: 84,
        right: WIDTH - 12,
        top: 26,
        bottom: 280,
        x: (low as f64 - 0.6, high as f64 + 0.6),
        y: (0.0, peak),
    };
    let pitch = f64::from(frame.right - frame.left) / (frame.x.1 - frame.x.0);
    canvas(frame.bottom + 50, &plot.labels.title, |area| {
        frame.share_axis(area, &plot.labels.y)?;
        for &(value, count) in &plot.counts {
            let (middle, top) = (frame.x_pixel(value as f64), frame.y_pixel(share(count)));
            // At least one pixel, so that no column vanishes among many.
            let half = ((pitch * 0.4) as i32).clamp(1, 40);
            let bar = [(middle - half, top), (middle + half, frame.bottom)];
            area.draw(&Rectangle::new(bar, palette::series(0).filled()))?;
            let label = percent(share(count));
            // A label that is wider than its column would overlap the next one.
            if count > 0 && f64::from(text_width(&label)) < pitch {
                write(area, &label, (middle, top - 10), Anchor::Middle, Face::PLAIN)?;
            }
        }
        let widest = text_width(&high.to_string()) + 10;
        let every = (f64::from(widest) / pitch).ceil().max(1.0) as usize;
        let values = (low..=high).step_by(every).map(|v| (v as f64, v.to_string()));
        frame.x_axis(area, &values.collect::<Vec<_>>(), &plot.labels.x, false)?;
        frame.base_line(area)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_column_per_value() {
        let plot = |counts| Columns { labels: Labels::new("t", "x", "y"), counts };
        let svg = columns(&plot(vec![(20, 1), (22, 3)]));
        assert_eq!(svg.matches("fill=\"#0072B2\"").count(), 2);
        assert!(svg.contains("\n25.0 %\n") && svg.contains("\n75.0 %\n") && svg.contains("\n21\n"));
        assert!(columns(&plot(vec![])).ends_with("</svg>\n"));
        assert!(columns(&plot(vec![(7, 0)])).ends_with("</svg>\n"));
        assert!(columns(&plot((0..5000).map(|v| (v, 1)).collect())).ends_with("</svg>\n"));
    }
}
