//! A conformer as sticks over a reference, from two sides, with its faults marked.
//!
//! Each kind of mark has its own shape as well as its own colour. Nearer bonds are thicker and darker.

use std::fmt::Write;

use super::frame::{TEXT, WIDTH};
use super::palette::{GRID, INK, PAPER};
use crate::report::html::escape;
use drift_data::audit::chemistry::{ChemistryFinding, ChemistryRule};

/// The sticks of the reference: a grey half way between white and black.
const REFERENCE: &str = "#8C959F";

/// Okabe and Ito's vermilion, orange, reddish purple and blue, as in [`super::palette`].
const CLASH: &str = "#D55E00";
const LONG: &str = "#E69F00";
const SHORT: &str = "#CC79A7";
const STEREO: &str = "#0072B2";

/// The margin around each view and between views, in pixels.
const MARGIN: f64 = 26.0;

/// The largest height of a view, in pixels.
const MOST_HEIGHT: f64 = 300.0;

/// The largest number of clashes that are marked, so that the molecule stays visible.
const MARKED_CLASHES: usize = 12;

/// A conformer to draw. Atoms are given by index, coordinates in Å.
#[derive(Debug, Clone, Copy)]
pub struct MoleculePicture<'a> {
    /// The description for readers who cannot see the picture.
    pub title: &'a str,
    /// The conformer.
    pub points: &'a [[f64; 3]],
    /// The reference, which is drawn behind the conformer; its atoms have the same order.
    pub reference: Option<&'a [[f64; 3]]>,
    /// The element of each atom; carbon has no letter.
    pub elements: &'a [String],
    /// The bonds.
    pub bonds: &'a [[usize; 2]],
    /// The faults to mark.
    pub findings: &'a [ChemistryFinding],
}

/// One of the two views: the coordinates that run to the right, up, and toward the reader.
#[derive(Clone, Copy)]
struct View {
    name: &'static str,
    axes: [usize; 3],
    /// The sign of the coordinate toward the reader, so that both views are right-handed.
    toward: f64,
    left: f64,
}

/// A bond to draw.
struct Stick<'a> {
    /// Whether the bond belongs to the conformer, and not to the reference.
    own: bool,
    bond: &'a [usize; 2],
    ends: [[f64; 3]; 2],
    near: f64,
}

/// How coordinates in Å become pixels.
#[derive(Clone, Copy)]
struct Scale {
    pixels: f64,
    middle: [f64; 3],
    /// Half of the extent toward the reader, in Å.
    depth: [f64; 3],
    top: f64,
    height: f64,
}

/// Draws the conformer.
pub fn molecule(picture: &MoleculePicture<'_>) -> String {
    let half = f64::from(WIDTH) / 2.0;
    let legend = legend(picture);
    let rows = legend.len().div_ceil(3) as f64;
    let scale = Scale::of(picture, half - 2.0 * MARGIN, rows * 22.0 + 34.0);
    let height = scale.top + scale.height + 2.0 * MARGIN;
    let views = [
        View { name: "from the front", axes: [0, 1, 2], toward: 1.0, left: 0.0 },
        View { name: "turned by 90°", axes: [0, 2, 1], toward: -1.0, left: half },
    ];
    let mut out = format!(
        "<svg role=\"img\" width=\"{WIDTH}\" height=\"{height:.0}\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n<title>{}</title>\n<desc>{}</desc>\n\
         <rect x=\"0\" y=\"0\" width=\"{WIDTH}\" height=\"{height:.0}\" fill=\"{PAPER}\"/>\n",
        escape(picture.title),
        escape(&description(picture)),
    );
    for (index, (draw, name)) in legend.iter().enumerate() {
        let (x, y) = (MARGIN + 230.0 * (index % 3) as f64, 18.0 + 22.0 * (index / 3) as f64);
        out.push_str(&draw(x, y));
        text(&mut out, [x + 42.0, y + 4.5], "start", name);
    }
    for view in views {
        text(&mut out, [view.left + half / 2.0, scale.top - 8.0], "middle", view.name);
        draw_view(&mut out, picture, view, scale);
    }
    let x = half;
    let (top, bottom) = (scale.top, height - MARGIN);
    line(&mut out, [x, top], [x, bottom], &format!("stroke=\"{GRID}\" stroke-width=\"1\""));
    scale_bar(&mut out, scale, height);
    out.push_str("</svg>\n");
    out
}

