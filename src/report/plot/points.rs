//! Points over two axes, of which the vertical one is logarithmic.

use plotters::element::{Circle, PathElement};
use plotters::style::Color;

use super::frame::{Anchor, Face, Frame, Labels, WIDTH, canvas, legend, write};
use super::palette;
use crate::report::format::thousands;

/// Series of points; the points of a series are joined.
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    /// The title and the labels of the axes, of which the vertical one is logarithmic.
    pub labels: Labels,
    /// Names and points of the series; a y of 0 is drawn at the bottom.
    pub series: Vec<(String, Vec<(f64, f64)>)>,
    /// Single points with their own names.
    pub marks: Vec<(String, (f64, f64))>,
}

/// Draws the points.
pub fn points(plot: &Points) -> String {
    let all = || plot.series.iter().flat_map(|(_, points)| points).chain(plot.marks.iter().map(|(_, at)| at));
    let x = all()
        .map(|(x, _)| *x)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    let x = if x.0 <= x.1 { (x.0.floor() - 0.5, x.1.ceil() + 0.5) } else { (0.0, 1.0) };
    // At least one decade, since the ends of the axis must differ.
    let decades = all().map(|(_, y)| y.max(1.0).log10()).fold(1.0, f64::max).ceil();
    let frame = Frame { left: 84, right: WIDTH - 16, top: 36, bottom: 340, x, y: (0.0, decades) };
    let pixel = |(x, y): (f64, f64)| (frame.x_pixel(x), frame.y_pixel(y.max(1.0).log10()));
    canvas(frame.bottom + 50, &plot.labels.title, |area| {
        legend(area, plot.series.iter().map(|(name, _)| name), frame.left)?;
        let marks = (0..=decades as u32).map(|power| (f64::from(power), thousands(10u64.pow(power))));
        frame.y_axis(area, &marks.collect::<Vec<_>>(), &plot.labels.y)?;
        let marks = (x.0.ceil() as i32..=x.1.floor() as i32).map(|tick| (f64::from(tick), tick.to_string()));
        frame.x_axis(area, &marks.collect::<Vec<_>>(), &plot.labels.x, true)?;
        for (index, (_, points)) in plot.series.iter().enumerate() {
            let color = palette::series(index);
            let pixels: Vec<(i32, i32)> = points.iter().map(|at| pixel(*at)).collect();
            for at in &pixels {
                area.draw(&Circle::new(*at, 4, color.filled()))?;
            }
            area.draw(&PathElement::new(pixels, color.stroke_width(2)))?;
        }
        for (name, at) in &plot.marks {
            let at = pixel(*at);
            area.draw(&Circle::new(at, 7, palette::INK_RGB.stroke_width(2)))?;
            let right = at.0 > (frame.left + frame.right) / 2;
            let (x, anchor) = if right { (at.0 - 12, Anchor::Right) } else { (at.0 + 12, Anchor::Left) };
            write(area, name, (x, at.1 - 12), anchor, Face::PLAIN)?;
        }
        frame.base_line(area)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_whatever_it_is_given() {
        for points_of in [vec![], vec![(9.0, 0.0)], vec![(9.0, 260.0), (11.0, 100_000.0)]] {
            let plot = Points {
                labels: Labels::new("t", "tokens", "new"),
                series: vec![("fused".to_owned(), points_of)],
                marks: vec![("base <1>".to_owned(), (22.5, 0.0))],
            };
            assert!(points(&plot).ends_with("</svg>\n"));
        }
    }
}
