//! Formats numbers for people. The JSON contains the exact numbers.

use drift_core::Encoding;
use drift_data::corpus::SkippedRecord;
use drift_data::stats::{Interval, share};
pub use drift_data::stats::{signed, unsigned_zero};

/// Returns the name of an encoding: `fixed dialect`, `binned-v2:-13,13,0.104`.
pub fn encoding_name(encoding: Encoding) -> String {
    if encoding.is_decimal() { format!("{encoding} dialect") } else { encoding.to_string() }
}

/// Breaks `text` into lines of at most `width` characters. Lines are broken at spaces, but not before a unit; longer words stay whole.
/// Lines after the first are indented by `indent` spaces.
pub fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        // A unit stays on the line of its number.
        match words.last_mut().filter(|_| word.starts_with(['%', 'Å'])) {
            Some(number) => *number = format!("{number} {word}"),
            None => words.push(word.to_owned()),
        }
    }
    let mut out = String::new();
    let mut used = 0;
    for word in words {
        let own = word.chars().count();
        if used > 0 && used + 1 + own > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            used = indent;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(&word);
        used += own;
    }
    out
}

/// `1234567` as `1,234,567`.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns a count and what it counts: `1 conformer`, `1,000 conformers`. The plural of `one` ends in `s`.
pub fn counted(count: u64, one: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{} {one}{end}", thousands(count))
}

/// Returns a fraction of 1 as `49.9 %`: one decimal, below 1 % two significant digits. Only zero is `0 %`, and only one is `100 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", percent_digits(share))
}

/// Returns a count as a share, or `-` of nothing: 0 % would say that none is so.
pub fn percent_of(count: u64, of: u64) -> String {
    if of == 0 { "-".to_owned() } else { percent(share(count, of)) }
}

fn percent_digits(share: f64) -> String {
    let (sign, magnitude) = (if share < 0.0 { "-" } else { "" }, share.abs() * 100.0);
    if !share.is_finite() {
        return "-".to_owned();
    }
    match magnitude {
        0.0 => "0".to_owned(),
        100.0 => format!("{sign}100"),
        // This would round to 100.0, which is reserved for a share of one.
        m if (99.95..100.0).contains(&m) => format!("{sign}>99.9"),
        // Each limit is where rounding reaches the next power of ten: 0.996 is `1.0` and not `1.00`.
        m if m >= 0.995 => format!("{sign}{m:.1}"),
        m if m >= 0.0995 => format!("{sign}{m:.2}"),
        m if m >= 0.00995 => format!("{sign}{m:.3}"),
        m if m >= 0.001 => format!("{sign}{m:.4}"),
        _ => format!("{sign}<0.001"),
    }
}

/// Returns a value as `shown` shows it, or `-`.
pub fn or_dash<T>(value: Option<T>, shown: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), shown)
}

/// Returns an interval of shares: `[49.2, 50.6] %`. A narrower interval has more decimals.
pub fn percent_interval(interval: Interval) -> String {
    let (low, high) = (interval.low * 100.0, interval.high * 100.0);
    let decimals = decimals_for(high - low).max(1);
    let [low, high] = [low, high].map(|share| unsigned_zero(format!("{share:.decimals$}")));
    format!("[{low}, {high}] %")
}

/// Returns the number of decimals, 0 to 4, that shows a difference of `width` with two digits.
fn decimals_for(width: f64) -> usize {
    if width <= 0.0 { 1 } else { (1.0 - width.log10().floor()).clamp(0.0, 4.0) as usize }
}

/// Returns a length in Å without the unit: three significant digits, at most four decimals, since texts have no more.
pub fn angstrom(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    // This would round to 0.0000, which is reserved for zero.
    if magnitude < 0.00005 {
        return if value < 0.0 { "-<0.0001".to_owned() } else { "<0.0001".to_owned() };
    }
    number(value)
}

