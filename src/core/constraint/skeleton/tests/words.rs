//! Slots of words, and what is stated behind a loop.

use super::*;

/// Returns a skeleton with a slot `w` of words and a digit `x`.
fn of_words(words: &[&str], text: &Value) -> String {
    json!({
        "schema": "drift.skeleton/1", "name": "words",
        "slots": {"w": {"kind": "words", "words": words}, "x": {"kind": "integer", "low": 0, "high": 9}},
        "items": {"a": {"from": "between", "least": 1, "most": 3}},
        "text": text,
    })
    .to_string()
}

/// Behind a mark a pre-tokenizer cuts otherwise than behind a letter, so that `(C` is a token there, or none.
#[test]
fn words_end_with_letters_or_with_marks() {
    for tokenizer in tokenizers() {
        for words in
            [&["C", "N", "-"][..], &["R", "S", "?"], &["single", "double", "="], &["a1", "b"], &["?", "!"]]
        {
            for template in ["{}({};{x}\n", "{}[{}.{x}\n", "{},{}={x}\n", "{}/{}  {x}"] {
                let text = json!([template.replace("{}", "{w}")]);
                let made = constraint(tokenizer.clone(), &of_words(words, &text), &json!({}));
                let made =
                    made.unwrap_or_else(|error| panic!("{} {words:?} {template}: {error}", tokenizer.name));
                let digits = |text: String| (0..10).map(move |x| text.replace("{x}", &x.to_string()));
                let both = words.iter().flat_map(|a| words.iter().map(move |b| [a, b]));
                let texts = both.map(|[a, b]| template.replacen("{}", a, 1).replacen("{}", b, 1));
                assert_masks(&tokenizer, &made, &texts.flat_map(digits).collect::<Vec<String>>());
            }
        }
    }
}

#[test]
fn a_number_behind_a_loop_is_that_of_the_loop() {
    let text = json!([{"each": "a", "text": "v {x};"}, "w {w}, total {a.count}"]);
    for tokenizer in tokenizers() {
        let made = constraint(tokenizer.clone(), &of_words(&["N"], &text), &json!({})).unwrap();
        let mut texts = vec![String::new()];
        let mut all = Vec::new();
        for count in 1..=3 {
            texts = texts.iter().flat_map(|text| (0..10).map(move |x| format!("{text}v {x};"))).collect();
            all.extend(texts.iter().map(|text| format!("{text}w N, total {count}")));
        }
        assert_masks(&tokenizer, &made, &all);
    }
}

/// Byte-level tokens of a word may be parts of its characters.
#[test]
fn words_beyond_ascii_are_followed_or_refused() {
    let text = json!(["({w} {x}"]);
    let mut refused = 0;
    for tokenizer in tokenizers() {
        let words = ["\u{b0}", "\u{e9}", "nm"];
        let texts: Vec<String> =
            words.iter().flat_map(|word| (0..10).map(move |x| format!("({word} {x}"))).collect();
        match constraint(tokenizer.clone(), &of_words(&words, &text), &json!({})) {
            Ok(made) => assert_masks(&tokenizer, &made, &texts),
            Err(error) => {
                assert!(
                    error.to_string().contains("parts of the characters of `"),
                    "{}: {error}",
                    tokenizer.name
                );
                refused += 1;
            }
        }
    }
    assert!(refused > 0);
}
