//! `drift inspect` gives the users' own table of token counts.

use crate::support::{drift, shared};

/// Texts and their counts under Qwen3 and LLaMA-3.2: UPSTREAM section 3.
const TABLE: [(&str, u64, u64); 8] = [
    ("<0.0000,0.0000,0.0000>", 22, 16),
    ("<0.5,1.2,0.3>", 13, 13),
    ("<-1.0,2.5,-0.7>", 13, 13),
    ("<1.234,-2.345,0.987>", 19, 13),
    ("<-3.14,2.71,-1.61>", 16, 13),
    ("<12.345,-23.456,34.567>", 22, 13),
    ("<-1.2345,0.9876,-5.4321>", 22, 16),
    ("[C]<0.0000,0.0000,0.0000>=[O]<0.0000,0.0000,0.0000>", 47, 35),
];

fn check(tokenizer: &str, qwen: bool) {
    let mut arguments = vec!["inspect", "--json", "--tokenizer", tokenizer];
    arguments.extend(TABLE.iter().map(|row| row.0));
    let reports = drift(&arguments).good().json();
    for (row, report) in TABLE.iter().zip(reports.as_array().unwrap()) {
        let expected = if qwen { row.1 } else { row.2 };
        assert_eq!(report["count"], expected, "{tokenizer}: {}", row.0);
        assert_eq!(report["text"], row.0);
        let tokens = report["tokens"].as_array().unwrap();
        assert_eq!(tokens.len() as u64, expected);
        let free = tokens.iter().filter(|t| t["class"] == "free").count();
        assert_eq!(report["free"], free);
        assert_eq!(report["copy"], tokens.len() - free);
        let joined: String = tokens.iter().map(|t| t["text"].as_str().unwrap()).collect();
        assert_eq!(joined, row.0);
    }
    let skeleton = &reports[7];
    assert_eq!(
        (skeleton["free"].as_u64().unwrap(), skeleton["copy"].as_u64().unwrap()),
        if qwen { (40, 7) } else { (28, 7) }
    );
}

#[test]
fn the_embedded_tokenizers_count_like_the_real_ones() {
    check("qwen-like", true);
    check("llama-like", false);
}

#[test]
#[cfg_attr(not(has_shared), ignore = "needs ../shared or DRIFT_SHARED")]
fn the_real_tokenizers_give_the_users_table() {
    let shared = shared();
    for (name, qwen) in
        [("qwen3", true), ("qwen3-custom", true), ("llama-3.2", false), ("llama-3.2-chem", false)]
    {
        check(shared.join("tokenizers").join(name).to_str().unwrap(), qwen);
    }
}

#[test]
fn the_terminal_view_is_aligned() {
    let ran = drift(&["inspect", "[C]<-1.5,0.25,-10>[O]<0,0,0>"]).good();
    let stdout = ran.text();
    let expected = "\
[C|]<|-|1|.|5|,|0|.|2|5|,-|1|0|>[|O|]<|0|,|0|,|0|>
.. .. ^ ^ ^ ^ ^ ^ ^ ^ ^ ^^ ^ ^ .. . .. ^ ^ ^ ^ ^ .
23 tokens: 17 FREE, 6 COPY
";
    assert!(stdout.starts_with(expected), "{stdout}");
    assert!(stdout.contains("-1.5,0.25,-10"), "{stdout}");
}

/// Ring closures behind a `]` look like slots of an encoding without brackets, but a prompt has none.
#[test]
fn prompts_have_no_blocks() {
    let answer = "[CONFORMER][C]140126111;[C@H]130120110;1[C]100101102;[N]100101103;1[/CONFORMER]";
    let texts = [
        answer.to_owned(),
        format!("[SMILES]C[C@H]1CN1[/SMILES]{answer}"),
        format!("[SMILES][O-][N+]1(=O)[C@H]2[C@@H]12[/SMILES]{answer}"),
        "[SMILES]C[C@H]1CN1[/SMILES]".to_owned(),
    ];
    let mut arguments = vec!["inspect", "--json", "--encoding", "binned-v2:-13,13,0.104"];
    arguments.extend(texts.iter().map(String::as_str));
    let reports = drift(&arguments).good().json();
    for (report, blocks) in reports.as_array().unwrap().iter().zip([4, 4, 4, 0]) {
        let found = report["blocks"].as_array().unwrap();
        assert_eq!(found.len(), blocks, "{}", report["text"]);
        assert!(found.iter().all(|block| block["drift"] == 0), "{}", report["text"]);
        assert_eq!(report["free"], 9 * blocks, "{}", report["text"]);
    }
}
