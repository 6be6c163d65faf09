"""A peer of `drift mine` on 3DMolGen's CSV: counts by polars and regular expressions, streaming.

    python csv_peer.py IN.csv[.zst]

Prints as JSON: rows, rows by data set, distinct skeletons, atoms, numbers, numbers with four decimals and with a sign. That is
less than `drift mine IN.csv --json` counts: no statistics of tokens, no errors in texts, no coordinates. Needs polars.
"""

import json
import sys

import polars

BLOCK = r"<[^<>]*>"


def main(path):
    text = polars.col("enriched_text")
    counts = [
        polars.len().alias("rows"),
        text.str.replace_all(BLOCK, "<>").n_unique().alias("skeletons"),
        text.str.count_matches(BLOCK).sum().alias("atoms"),
        text.str.count_matches(r"[<,]-?\d+\.?\d*").sum().alias("numbers"),
        text.str.count_matches(r"\.\d{4}").sum().alias("four_decimals"),
        text.str.count_matches(r"[<,]-").sum().alias("signs"),
    ]
    rows = polars.scan_csv(path)
    [found] = rows.select(counts).collect(engine="streaming").to_dicts()
    by = rows.group_by("dataset").len().collect(engine="streaming")
    print(json.dumps({**found, "datasets": dict(sorted(by.rows()))}))


main(sys.argv[1])