/// Returns the description for readers who cannot see the picture.
fn description(picture: &MoleculePicture<'_>) -> String {
    let count = |rule: ChemistryRule| picture.findings.iter().filter(|found| found.rule == rule).count();
    let marks = ChemistryRule::ALL.into_iter().filter(|rule| count(*rule) > 0);
    let marks: Vec<String> = marks.map(|rule| format!("{} {}", count(rule), rule.name())).collect();
    let under = if picture.reference.is_some() { " over its nearest reference" } else { "" };
    let wrong = if marks.is_empty() { "nothing wrong".to_owned() } else { marks.join(", ") };
    format!("Sticks of {} atoms{under}, from two sides: {wrong}.", picture.points.len())
}

impl Scale {
    fn of(picture: &MoleculePicture<'_>, width: f64, top: f64) -> Self {
        let all = || picture.points.iter().chain(picture.reference.into_iter().flatten());
        let end = |axis: usize, worst: f64, choose: fn(f64, f64) -> f64| {
            all().map(|point| point[axis]).fold(worst, choose)
        };
        let low: [f64; 3] = std::array::from_fn(|axis| end(axis, f64::INFINITY, f64::min));
        let high: [f64; 3] = std::array::from_fn(|axis| end(axis, f64::NEG_INFINITY, f64::max));
        let extent = |axis: usize| (high[axis] - low[axis]).max(0.0);
        // A margin of half a bond around the outermost atoms.
        let (wide, tall) = (extent(0) + 1.0, extent(1).max(extent(2)) + 1.0);
        let pixels = (width / wide).min(MOST_HEIGHT / tall).min(40.0);
        Scale {
            pixels,
            middle: std::array::from_fn(|axis| f64::midpoint(low[axis], high[axis])),
            depth: std::array::from_fn(|axis| (extent(axis) / 2.0).max(0.5)),
            top,
            height: (tall * pixels).max(60.0),
        }
    }

    fn place(&self, view: View, point: [f64; 3]) -> [f64; 2] {
        let [right, up, _] = view.axes;
        let x = view.left + f64::from(WIDTH) / 4.0 + (point[right] - self.middle[right]) * self.pixels;
        let y = self.top + self.height / 2.0 - (point[up] - self.middle[up]) * self.pixels;
        [x, y]
    }

    /// Returns how near a point is to the reader, from 0 to 1.
    fn near(&self, view: View, point: [f64; 3]) -> f64 {
        let axis = view.axes[2];
        let depth = view.toward * (point[axis] - self.middle[axis]) / self.depth[axis];
        f64::midpoint(1.0, depth.clamp(-1.0, 1.0))
    }
}

fn middle(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|axis| f64::midpoint(a[axis], b[axis]))
}

fn draw_view(out: &mut String, picture: &MoleculePicture<'_>, view: View, scale: Scale) {
    let wrong = |rule: ChemistryRule, bond: &[usize; 2]| {
        let same = |found: &ChemistryFinding| found.atoms == bond || found.atoms == [bond[1], bond[0]];
        picture.findings.iter().any(|found| found.rule == rule && same(found))
    };
    let mut sticks = Vec::new();
    for (points, own) in [(picture.reference, false), (Some(picture.points), true)] {
        let Some(points) = points else { continue };
        let known = picture.bonds.iter().filter(|bond| bond.iter().all(|atom| *atom < points.len()));
        sticks.extend(known.map(|bond| {
            let ends = bond.map(|atom| points[atom]);
            Stick { own, bond, ends, near: scale.near(view, middle(ends[0], ends[1])) }
        }));
    }
    // The reference is drawn behind the conformer, and far bonds behind near ones.
    sticks.sort_by(|a, b| a.own.cmp(&b.own).then(a.near.total_cmp(&b.near)));
    for Stick { near, own, bond, ends } in sticks {
        let width = 2.0 + 2.5 * near;
        let opacity = if own { 0.5 + 0.5 * near } else { 0.35 + 0.4 * near };
        let colour = match own {
            false => REFERENCE,
            true if wrong(ChemistryRule::LongBond, bond) => LONG,
            true if wrong(ChemistryRule::ShortBond, bond) => SHORT,
            true => INK,
        };
        let dash = match colour {
            LONG => " stroke-dasharray=\"9 7\"",
            SHORT => " stroke-dasharray=\"1 6\"",
            _ => "",
        };
        let width = if dash.is_empty() { width } else { width + 1.5 };
        line(
            out,
            scale.place(view, ends[0]),
            scale.place(view, ends[1]),
            &format!(
                "stroke=\"{colour}\" stroke-width=\"{width:.1}\" stroke-opacity=\"{opacity:.2}\" \
                 stroke-linecap=\"round\"{dash}"
            ),
        );
    }
    letters(out, picture, view, scale);
    marks(out, picture, view, scale);
}

