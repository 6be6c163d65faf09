//! Histograms as outlines, several over one axis.

use plotters::element::PathElement;
use plotters::style::Color;

use super::frame::{Frame, WIDTH, canvas, legend, line, ticks};
use super::palette;
use crate::report::format::percent;
use drift_data::stats::histogram::HistogramView;

/// Histograms of one quantity, as outlines.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines<'a> {
    /// The description for readers who cannot see the plot.
    pub title: String,
    /// The label below the axis.
    pub x_label: String,
    /// The label of the axis of shares per bin.
    pub y_label: String,
    /// The outlines.
    pub lines: Vec<Line<'a>>,
}

/// One outline.
#[derive(Debug, Clone, PartialEq)]
pub struct Line<'a> {
    /// The name in the legend.
    pub name: String,
    /// The histogram to draw.
    pub histogram: &'a HistogramView,
}

/// The share of values at each end that may lie beyond the drawn range.
const TAIL: f64 = 0.0002;

/// Draws the outlines over the range that contains all but 0.02 % of each histogram at each end.
pub fn lines(plot: &Lines) -> String {
    let ranges = plot.lines.iter().filter_map(|line| bulk(line.histogram));
    let x = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((-1.0, 1.0));
    let peak = plot.lines.iter().flat_map(|line| line.histogram.shares()).fold(0.0, f64::max);
    let y = (0.0, if peak > 0.0 { peak * 1.05 } else { 1.0 });
    let frame = Frame { left: 84, right: WIDTH - 16, top: 36, bottom: 300, x, y };
    canvas(frame.bottom + 50, &plot.title, |area| {
        let names = plot.lines.iter().enumerate();
        let names: Vec<_> = names.map(|(i, line)| (line.name.clone(), palette::series(i))).collect();
        legend(area, &names, frame.left, 14)?;
        let marks = ticks(0.0, y.1, 5).into_iter().map(|t| (t, percent(t).replace(".0 ", " ")));
        frame.y_axis(area, &marks.collect::<Vec<_>>(), &plot.y_label)?;
        let marks = ticks(x.0, x.1, 9).into_iter().map(|t| (t, format!("{t}")));
        frame.x_axis(area, &marks.collect::<Vec<_>>(), &plot.x_label, true)?;
        for (index, line) in plot.lines.iter().enumerate() {
            let points = outline(&frame, line.histogram);
            area.draw(&PathElement::new(points, palette::series(index).stroke_width(2)))?;
        }
        line(area, (frame.left, frame.bottom), (frame.right, frame.bottom), palette::INK_RGB)
    })
}

/// The edges that leave out at most [`TAIL`] of the values at each end.
fn bulk(histogram: &HistogramView) -> Option<(f64, f64)> {
    let allowed = histogram.total() as f64 * TAIL;
    let reached = |outside: u64, mut counts: &mut dyn Iterator<Item = &u64>| {
        let mut seen = outside;
        (&mut counts).position(|count| {
            seen += count;
            seen as f64 > allowed
        })
    };
    let first = reached(histogram.below, &mut histogram.counts.iter())?;
    let last = histogram.counts.len() - reached(histogram.above, &mut histogram.counts.iter().rev())?;
    Some((edge(histogram, first), edge(histogram, last)))
}

fn edge(histogram: &HistogramView, bin: usize) -> f64 {
    histogram.from_angstrom + bin as f64 * histogram.width_angstrom
}

/// The steps of a histogram, from the base line and back to it.
fn outline(frame: &Frame, histogram: &HistogramView) -> Vec<(i32, i32)> {
    let mut points = vec![];
    let (mut last_x, mut last_y) = (frame.left, frame.bottom);
    for (bin, share) in histogram.shares().enumerate() {
        let (from, to) = (edge(histogram, bin), edge(histogram, bin + 1));
        if to <= frame.x.0 || from >= frame.x.1 {
            continue;
        }
        let y = frame.y_pixel(share);
        if points.is_empty() {
            last_x = frame.x_pixel(from);
            points.push((last_x, last_y));
        }
        // Between equal neighbours no corner is needed.
        if y != last_y {
            points.push((last_x, y));
        }
        last_x = frame.x_pixel(to);
        points.push((last_x, y));
        last_y = y;
    }
    points.push((last_x, frame.bottom));
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(counts: Vec<u64>) -> HistogramView {
        HistogramView { from_angstrom: -0.2, width_angstrom: 0.1, counts, below: 0, above: 0 }
    }

    #[test]
    fn tails_are_cut_and_the_bulk_is_not() {
        let mut counts = vec![1_000_000; 4];
        counts.extend([0, 0, 0, 1]);
        assert_eq!(bulk(&view(counts)), Some((-0.2, 0.2)));
        assert_eq!(bulk(&view(vec![])), None);
    }

    #[test]
    fn draws_whatever_it_is_given() {
        for counts in [vec![], vec![0], vec![1], vec![3, 0, 5]] {
            let histogram = view(counts);
            let plot = Lines {
                title: "t".to_owned(),
                x_label: "Å".to_owned(),
                y_label: "share".to_owned(),
                lines: vec![Line { name: "x".to_owned(), histogram: &histogram }],
            };
            assert!(lines(&plot).ends_with("</svg>\n"));
        }
    }
}
