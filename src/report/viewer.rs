//! Texts laid onto their references: a 3D viewer in the page, and a static picture where no script runs, and in print.

use serde_json::json;

use super::format::number;
use super::html::{MoleculeView, Section};
use super::plot::{MoleculePicture, marked_clashes, molecule};
use drift_data::audit::chemistry::{ChemistryFinding, ChemistryRule};
use drift_data::audit::{PicturedText, RankedText};

/// The largest number of kinds of broken rules that are listed for a text.
const NAMED: usize = 4;

/// What the pictures show, once a section.
const LEGEND: &str = "Dark: the text. Grey: its nearest reference. Dashed orange: a bond too long. Dotted purple: a bond too short. \
    Dotted red with a cross: atoms that clash. A blue diamond: wrong stereo. Drag, or use the arrow keys, to rotate; double-click to \
    reset.";

/// A row with its texts by rank.
pub(super) struct RankedRow<'r> {
    pub name: &'r str,
    /// Whether its pictures are open at first.
    pub is_open: bool,
    pub texts: &'r [RankedText],
}

/// Adds the best, the median and the worst text of each row.
pub(super) fn ranked_texts(section: &mut Section, rows: &[RankedRow<'_>]) {
    section.paragraph(
        "Of the texts that pass, the best, the median and the worst by RMSD to the nearest reference, over symmetric atom orders.",
    );
    section.note(LEGEND);
    for row in rows.iter().filter(|row| !row.texts.is_empty()) {
        let views = row.texts.iter().map(|ranked| view(Some(ranked.rank.name()), &ranked.text));
        let views: Vec<MoleculeView> = views.collect();
        section.opened(row.is_open, &format!("`{}`", row.name), |section| _ = section.views(&views));
    }
}

/// A row with the texts that break the most rules of chemistry.
pub(super) struct WorstRow<'r> {
    pub name: String,
    pub texts: &'r [PicturedText],
}

/// Adds the texts of each row that break the most rules of chemistry.
pub(super) fn worst_texts(section: &mut Section, rows: &[WorstRow<'_>]) {
    for (at, row) in rows.iter().enumerate() {
        section.heading(&format!("The worst texts of {}", row.name));
        if at == 0 {
            section.paragraph(
                "Texts that pass and break most rules for their size, one a molecule, laid onto the reference that is nearest \
                 atom by atom.",
            );
            section.note(LEGEND);
        }
        let views: Vec<MoleculeView> = row.texts.iter().map(|text| view(None, text)).collect();
        section.views(&views);
    }
}

fn view(rank: Option<&str>, text: &PicturedText) -> MoleculeView {
    let title = text.smiles.clone() + &text_number(text);
    let picture = MoleculePicture {
        title: &title,
        points: &text.points,
        reference: text.reference.as_deref(),
        elements: &text.elements,
        bonds: &text.bonds,
        findings: &text.findings,
    };
    let rank = rank.map(|rank| format!("{}: ", capital(rank)));
    MoleculeView {
        caption: rank.unwrap_or_default() + &summary(text),
        label: title.clone(),
        data: data(text, &picture),
        svg: molecule(&picture),
    }
}

/// Returns the data of the viewer, as JSON.
fn data(text: &PicturedText, picture: &MoleculePicture<'_>) -> String {
    let stereo = text.findings.iter().filter(|found| found.rule.is_stereo());
    let stereo: Vec<&[usize]> = stereo.map(|found| &*found.atoms).collect();
    let clashes: Vec<&[usize]> = marked_clashes(picture)
        .into_iter()
        .map(|found| &*found.atoms)
        .filter(|pair| pair.len() == 2)
        .collect();
    json!({
        "points": text.points,
        "reference": text.reference,
        "elements": text.elements,
        "bonds": text.bonds,
        "long": bonds_of(text, ChemistryRule::LongBond),
        "short": bonds_of(text, ChemistryRule::ShortBond),
        "clashes": clashes,
        "stereo": stereo,
    })
    .to_string()
}

/// Returns the indices of the bonds that break a rule.
fn bonds_of(text: &PicturedText, rule: ChemistryRule) -> Vec<usize> {
    let broken = |bond: &[usize; 2]| text.findings.iter().any(|found| is_of(found, rule, *bond));
    text.bonds.iter().enumerate().filter(|(_, bond)| broken(bond)).map(|(index, _)| index).collect()
}

fn is_of(found: &ChemistryFinding, rule: ChemistryRule, [a, b]: [usize; 2]) -> bool {
    found.rule == rule && (found.atoms == [a, b] || found.atoms == [b, a])
}

/// Returns the text, its RMSD and its broken rules, in one line.
fn summary(text: &PicturedText) -> String {
    let count = |rule: ChemistryRule| text.findings.iter().filter(|found| found.rule == rule).count();
    let counts = ChemistryRule::ALL.map(|rule| (count(rule), rule.name()));
    let mut broken: Vec<(usize, &str)> = counts.into_iter().filter(|(count, _)| *count > 0).collect();
    // The sort is stable: rules that are broken equally often keep their usual order.
    broken.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let more = broken.len().saturating_sub(NAMED);
    let mut named: Vec<String> =
        broken.iter().take(NAMED).map(|(count, rule)| format!("{count} × {rule}")).collect();
    if more > 0 {
        named.push(format!("{more} more kinds"));
    }
    let rmsd = text.rmsd_angstrom.map(|rmsd| format!("{} Å from the reference", number(rmsd)));
    let said: Vec<String> = rmsd.into_iter().chain((!named.is_empty()).then(|| named.join(", "))).collect();
    format!("`{}`{}: {}", text.smiles, text_number(text), said.join("; "))
}

/// `, text 3`; empty if the number of the text is not known.
fn text_number(text: &PicturedText) -> String {
    text.generation.map_or_else(String::new, |number| format!(", text {}", number + 1))
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use drift_data::audit::TextRank;

    #[test]
    fn a_view_has_the_marks_of_its_picture() {
        let found = |rule, atoms: &[usize]| ChemistryFinding {
            rule,
            atoms: atoms.to_vec(),
            value: None,
            limit: None,
        };
        let text = PicturedText {
            smiles: "CC<O".to_owned(),
            generation: Some(2),
            findings: vec![found(ChemistryRule::LongBond, &[2, 1]), found(ChemistryRule::Clash, &[0, 2])],
            elements: ["C", "C", "O"].map(str::to_owned).to_vec(),
            bonds: vec![[0, 1], [1, 2]],
            points: vec![[0.0; 3], [1.5, 0.0, 0.0], [3.9, 0.5, 0.4]],
            reference: None,
            rmsd_angstrom: Some(0.25),
        };
        let mut section = Section::default();
        let rows =
            [RankedRow { name: "none", is_open: true, texts: &[RankedText { rank: TextRank::Best, text }] }];
        ranked_texts(&mut section, &rows);
        let html = super::super::Page::new("", "").section("", |own| *own = section).render();
        assert!(
            html.contains("Best: <code>CC&lt;O</code>, text 3: 0.250 Å from the reference; 1 × "),
            "{html}"
        );
        for part in
            ["&quot;long&quot;:[1]", "&quot;short&quot;:[]", "&quot;clashes&quot;:[[0,2]]", "<details open>"]
        {
            assert!(html.contains(part), "{part}");
        }
    }
}
