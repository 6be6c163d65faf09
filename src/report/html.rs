//! Self-contained HTML pages: inline CSS and SVG, nothing to load. The only script is that of the 3D viewer, in pages that have one.

use std::fmt::Write as _;

use super::format::thousands;
use super::plot::palette;
use super::table::{Kind, Table};
use super::token_row::TokenRow;
use drift_core::job::Provenance;

/// The script of the 3D viewer.
const VIEWER: &str = include_str!("viewer.js");

/// The part of the style sheet without colours of plots.
const STYLE: &str = include_str!("page.css");

/// A page: a title, a sentence with the main result, sections.
#[derive(Debug, Clone, Default)]
pub struct Page {
    title: String,
    lead: String,
    body: String,
    /// Whether it needs the script of the viewer.
    has_views: bool,
}

/// A section that is being written. Each call appends to it. Text is escaped, and `` `code` `` is set as code.
#[derive(Debug, Clone, Default)]
pub struct Section {
    body: String,
    has_views: bool,
}

/// A molecule in the 3D viewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoleculeView {
    /// The line below it.
    pub caption: String,
    /// Its name for readers who cannot see it.
    pub label: String,
    /// The data of the viewer, as JSON.
    pub data: String,
    /// The static picture, where no script runs and in print.
    pub svg: String,
}

impl Page {
    /// Returns a page without sections.
    pub fn new(title: impl Into<String>, lead: impl Into<String>) -> Self {
        Page { title: title.into(), lead: lead.into(), ..Page::default() }
    }

    /// Adds a section, written by `write`.
    pub fn section(mut self, heading: &str, write: impl FnOnce(&mut Section)) -> Self {
        let mut section = Section::default();
        write(&mut section);
        self.has_views |= section.has_views;
        self.body.push_str(&format!("<section>\n<h2>{}</h2>\n{}</section>\n", inline(heading), section.body));
        self
    }

    /// Returns the whole document in UTF-8.
    pub fn render(&self) -> String {
        let (title, lead) = (escape(&self.title), inline(&self.lead));
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{css}</style>\n</head>\n<body>\n<main>\n\
             <h1>{heading}</h1>\n<p class=\"lead\">{lead}</p>\n{body}</main>\n{script}</body>\n</html>\n",
            css = css(),
            heading = inline(&self.title),
            body = self.body,
            script = if self.has_views { format!("<script>\n{VIEWER}</script>\n") } else { String::new() },
        )
    }
}

impl Section {
    /// Adds a smaller heading.
    pub fn heading(&mut self, text: &str) -> &mut Self {
        self.push(&format!("<h3>{}</h3>\n", inline(text)))
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: &str) -> &mut Self {
        self.push(&format!("<p>{}</p>\n", inline(text)))
    }

    /// Adds a list.
    pub fn list<S: AsRef<str>>(&mut self, items: impl IntoIterator<Item = S>) -> &mut Self {
        let items: String =
            items.into_iter().map(|item| format!("<li>{}</li>\n", inline(item.as_ref()))).collect();
        self.push(&format!("<ul>\n{items}</ul>\n"))
    }

    /// Adds a paragraph in small letters.
    pub fn note(&mut self, text: &str) -> &mut Self {
        self.push(&format!("<p class=\"note\">{}</p>\n", inline(text)))
    }

    /// Adds a text that a reader copies: a command.
    pub fn command(&mut self, text: &str) -> &mut Self {
        self.push(&format!("<pre><code>{}</code></pre>\n", escape(text)))
    }

    /// Adds a part that a reader opens.
    pub fn details(&mut self, summary: &str, write: impl FnOnce(&mut Section)) -> &mut Self {
        self.opened(false, summary, write)
    }

    /// Adds a part that a reader opens and closes.
    pub fn opened(&mut self, is_open: bool, summary: &str, write: impl FnOnce(&mut Section)) -> &mut Self {
        let mut inner = Section::default();
        write(&mut inner);
        self.has_views |= inner.has_views;
        let open = if is_open { " open" } else { "" };
        self.push(&format!(
            "<details{open}>\n<summary>{}</summary>\n{}</details>\n",
            inline(summary),
            inner.body
        ))
    }

    /// Adds molecules side by side, in the 3D viewer.
    pub fn views(&mut self, views: &[MoleculeView]) -> &mut Self {
        self.has_views = true;
        self.push("<div class=\"views\">\n");
        for MoleculeView { caption, label, data, svg } in views {
            self.push(&format!(
                "<figure data-label=\"{}\" data-molecule=\"{}\">\n<div class=\"wide still\">\n{}</div>\n\
                 <figcaption>{}</figcaption>\n</figure>\n",
                escape(label),
                escape(data),
                without_namespace(svg),
                inline(caption)
            ));
        }
        self.push("</div>\n")
    }