/// Writes the symbols of atoms other than carbon.
fn letters(out: &mut String, picture: &MoleculePicture<'_>, view: View, scale: Scale) {
    let mut atoms: Vec<(f64, [f64; 2], &str)> = picture
        .points
        .iter()
        .zip(picture.elements)
        .filter(|(_, element)| *element != "C")
        .map(|(point, element)| (scale.near(view, *point), scale.place(view, *point), &**element))
        .collect();
    atoms.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (_, [x, y], element) in atoms {
        let width = 5.0 + 5.5 * element.len() as f64;
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"13\" rx=\"5\" fill=\"{PAPER}\" \
             fill-opacity=\"0.75\"/>",
            x - width / 2.0,
            y - 6.5
        );
        let _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" font-family=\"sans-serif\" font-size=\"12\" text-anchor=\"middle\" \
             fill=\"{INK}\">{}</text>",
            y + 4.2,
            escape(element)
        );
    }
}

/// Returns the clashes to mark: the worst ones, by distance relative to the smallest allowed distance.
pub fn marked_clashes<'f>(picture: &MoleculePicture<'f>) -> Vec<&'f ChemistryFinding> {
    let mut found: Vec<&ChemistryFinding> =
        picture.findings.iter().filter(|found| found.rule == ChemistryRule::Clash).collect();
    // Relative distances make clashes of small and large atoms comparable.
    let room = |found: &ChemistryFinding| found.value.zip(found.limit).map_or(0.0, |(is, least)| is / least);
    found.sort_by(|a, b| room(a).total_cmp(&room(b)));
    found.truncate(MARKED_CLASHES);
    found
}

fn marks(out: &mut String, picture: &MoleculePicture<'_>, view: View, scale: Scale) {
    let place = |atom: &usize| picture.points.get(*atom).map(|point| scale.place(view, *point));
    let stereo = picture.findings.iter().filter(|found| found.rule.is_stereo());
    for found in marked_clashes(picture).into_iter().chain(stereo) {
        let atoms: Vec<[f64; 2]> = found.atoms.iter().filter_map(place).collect();
        match (found.rule, &atoms[..]) {
            (ChemistryRule::Clash, [a, b]) => out.push_str(&clash(*a, *b)),
            (ChemistryRule::Stereocentre, [a]) => out.push_str(&diamond(*a)),
            (ChemistryRule::DoubleBond, [a, b]) => {
                out.push_str(&diamond([f64::midpoint(a[0], b[0]), f64::midpoint(a[1], b[1])]));
            }
            _ => {}
        }
    }
}

/// Dots between two atoms that are too near, and a cross half way between them.
fn clash(a: [f64; 2], b: [f64; 2]) -> String {
    let mut out = String::new();
    let ink = format!("stroke=\"{CLASH}\" stroke-width=\"2\" stroke-linecap=\"round\"");
    line(&mut out, a, b, &format!("{ink} stroke-dasharray=\"1 5\""));
    let [x, y] = [f64::midpoint(a[0], b[0]), f64::midpoint(a[1], b[1])];
    line(&mut out, [x - 3.5, y - 3.5], [x + 3.5, y + 3.5], &ink);
    line(&mut out, [x - 3.5, y + 3.5], [x + 3.5, y - 3.5], &ink);
    out
}

fn diamond([x, y]: [f64; 2]) -> String {
    let points = [[x, y - 9.0], [x + 9.0, y], [x, y + 9.0], [x - 9.0, y]];
    let points: Vec<String> = points.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
    format!(
        "<polygon points=\"{}\" fill=\"none\" stroke=\"{STEREO}\" stroke-width=\"2.5\"/>\n",
        points.join(" ")
    )
}

type Sample = Box<dyn Fn(f64, f64) -> String>;

