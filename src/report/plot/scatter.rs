//! Named points over two linear axes that begin at zero.

use plotters::element::Circle;
use plotters::style::Color;

use super::frame::{Anchor, Face, Frame, Labels, WIDTH, canvas, text_width, ticks, write};
use super::palette;

/// A scatter plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Scatter {
    /// The title and the labels of the axes.
    pub labels: Labels,
    /// The points.
    pub points: Vec<ScatterPoint>,
}

/// A point.
#[derive(Debug, Clone, PartialEq)]
pub struct ScatterPoint {
    /// The name, which is written beside the point unless it is hollow.
    pub name: String,
    /// The coordinates; not negative.
    pub at: (f64, f64),
    /// Whether the point is drawn as a ring.
    pub hollow: bool,
    /// Whether the point is drawn in the second colour, with its name in bold.
    pub strong: bool,
}

/// Draws the points, and the names of points that are not hollow, so that names do not overlap.
pub fn scatter(plot: &Scatter) -> String {
    let largest = |axis: fn(&ScatterPoint) -> f64| plot.points.iter().map(axis).fold(0.0, f64::max);
    let upper = |value: f64| if value > 0.0 { value * 1.05 } else { 1.0 };
    let (x, y) = (upper(largest(|p| p.at.0)), upper(largest(|p| p.at.1)));
    let frame = Frame { left: 84, right: WIDTH - 16, top: 24, bottom: 330, x: (0.0, x), y: (0.0, y) };
    canvas(frame.bottom + 50, &plot.labels.title, |area| {
        let marks = ticks(0.0, y, 5).into_iter().map(|tick| (tick, format!("{tick}")));
        frame.y_axis(area, &marks.collect::<Vec<_>>(), &plot.labels.y)?;
        frame.number_axis(area, 8, &plot.labels.x)?;
        let mut taken: Vec<(i32, i32, i32)> = Vec::new();
        for point in &plot.points {
            let at = (frame.x_pixel(point.at.0), frame.y_pixel(point.at.1));
            let color = palette::series(usize::from(point.strong));
            let style = if point.hollow { color.stroke_width(2) } else { color.filled() };
            area.draw(&Circle::new(at, 5, style))?;
            if point.hollow {
                continue;
            }
            let width = text_width(&point.name);
            let right = at.0 > (frame.left + frame.right) / 2;
            let (x, anchor) = if right { (at.0 - 10, Anchor::Right) } else { (at.0 + 10, Anchor::Left) };
            let (from, to) = if right { (x - width, x) } else { (x, x + width) };
            // Names move upwards in the lower half and downwards in the upper half.
            let low = at.1 > (frame.top + frame.bottom) / 2;
            let step = if low { -15 } else { 15 };
            let mut y = at.1 + if low { -12 } else { 0 };
            while taken.iter().any(|(a, b, used)| from < *b && *a < to && (used - y).abs() < 15) {
                y += step;
            }
            taken.push((from, to, y));
            write(area, &point.name, (x, y), anchor, Face { bold: point.strong, ..Face::CODE })?;
        }
        frame.base_line(area)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_whatever_it_is_given() {
        let point =
            |x, y| ScatterPoint { name: "<0>".to_owned(), at: (x, y), hollow: x > 1.0, strong: y > 1.0 };
        for points in
            [vec![], vec![point(0.0, 0.0)], vec![point(0.0, 50.1), point(0.5, 0.1), point(9.0, 0.0)]]
        {
            let names = points.iter().filter(|point| !point.hollow).count();
            let plot = Scatter { labels: Labels::new("t", "junk", "lost"), points };
            let svg = scatter(&plot);
            assert!(svg.ends_with("</svg>\n"));
            assert_eq!(svg.matches("&lt;0&gt;").count(), names);
        }
    }
}