/// Returns three significant digits, at most four decimals, no exponent: `0.325`, `12.3`, `1,235`.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    let sign = if value < 0.0 { "-" } else { "" };
    match magnitude {
        0.0 => "0".to_owned(),
        m if !m.is_finite() => "-".to_owned(),
        // A larger value would be cast to the largest u64.
        m if m >= 999.5 && m < u64::MAX as f64 => format!("{sign}{}", thousands(m.round() as u64)),
        m if m >= 99.95 => format!("{value:.0}"),
        m if m >= 9.995 => format!("{value:.1}"),
        m if m >= 0.9995 => format!("{value:.2}"),
        m if m >= 0.09995 => format!("{value:.3}"),
        _ => unsigned_zero(format!("{value:.4}")),
    }
}

/// Returns two decimals, and no sign before zero.
pub fn hundredths(value: f64) -> String {
    unsigned_zero(format!("{value:.2}"))
}

/// Returns a bound as it was given, with two decimals or more: `0.75`, `0.125`.
pub fn bound(value: f64) -> String {
    let shown = hundredths(value);
    if shown.parse() == Ok(value) { shown } else { value.to_string() }
}

/// Shortens a text to `most` characters, and keeps its beginning and its end.
pub fn shortened_middle(text: &str, most: usize) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= most {
        return text.to_owned();
    }
    let (begin, end) = (most / 2, characters.len() - (most - most / 2 - 1));
    characters[..begin].iter().chain(&['…']).chain(&characters[end..]).collect()
}

/// Bytes in powers of 1000: `1.2 MB`.
pub fn bytes(count: u64) -> String {
    scaled(count as f64, &["B", "kB", "MB", "GB", "TB", "PB"])
}

/// Returns a rate such as `12.3 k conformers/s`.
pub fn rate(per_second: f64, of_what: &str) -> String {
    format!("{} {of_what}/s", scaled(per_second, &["", "k", "M", "G"]).trim_end())
}