/// Returns the legend: the sticks, and the kinds of marks that occur, with their names.
fn legend(picture: &MoleculePicture<'_>) -> Vec<(Sample, String)> {
    let stick = |style: String| -> Sample {
        Box::new(move |x, y| {
            let mut out = String::new();
            line(&mut out, [x, y], [x + 34.0, y], &format!("{style} stroke-linecap=\"round\""));
            out
        })
    };
    let has = |rules: &[ChemistryRule]| picture.findings.iter().any(|found| rules.contains(&found.rule));
    let mut out = vec![(stick(format!("stroke=\"{INK}\" stroke-width=\"4\"")), "text".to_owned())];
    if picture.reference.is_some() {
        let style = format!("stroke=\"{REFERENCE}\" stroke-width=\"4\" stroke-opacity=\"0.7\"");
        out.push((stick(style), "nearest reference".to_owned()));
    }
    let all = picture.findings.iter().filter(|found| found.rule == ChemistryRule::Clash).count();
    if all > 0 {
        let name = match all {
            all if all > MARKED_CLASHES => format!("clash, the worst {MARKED_CLASHES} of {all}"),
            _ => "clash".to_owned(),
        };
        out.push((Box::new(|x, y| clash([x, y], [x + 34.0, y])), name));
    }
    if has(&[ChemistryRule::LongBond]) {
        let style = format!("stroke=\"{LONG}\" stroke-width=\"5\" stroke-dasharray=\"9 7\"");
        out.push((stick(style), "bond too long".to_owned()));
    }
    if has(&[ChemistryRule::ShortBond]) {
        let style = format!("stroke=\"{SHORT}\" stroke-width=\"5\" stroke-dasharray=\"1 6\"");
        out.push((stick(style), "bond too short".to_owned()));
    }
    if has(&[ChemistryRule::Stereocentre, ChemistryRule::DoubleBond]) {
        out.push((Box::new(|x, y| diamond([x + 17.0, y])), "wrong stereo".to_owned()));
    }
    out
}

/// Draws a scale bar of 2 Å in the lower left corner.
fn scale_bar(out: &mut String, scale: Scale, height: f64) {
    let (x, y) = (MARGIN, height - 14.0);
    let end = x + 2.0 * scale.pixels;
    line(out, [x, y], [end, y], &format!("stroke=\"{INK}\" stroke-width=\"2\""));
    text(out, [end + 8.0, y + 4.5], "start", "2 Å");
}

/// Writing to a string cannot fail.
fn line(out: &mut String, [a, b]: [f64; 2], [c, d]: [f64; 2], style: &str) {
    let _ = writeln!(out, "<line x1=\"{a:.1}\" y1=\"{b:.1}\" x2=\"{c:.1}\" y2=\"{d:.1}\" {style}/>");
}

fn text(out: &mut String, [x, y]: [f64; 2], anchor: &str, words: &str) {
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-family=\"sans-serif\" font-size=\"{TEXT}\" text-anchor=\"{anchor}\" \
         fill=\"{INK}\">{}</text>",
        escape(words)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rule: ChemistryRule, atoms: &[usize]) -> ChemistryFinding {
        ChemistryFinding { rule, atoms: atoms.to_vec(), value: None, limit: None }
    }

    #[test]
    fn every_mark_has_a_shape_and_a_legend() {
        let points = [[0.0; 3], [1.5, 0.0, 0.0], [3.9, 0.5, 0.4], [0.2, 0.3, 0.5]];
        let elements = ["C", "C", "<", "Cl"].map(str::to_owned);
        let findings = [
            found(ChemistryRule::Clash, &[0, 3]),
            found(ChemistryRule::LongBond, &[1, 2]),
            found(ChemistryRule::ShortBond, &[2, 3]),
            found(ChemistryRule::Stereocentre, &[1]),
            found(ChemistryRule::Fragments, &[]),
            found(ChemistryRule::Clash, &[0, 99]),
        ];
        let bonds = [[0, 1], [1, 2], [2, 3]];
        let mut picture = MoleculePicture {
            title: "A <text>",
            points: &points,
            reference: Some(&points),
            elements: &elements,
            bonds: &bonds,
            findings: &findings,
        };
        let svg = molecule(&picture);
        assert!(svg.starts_with("<svg role=\"img\"") && svg.contains("<title>A &lt;text&gt;</title>"));
        assert!(
            svg.contains("2 clash, 1 bond too short, 1 bond too long, 1 falls apart, 1 wrong stereocentre.")
        );
        for name in ["nearest reference", "clash", "bond too long", "bond too short", "wrong stereo", "2 Å"]
        {
            assert!(svg.contains(&format!(">{name}</text>")), "{name}");
        }
        // Two views and the legend.
        assert_eq!(svg.matches("<polygon").count(), 3);
        assert_eq!(svg.matches(&format!("{REFERENCE}\" stroke-width")).count(), 2 * 3 + 1);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        picture.findings = &[];
        picture.reference = None;
        let svg = molecule(&picture);
        assert!(
            !svg.contains("clash") && svg.contains("nothing wrong") && !svg.contains("nearest reference")
        );
    }

    #[test]
    fn one_atom_and_none_are_drawn() {
        let elements = ["Na".to_owned()];
        let one = MoleculePicture {
            title: "",
            points: &[[1.0; 3]],
            reference: None,
            elements: &elements,
            bonds: &[],
            findings: &[],
        };
        assert!(molecule(&one).contains(">Na</text>"));
        let none = molecule(&MoleculePicture { points: &[], elements: &[], ..one });
        assert!(!none.contains("NaN") && none.ends_with("</svg>\n"));
    }
}