    /// Adds rows of tokens, position by position.
    pub fn tokens(&mut self, rows: &[TokenRow]) -> &mut Self {
        self.push("<div class=\"wide\">\n<table class=\"tokens\">\n<tbody>\n");
        for row in rows {
            let cells = row.cells.iter().map(|cell| {
                format!("<td><span class=\"{}\">{}</span></td>", cell.kind.class(), escape(&cell.text))
            });
            let cells: String = cells.collect();
            self.push(&format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", inline(&row.name)));
        }
        self.push("</tbody>\n</table>\n</div>\n")
    }

    /// Adds a table: each row is one row, however wide; a table wider than the window scrolls sideways.
    pub fn table(&mut self, table: &Table) -> &mut Self {
        self.push(&table_html(table))
    }

    /// Adds a plot of [`super::plot`], with a caption below.
    pub fn svg(&mut self, svg: &str, caption: &str) -> &mut Self {
        let inner = without_namespace(svg);
        let caption = inline(caption);
        self.push(&format!(
            "<figure>\n<div class=\"wide\">\n{inner}</div>\n<figcaption>{caption}</figcaption>\n</figure>\n"
        ))
    }

    /// Adds code in which `marks`, byte ranges in order, are highlighted.
    pub fn marked(&mut self, text: &str, marks: &[[usize; 2]]) -> &mut Self {
        let (mut out, mut at) = (String::new(), 0);
        let part = |from: usize, to: usize| escape(text.get(from..to).unwrap_or_default());
        for &[from, to] in marks {
            out.push_str(&format!("{}<mark>{}</mark>", part(at, from), part(from, to)));
            at = to;
        }
        out.push_str(&part(at, text.len()));
        self.push(&format!("<p><code>{out}</code></p>\n"))
    }

    /// Adds the provenance of the result: program, revision, inputs with their hashes.
    pub fn provenance(&mut self, provenance: &Provenance) -> &mut Self {
        let Provenance { program, version, revision, inputs } = provenance;
        self.paragraph(&format!("{program} {version}, revision {revision}."));
        if inputs.is_empty() {
            return self;
        }
        let mut table = Table::new("").code("input").number("bytes").code("SHA-256");
        for input in inputs {
            table.row([input.name.clone(), thousands(input.bytes), input.sha256.clone()]);
        }
        self.table(&table)
    }

    fn push(&mut self, html: &str) -> &mut Self {
        self.body.push_str(html);
        self
    }
}

/// Inside HTML the namespace is implied. Without it the page contains no URL at all.
fn without_namespace(svg: &str) -> String {
    svg.replace(" xmlns=\"http://www.w3.org/2000/svg\"", "")
}

fn table_html(table: &Table) -> String {
    let class = |kind| match kind {
        Kind::Text => "",
        Kind::Code => " class=\"c\"",
        Kind::Number => " class=\"n\"",
    };
    let mut out = String::new();
    out.push_str("<div class=\"wide\">\n<table>\n");
    if !table.title.is_empty() {
        out.push_str(&format!("<caption>{}</caption>\n", inline(&table.title)));
    }
    out.push_str("<thead>\n<tr>");
    for column in &table.columns {
        // The heading of a code column is ordinary text.
        let class = if column.kind == Kind::Number { " class=\"n\"" } else { "" };
        let title = inline(&column.title.replace('\n', " "));
        out.push_str(&format!("<th scope=\"col\"{class}>{title}</th>"));
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str(if row.strong { "<tr class=\"strong\">" } else { "<tr>" });
        for (index, column) in table.columns.iter().enumerate() {
            let cell = row.cells.get(index).map_or("", String::as_str);
            out.push_str(&format!("<td{}>{}</td>", class(column.kind), escape(cell)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    for note in &table.notes {
        out.push_str(&format!("<p class=\"note\">{}</p>\n", inline(note)));
    }
    out
}

/// Escapes the five characters of `text` that have a meaning in HTML, and replaces control characters.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Control characters are not allowed in HTML, and invisible.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Escapes the text and sets `` `code` `` as code; a lone backtick stays.
fn inline(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let mut out = String::new();
    for (index, part) in parts.iter().enumerate() {
        let closed = index + 1 < parts.len();
        let part = escape(part);
        // Writing to a string cannot fail.
        let _ = match (index % 2 == 1, closed) {
            (true, true) => write!(out, "<code>{part}</code>"),
            (true, false) => write!(out, "`{part}"),
            (false, _) => write!(out, "{part}"),
        };
    }
    out
}

/// Returns the style sheet. Plots are drawn for white paper; dark mode replaces the few colours that do not encode data.
fn css() -> String {
    let (ink, grid, paper) = (palette::INK, palette::GRID, palette::PAPER);
    format!(
        ":root{{color-scheme:light dark;--ink:{ink};--soft:#57606a;--line:{grid};--paper:{paper};--mark:#eef5fb}}
@media screen and (prefers-color-scheme:dark){{:root{{--ink:#e6edf3;--soft:#9da7b3;--line:#3a424c;--paper:#14181d;--mark:#1d2b38}}}}
svg text{{fill:var(--ink)}}
svg [stroke=\"{ink}\"]{{stroke:var(--ink)}}
svg [stroke=\"{grid}\"]{{stroke:var(--line)}}
svg rect[fill=\"{ink}\"]{{fill:var(--ink)}}
svg rect[fill=\"{paper}\"]{{fill:var(--paper)}}
{STYLE}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::plot::{Columns, Labels, columns};

    fn page() -> String {
        let mut table = Table::new("A <table> of").code("block").number("count");
        table.strong_row(["<1,2,3>&", "1,000"]).row(["short"]).note("All of `a<b`.");
        let svg = columns(&Columns {
            labels: Labels::new("T <in> context", "tokens", "blocks"),
            counts: vec![(20, 3), (21, 4)],
        });
        Page::new("Drift of <script>", "Use `0.0000,0.0000` & go.")
            .section("Blocks", |s| {
                s.heading("More").paragraph("a `lone tick").list(["<li>"]).table(&table).svg(&svg, "T < F");
            })
            .render()
    }

    #[test]
    fn everything_is_escaped() {
        let html = page();
        for text in ["<script>", "<in>", "<1,2,3>", "<table> of", "a<b", "<li><"] {
            assert!(!html.contains(text), "{text}");
        }
        assert!(html.contains("<title>Drift of &lt;script&gt;</title>"));
        assert!(html.contains("Use <code>0.0000,0.0000</code> &amp; go."));
        assert!(html.contains("<td class=\"c\">&lt;1,2,3&gt;&amp;</td><td class=\"n\">1,000</td>"));
        assert!(html.contains("<li>&lt;li&gt;</li>"));
        assert!(html.contains("a `lone tick"));
        assert_eq!(escape("a\u{7}'\"\n"), "a\u{fffd}&#39;&quot;\n");
    }

    #[test]
    fn a_row_of_a_wide_table_stays_one_row() {
        let mut table = Table::new("wide").code("model").code("logit processor");
        for column in 0..40 {
            table = table.number(&format!("figure {column}"));
        }
        table.row(["qwen-like", "allowlist 0.0000,0.0000,0.0000"].into_iter().chain(["+0.005 [-0.003]"; 40]));
        let html = table_html(&table);
        assert_eq!((html.matches("<table>").count(), html.matches("<tr>").count()), (1, 2), "{html}");
        assert_eq!((html.matches("allowlist").count(), html.matches("+0.005").count()), (1, 40));
    }

    #[test]
    fn the_script_stands_only_where_it_draws_and_loads_nothing() {
        let view = MoleculeView {
            caption: "`C<`".to_owned(),
            label: "C<".to_owned(),
            data: "{\"a\":\"<\"}".to_owned(),
            svg: "<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>\n".to_owned(),
        };
        let html = Page::new("", "")
            .section("", |section| {
                section.details("More", |section| _ = section.views(&[view]));
            })
            .render();
        assert_eq!(html.matches("<script>").count(), 1);
        assert!(html.contains("data-molecule=\"{&quot;a&quot;:&quot;&lt;&quot;}\""));
        for text in
            ["http", "//", "src=", "href=", "url(", "import", "fetch", "XMLHttp", "eval(", "innerHTML"]
        {
            assert!(!html.contains(text), "{text}");
        }
        assert!(!page().contains("<script>"));
    }

    #[test]
    fn nothing_is_loaded() {
        let html = page();
        for text in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link"] {
            assert!(!html.contains(text), "{text}");
        }
    }

    #[test]
    fn tags_are_balanced() {
        let html = page();
        for tag in ["section", "table", "tr", "td", "th", "figure", "svg", "text", "div", "p", "code", "main"]
        {
            let opened =
                html.matches(&format!("<{tag}>")).count() + html.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }
}