/// Returns a duration: `850 ms`, `12.3 s`, `4 min 05 s`, `2 h 03 min`.
pub fn seconds(elapsed: f64) -> String {
    let whole = elapsed.round() as u64;
    match elapsed {
        t if t < 0.9995 => format!("{:.0} ms", t * 1000.0),
        t if t < 99.95 => format!("{} s", number(t)),
        t if t < 3599.5 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

fn scaled(value: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    // Whole bytes have no decimals.
    let shown = if unit == 0 && value.fract() == 0.0 { format!("{value:.0}") } else { number(value) };
    format!("{shown} {}", units[unit])
}

/// Counts as a line of blocks, `▁▂▅█`. The counts are summed into at most `width` characters.
pub fn sparkline(counts: &[u64], width: usize) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let chunk = counts.len().div_ceil(width.max(1)).max(1);
    let sums: Vec<u64> = counts.chunks(chunk).map(|part| part.iter().sum()).collect();
    let top = sums.iter().copied().max().unwrap_or(0);
    let levels = sums.into_iter().map(|sum| match sum {
        0 => ' ',
        // Rounded up, so that every count above zero is visible; in u128, since eight times a count may overflow.
        _ => LEVELS[(u128::from(sum) * 8).div_ceil(u128::from(top)) as usize - 1],
    });
    levels.collect()
}

/// Returns sentences on records that were skipped, and on rows that `--where` left out.
pub(super) fn unread(skipped: u64, records: &[SkippedRecord], left_out: u64) -> Vec<String> {
    let skipped =
        (skipped > 0).then(|| format!("{} skipped.{}", counted(skipped, "record"), first_of(records)));
    let left_out = (left_out > 0).then(|| format!("{} left out by --where.", counted(left_out, "row")));
    skipped.into_iter().chain(left_out).collect()
}

/// Returns a sentence on the first of some records, with a space before it; nothing without records.
pub(super) fn first_of(records: &[SkippedRecord]) -> String {
    records.first().map_or_else(String::new, |SkippedRecord { file, record, reason }| {
        format!(" The first: {file}: {record}: {reason}.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_labels_remain_different() {
        assert_eq!([0.75, 0.5, 0.125, 0.003, 2.0].map(bound), ["0.75", "0.50", "0.125", "0.003", "2.00"]);
        let labels =
            ["none", "automaton"].map(|lp| format!("some-organisation/a-model-with-a-very-long-name {lp}"));
        let shown = labels.map(|label| shortened_middle(&label, 30));
        assert_eq!(shown, ["some-organisati…long-name none", "some-organisati…name automaton"]);
        assert_eq!(shortened_middle("äöü", 3), "äöü");
    }

    #[test]
    fn lines_are_broken_at_spaces_but_not_before_a_unit() {
        assert_eq!(
            wrapped("blocks 49.8 % instead of 0.0 %; bond", 13, 2),
            "blocks 49.8 %\n  instead of\n  0.0 %; bond"
        );
        assert_eq!(wrapped("one two three four", 9, 2), "one two\n  three\n  four");
        assert_eq!(wrapped("aaaaaaaaaaaa b", 5, 0), "aaaaaaaaaaaa\nb");
        assert_eq!(wrapped("Å Å Å", 5, 0), "Å Å Å");
        assert_eq!(wrapped("", 5, 0), "");
    }

    #[test]
    fn counts() {
        for (count, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(count), text);
        }
    }

    #[test]
    fn a_share_of_nothing_is_none() {
        assert_eq!([(0, 0), (0, 4), (1, 4)].map(|(count, of)| percent_of(count, of)), ["-", "0 %", "25.0 %"]);
    }

    #[test]
    fn percents_never_round_to_nothing_or_all() {
        for (share, text) in [
            (0.0, "0 %"),
            (1.0, "100 %"),
            (0.99999, ">99.9 %"),
            (0.4987, "49.9 %"),
            (0.0537, "5.4 %"),
            (0.0012, "0.12 %"),
            (0.00012, "0.012 %"),
            (0.000012, "0.0012 %"),
            (1e-9, "<0.001 %"),
            (-0.25, "-25.0 %"),
            (0.999, "99.9 %"),
        ] {
            assert_eq!(percent(share), text, "{share}");
        }
        assert_eq!(percent_interval(Interval { low: 0.492, high: 0.506 }), "[49.2, 50.6] %");
        assert_eq!(percent_interval(Interval { low: 0.00012, high: 0.00019 }), "[0.0120, 0.0190] %");
        assert_eq!(percent_interval(Interval { low: -0.0001, high: 0.2 }), "[0.0, 20.0] %");
        assert_eq!(percent_interval(Interval { low: -0.001, high: 0.2 }), "[-0.1, 20.0] %");
    }

    #[test]
    fn differences_that_round_to_zero_have_no_sign() {
        for (value, text) in
            [(-0.0004, "0.000"), (0.0, "0.000"), (0.0004, "0.000"), (-0.0006, "-0.001"), (2.5, "+2.500")]
        {
            assert_eq!(signed(value, 3), text);
        }
    }

    #[test]
    fn lengths_and_numbers() {
        for (value, text) in [
            (0.0, "0"),
            (0.00041, "0.0004"),
            (0.00001, "<0.0001"),
            (0.3254, "0.325"),
            (-2.314, "-2.31"),
            (0.99951, "1.00"),
        ] {
            assert_eq!(angstrom(value), text);
        }
        for (value, text) in [
            (12.34, "12.3"),
            (999.6, "1,000"),
            (123.4, "123"),
            (-1234.0, "-1,234"),
            (f64::NAN, "-"),
            (-0.00001, "0.0000"),
            (-0.0001, "-0.0001"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn units() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_234_567), "1.23 MB");
        assert_eq!(rate(12_340.0, "conformers"), "12.3 k conformers/s");
        assert_eq!(rate(7.5, "tokens"), "7.50 tokens/s");
        for (elapsed, text) in [
            (0.85, "850 ms"),
            (12.34, "12.3 s"),
            (245.0, "4 min 05 s"),
            (7400.0, "2 h 03 min"),
            (0.9999, "1.00 s"),
        ] {
            assert_eq!(seconds(elapsed), text);
        }
    }

    #[test]
    fn sparklines() {
        assert_eq!(sparkline(&[0, 1, 4, 8], 10), " ▁▄█");
        assert_eq!(sparkline(&[1; 100], 10), "██████████");
        assert_eq!(sparkline(&[], 10), "");
    }
}
