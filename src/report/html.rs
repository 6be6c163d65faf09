//! Self-contained HTML pages: inline CSS and SVG, no scripts, nothing to load.

use std::fmt::Write as _;

use super::format::thousands;
use super::plot::palette;
use super::table::{Kind, Table};
use drift_core::job::Provenance;

/// The number of characters of a table row that fit into a window 1,100 pixels wide. Margins and a scroll bar leave 1,053 pixels, and a
/// digit takes up to 8.3 of them in the widest of the usual fonts (DejaVu Sans, 13 pixels).
const PAGE_CHARACTERS: usize = 126;

/// A page: a title, a sentence with the main result, sections.
#[derive(Debug, Clone, Default)]
pub struct Page {
    title: String,
    lead: String,
    body: String,
}

/// A section that is being written. Each call appends to it. Text is escaped, and `` `code` `` is set as code.
#[derive(Debug, Clone, Default)]
pub struct Section {
    body: String,
}

impl Page {
    /// A page without sections.
    pub fn new(title: impl Into<String>, lead: impl Into<String>) -> Self {
        Page { title: title.into(), lead: lead.into(), body: String::new() }
    }

    /// Adds a section, written by `write`.
    pub fn section(mut self, heading: &str, write: impl FnOnce(&mut Section)) -> Self {
        let mut section = Section::default();
        write(&mut section);
        self.body.push_str(&format!("<section>\n<h2>{}</h2>\n{}</section>\n", inline(heading), section.body));
        self
    }

    /// The whole document in UTF-8.
    pub fn render(&self) -> String {
        let (title, lead) = (escape(&self.title), inline(&self.lead));
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{css}</style>\n</head>\n<body>\n<main>\n\
             <h1>{heading}</h1>\n<p class=\"lead\">{lead}</p>\n{body}</main>\n</body>\n</html>\n",
            css = css(),
            heading = inline(&self.title),
            body = self.body,
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

    /// Adds a table. If it is wider than the page, its further columns follow below; on a narrow screen it scrolls sideways.
    pub fn table(&mut self, table: &Table) -> &mut Self {
        self.push(&table_html(table))
    }

    /// Adds a plot of [`super::plot`], with a caption below.
    pub fn svg(&mut self, svg: &str, caption: &str) -> &mut Self {
        // Inside HTML the namespace is implied. Without it the page contains no URL at all.
        let inner = svg.replace(" xmlns=\"http://www.w3.org/2000/svg\"", "");
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

fn table_html(table: &Table) -> String {
    let class = |kind| match kind {
        Kind::Text => "",
        Kind::Code => " class=\"c\"",
        Kind::Number => " class=\"n\"",
    };
    let mut out = String::new();
    for (block, columns) in table.blocks(Some(PAGE_CHARACTERS)).iter().enumerate() {
        out.push_str("<div class=\"wide\">\n<table>\n");
        if block == 0 && !table.title.is_empty() {
            out.push_str(&format!("<caption>{}</caption>\n", inline(&table.title)));
        }
        out.push_str("<thead>\n<tr>");
        for column in columns.iter().map(|&index| &table.columns[index]) {
            // The heading of a code column is ordinary text.
            let class = if column.kind == Kind::Number { " class=\"n\"" } else { "" };
            let title = inline(&column.title.replace('\n', " "));
            out.push_str(&format!("<th scope=\"col\"{class}>{title}</th>"));
        }
        out.push_str("</tr>\n</thead>\n<tbody>\n");
        for row in &table.rows {
            out.push_str(if row.strong { "<tr class=\"strong\">" } else { "<tr>" });
            for &index in columns {
                let cell = row.cells.get(index).map_or("", String::as_str);
                out.push_str(&format!("<td{}>{}</td>", class(table.columns[index].kind), escape(cell)));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n</table>\n</div>\n");
    }
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

/// The style sheet. Plots are drawn for white paper; dark mode replaces the few colours that do not encode data.
fn css() -> String {
    let (ink, grid, paper) = (palette::INK, palette::GRID, palette::PAPER);
    format!(
        ":root{{color-scheme:light dark;--ink:{ink};--soft:#57606a;--line:{grid};--paper:{paper};--mark:#eef5fb}}
@media (prefers-color-scheme:dark){{:root{{--ink:#e6edf3;--soft:#9da7b3;--line:#3a424c;--paper:#14181d;--mark:#1d2b38}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}}
main{{max-width:68rem;margin:0 auto;padding:1.5rem 1rem 4rem}}
h1{{font-size:1.7rem;line-height:1.2;margin:0 0 .5rem}}
h2{{font-size:1.25rem;margin:2.5rem 0 .5rem;padding-top:1rem;border-top:1px solid var(--line)}}
h3{{font-size:1.05rem;margin:1.5rem 0 .25rem}}
p,ul{{margin:.5rem 0;max-width:46rem}}
.lead{{font-size:1.1rem}}
.note,figcaption,caption{{color:var(--soft);font-size:.9rem}}
code,.c{{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:.92em}}
code{{overflow-wrap:anywhere}}
mark{{background:#ffd8d3;color:#8f1d12}}
.wide{{overflow-x:auto}}
table{{border-collapse:collapse;margin:.75rem 0;font-size:.8125rem;font-variant-numeric:tabular-nums}}
caption{{text-align:left;padding-bottom:.25rem}}
th,td{{padding:.3rem .75rem .3rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}}
th{{font-weight:600;vertical-align:bottom}}
.n{{text-align:right}}
td.n,td.c{{white-space:nowrap}}
.strong td{{font-weight:600;background:var(--mark)}}
figure{{margin:1rem 0}}
figcaption{{max-width:46rem}}
svg{{display:block;width:100%;min-width:30rem;max-width:45rem;height:auto}}
svg text{{fill:var(--ink)}}
svg [stroke=\"{ink}\"]{{stroke:var(--ink)}}
svg [stroke=\"{grid}\"]{{stroke:var(--line)}}
svg rect[fill=\"{paper}\"]{{fill:var(--paper)}}
"
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
    fn wide_tables_go_on_below_under_the_name_of_each_row() {
        let mut table = Table::new("wide").code("model").code("logit processor");
        for column in 0..12 {
            table = table.number(&format!("figure {column}"));
        }
        let cells =
            ["qwen-like", "allowlist 0.0000,0.0000,0.0000"].into_iter().chain(["+0.005 [-0.003]"; 12]);
        table.row(cells);
        let html = table_html(&table);
        let parts = html.matches("<table>").count();
        assert!(parts > 1, "{html}");
        assert_eq!(html.matches("allowlist").count(), parts, "each part says whose figures they are");
        assert_eq!(html.matches("+0.005").count(), 12, "each figure stands once");
        assert_eq!(html.matches("<caption>").count(), 1);
    }

    #[test]
    fn nothing_is_loaded() {
        let html = page();
        for text in ["http://", "https://", "src=", "href=", "url(", "@import", "<script", "<link"] {
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
