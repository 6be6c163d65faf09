//! Shares as functions of a quantity, several curves over one axis.

use plotters::element::PathElement;
use plotters::style::Color;

use super::frame::{Frame, Labels, WIDTH, canvas, legend};
use super::palette;

/// Shares, 0 to 1, as functions of one quantity.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    /// The title and the labels of the axes, of which the vertical one has shares.
    pub labels: Labels,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The name in the legend.
    pub name: String,
    /// Pairs of quantity and share, sorted by quantity.
    pub points: Vec<(f64, f64)>,
}

/// Draws the curves from 0 to the largest quantity.
pub fn curves(plot: &Curves) -> String {
    let points = plot.curves.iter().flat_map(|curve| &curve.points);
    let most = points.map(|point| point.0).fold(0.0, f64::max);
    let x = (0.0, if most > 0.0 { most } else { 1.0 });
    let frame = Frame { left: 84, right: WIDTH - 16, top: 36, bottom: 300, x, y: (0.0, 1.0) };
    canvas(frame.bottom + 50, &plot.labels.title, |area| {
        legend(area, plot.curves.iter().map(|curve| &curve.name), frame.left)?;
        frame.share_axis(area, &plot.labels.y)?;
        frame.number_axis(area, 7, &plot.labels.x)?;
        for (index, curve) in plot.curves.iter().enumerate() {
            let pixels = curve.points.iter().map(|(x, y)| (frame.x_pixel(*x), frame.y_pixel(*y)));
            let pixels: Vec<(i32, i32)> = pixels.collect();
            area.draw(&PathElement::new(pixels, palette::series(index).stroke_width(2)))?;
        }
        frame.base_line(area)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_from_the_lower_left_to_the_upper_right() {
        let svg = curves(&Curves {
            labels: Labels::new("Coverage", "threshold, Å", "coverage"),
            curves: vec![Curve { name: "COV-R".to_owned(), points: vec![(0.0, 0.0), (3.0, 1.0)] }],
        });
        assert!(svg.starts_with("<svg") && svg.contains("COV-R") && svg.contains("threshold, Å"));
        assert!(svg.contains("84,300 704,36"), "{svg}");
    }
}
