//! A forest plot: estimates with their intervals, beside the value that means no difference.

use std::fmt::Write;

use super::frame::{TEXT, WIDTH, text_width, ticks};
use super::palette::{GRID, INK, PAPER};
use crate::report::format::shortened_middle;
use crate::report::html::escape;

/// The height of a row, in pixels.
const ROW: f64 = 20.0;

/// The height of an axis with its label, in pixels.
const AXIS: f64 = 56.0;

/// The largest number of characters of a label that are shown.
const LABEL: usize = 34;

/// The free space beyond the outermost interval, as a part of the axis.
const ROOM: f64 = 0.05;

/// A forest plot. Each panel has its own unit and axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    /// The description for readers who cannot see the plot.
    pub title: String,
    /// The panels, from top to bottom. Panels without rows are not drawn.
    pub panels: Vec<ForestPanel>,
}

/// The measures of one unit.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestPanel {
    /// The label below the axis, with the unit.
    pub label: String,
    /// The value that means no difference.
    pub zero: f64,
    /// The measures.
    pub measures: Vec<ForestMeasure>,
}

/// A measure, with a row for each of the things compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestMeasure {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: Vec<ForestRow>,
}

/// An estimate. The marker is filled if the interval leaves out the value of no difference.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestRow {
    /// The label on the left, set as code; up to 34 characters are shown.
    pub label: String,
    /// Whether the label is bold.
    pub strong: bool,
    /// The estimate, in the unit of the panel.
    pub estimate: f64,
    /// The ends of its interval; `None` if it has none.
    pub interval: Option<[f64; 2]>,
    /// The text on the right.
    pub text: String,
}

/// The horizontal places of a panel.
struct Axis {
    /// The values at both ends.
    ends: [f64; 2],
    /// The pixels at both ends.
    pixels: [f64; 2],
}

impl Axis {
    fn of(panel: &ForestPanel, pixels: [f64; 2]) -> Self {
        let rows = panel.measures.iter().flat_map(|measure| &measure.rows);
        let values = rows.flat_map(|row| row.interval.into_iter().flatten().chain([row.estimate]));
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((panel.zero, panel.zero), |(low, high), value| (low.min(value), high.max(value)));
        // An axis needs two different ends.
        let room = if high > low { (high - low) * ROOM } else { 1.0 };
        Axis { ends: [low - room, high + room], pixels }
    }

    fn place(&self, value: f64) -> f64 {
        let part = ((value - self.ends[0]) / (self.ends[1] - self.ends[0])).clamp(0.0, 1.0);
        self.pixels[0] + part * (self.pixels[1] - self.pixels[0])
    }
}

impl Forest {
    /// Returns the panels that are drawn.
    fn shown(&self) -> impl Iterator<Item = &ForestPanel> {
        self.panels.iter().filter(|panel| panel.rows().next().is_some())
    }

    /// Returns the pixels between which the axes lie: labels are on the left, texts on the right.
    fn columns(&self) -> [f64; 2] {
        let rows = || self.shown().flat_map(ForestPanel::rows);
        let labels = rows().map(|row| text_width(&shortened_middle(&row.label, LABEL))).max().unwrap_or(0);
        let names = self.shown().flat_map(|panel| &panel.measures).map(|measure| text_width(&measure.name));
        let texts = rows().map(|row| text_width(&row.text)).max().unwrap_or(0);
        let left = f64::from(labels.max(names.max().unwrap_or(0).min(220))) + 24.0;
        [left, (f64::from(WIDTH - texts) - 18.0).max(left + 120.0)]
    }
}

impl ForestPanel {
    fn rows(&self) -> impl Iterator<Item = &ForestRow> {
        self.measures.iter().flat_map(|measure| &measure.rows)
    }

    fn height(&self) -> f64 {
        let rows: usize = self.measures.iter().map(|measure| measure.rows.len() + 1).sum();
        ROW * rows as f64 + AXIS
    }
}

/// Draws the plot.
pub fn forest(plot: &Forest) -> String {
    let pixels = plot.columns();
    let height: f64 = plot.shown().map(ForestPanel::height).sum::<f64>() + 8.0;
    let width = f64::from(WIDTH).max(pixels[1] + 120.0);
    let mut out = format!(
        "<svg role=\"img\" aria-label=\"{}\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n<rect x=\"0\" y=\"0\" width=\"{width:.0}\" height=\"{height:.0}\" \
         fill=\"{PAPER}\"/>\n",
        escape(&plot.title)
    );
    let mut top = 8.0;
    for panel in plot.shown() {
        draw_panel(&mut out, panel, &Axis::of(panel, pixels), top);
        top += panel.height();
    }
    out.push_str("</svg>\n");
    out
}

