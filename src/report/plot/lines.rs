//! Histograms as outlines, several over one axis.

use plotters::element::PathElement;
use plotters::style::Color;

use super::frame::{Frame, Labels, WIDTH, canvas, legend};
use super::palette;
use drift_data::stats::histogram::HistogramView;

/// Histograms of one quantity, as outlines.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines<'a> {
    /// The title and the labels of the axes, of which the vertical one has shares per bin.
    pub labels: Labels,
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
pub const TAIL: f64 = 0.0002;

/// Draws the outlines over the range that contains all but 0.02 % of each histogram at each end.
pub fn lines(plot: &Lines) -> String {
    let ranges = plot.lines.iter().filter_map(|line| bulk(line.histogram));
    let x = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((-1.0, 1.0));
    let peak = plot.lines.iter().flat_map(|line| line.histogram.shares()).fold(0.0, f64::max);
    let y = (0.0, if peak > 0.0 { peak * 1.05 } else { 1.0 });
    let frame = Frame { left: 84, right: WIDTH - 16, top: 36, bottom: 300, x, y };
    canvas(frame.bottom + 50, &plot.labels.title, |area| {
        legend(area, plot.lines.iter().map(|line| &line.name), frame.left)?;
        frame.share_axis(area, &plot.labels.y)?;
        frame.number_axis(area, 9, &plot.labels.x)?;
        for (index, line) in plot.lines.iter().enumerate() {
            let points = outline(&frame, line.histogram);
            area.draw(&PathElement::new(points, palette::series(index).stroke_width(2)))?;
        }
        frame.base_line(area)
    })
}

/// Returns the edges that leave out at most [`TAIL`] of the values at each end.
fn bulk(histogram: &HistogramView) -> Option<(f64, f64)> {
    let allowed = histogram.total() as f64 * TAIL;
    let counts = histogram.counts.iter();
    let first = place_above(allowed, histogram.below, counts.clone())?;
    let last = histogram.counts.len() - place_above(allowed, histogram.above, counts.rev())?;
    Some((edge(histogram, first), edge(histogram, last)))
}

/// Returns the first place at which the sum of `outside` and the counts is more than allowed.
fn place_above<'c>(allowed: f64, outside: u64, mut counts: impl Iterator<Item = &'c u64>) -> Option<usize> {
    let mut seen = outside;
    counts.position(|count| {
        seen += count;
        seen as f64 > allowed
    })
}

fn edge(histogram: &HistogramView, bin: usize) -> f64 {
    histogram.from_angstrom + bin as f64 * histogram.width_angstrom
}

/// Returns the steps of a histogram, from the base line and back to it.
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
                labels: Labels::new("t", "Å", "share"),
                lines: vec![Line { name: "x".to_owned(), histogram: &histogram }],
            };
            assert!(lines(&plot).ends_with("</svg>\n"));
        }
    }
}