fn draw_panel(out: &mut String, panel: &ForestPanel, axis: &Axis, top: f64) {
    let bottom = top + panel.height() - AXIS + 6.0;
    let [low, high] = axis.ends;
    for tick in ticks(low - panel.zero, high - panel.zero, 5) {
        let value = tick + panel.zero;
        let x = axis.place(value);
        line(out, [x, top], [x, bottom], GRID, 1.0);
        // Binary fractions are rounded to what a tick can have.
        let label = format!("{}", (value * 1e6).round() / 1e6);
        text(out, [x, bottom + 15.0], Word { anchor: "middle", code: false, strong: false, text: &label });
    }
    let zero = axis.place(panel.zero);
    line(out, [zero, top], [zero, bottom], INK, 1.0);
    let middle = f64::midpoint(axis.pixels[0], axis.pixels[1]);
    text(
        out,
        [middle, bottom + 35.0],
        Word { anchor: "middle", code: false, strong: false, text: &panel.label },
    );
    let mut y = top + ROW / 2.0;
    for measure in &panel.measures {
        let name = Word { anchor: "start", code: false, strong: true, text: &measure.name };
        text(out, [8.0, y + 4.5], name);
        y += ROW;
        for row in &measure.rows {
            draw_row(out, row, panel.zero, axis, y);
            y += ROW;
        }
    }
}

fn draw_row(out: &mut String, row: &ForestRow, zero: f64, axis: &Axis, y: f64) {
    let label = shortened_middle(&row.label, LABEL);
    let word = Word { anchor: "end", code: true, strong: row.strong, text: &label };
    text(out, [axis.pixels[0] - 12.0, y + 4.5], word);
    let x = axis.place(row.estimate);
    let mut filled = false;
    if let Some([low, high]) = row.interval {
        let [from, to] = [low, high].map(|end| axis.place(end));
        line(out, [from, y], [to, y], INK, 2.0);
        for end in [from, to] {
            line(out, [end, y - 4.0], [end, y + 4.0], INK, 1.5);
        }
        filled = low > zero || high < zero;
    }
    let fill = if filled { INK } else { PAPER };
    let _ = writeln!(
        out,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\" fill=\"{fill}\" stroke=\"{INK}\" stroke-width=\"1.5\"/>",
        x - 4.0,
        y - 4.0
    );
    text(
        out,
        [axis.pixels[1] + 12.0, y + 4.5],
        Word { anchor: "start", code: false, strong: false, text: &row.text },
    );
}

/// A text in the plot.
struct Word<'w> {
    anchor: &'static str,
    code: bool,
    strong: bool,
    text: &'w str,
}

/// Writing to a string cannot fail.
fn text(out: &mut String, [x, y]: [f64; 2], word: Word<'_>) {
    let family = if word.code { "monospace" } else { "sans-serif" };
    let weight = if word.strong { " font-weight=\"bold\"" } else { "" };
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-family=\"{family}\" font-size=\"{TEXT}\"{weight} \
         text-anchor=\"{}\" fill=\"{INK}\">{}</text>",
        word.anchor,
        escape(word.text)
    );
}

fn line(out: &mut String, [a, b]: [f64; 2], [c, d]: [f64; 2], colour: &str, width: f64) {
    let _ = writeln!(
        out,
        "<line x1=\"{a:.1}\" y1=\"{b:.1}\" x2=\"{c:.1}\" y2=\"{d:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(rows: Vec<ForestRow>) -> Forest {
        let measures = vec![ForestMeasure { name: "bond & error".to_owned(), rows }];
        let panels = vec![ForestPanel { label: "Å".to_owned(), zero: 0.0, measures }];
        Forest { title: "a < b".to_owned(), panels }
    }

    fn row(estimate: f64, interval: Option<[f64; 2]>) -> ForestRow {
        let (label, text) = ("allowlist <0>".to_owned(), "text".to_owned());
        ForestRow { label, strong: false, estimate, interval, text }
    }

    #[test]
    fn a_marker_is_filled_if_the_interval_leaves_out_zero() {
        let svg =
            forest(&panel(vec![row(0.1, Some([0.05, 0.2])), row(0.1, Some([-0.1, 0.2])), row(-0.3, None)]));
        let marker = |fill: &str| svg.matches(&format!("height=\"8\" fill=\"{fill}\"")).count();
        assert_eq!((marker(INK), marker(PAPER)), (1, 2), "{svg}");
        assert!(svg.contains(">bond &amp; error</text>") && svg.contains("aria-label=\"a &lt; b\""));
    }

    #[test]
    fn draws_whatever_it_is_given() {
        for rows in [vec![], vec![row(0.0, None)], vec![row(0.0, Some([0.0; 2]))], vec![row(f64::NAN, None)]]
        {
            let svg = forest(&panel(rows));
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && !svg.contains("inf"), "{svg}");
        }
    }
}
