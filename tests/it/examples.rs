//! The programs of `docs/examples` do what they say. `cargo test` also builds them as programs.

#[path = "../../docs/examples/count_tokens.rs"]
#[allow(dead_code, reason = "`main` is for the program")]
mod count_tokens;
#[path = "../../docs/examples/follow_automaton.rs"]
#[allow(dead_code, reason = "`main` is for the program")]
mod follow_automaton;
#[path = "../../docs/examples/judge_texts.rs"]
#[allow(dead_code, reason = "`main` is for the program")]
mod judge_texts;

#[test]
fn tokens_are_counted_in_their_text() {
    let expected = "\
47 tokens, 40 of them FREE
4.0182,1.0374,-0.0007: 20 tokens, drift -3
2.0988,-0.4840,-0.6413: 20 tokens, drift -3
";
    assert_eq!(count_tokens::report("qwen-like".as_ref()).unwrap(), expected);
}

#[test]
fn an_engine_of_ones_own_writes_its_molecule() {
    for smiles in ["CC=O", "c1ccoc1", "[Na+].[Cl-]"] {
        let text = follow_automaton::report(smiles, 1).unwrap();
        let answer = text.strip_prefix("[CONFORMER]").unwrap().strip_suffix("[/CONFORMER]").unwrap();
        let skeleton = drift::text::parse(answer, Default::default()).unwrap().skeleton;
        assert_eq!(skeleton, drift::text::skeleton::from_smiles(smiles).unwrap());
        assert_eq!(text, follow_automaton::report(smiles, 1).unwrap(), "a seed gives one text");
    }
    assert!(follow_automaton::report("C(", 1).is_err());
}

#[test]
fn texts_are_judged_in_memory() {
    let expected = "\
passes: true, valid: true, RMSD: 0.018 Å
passes: false, valid: false, RMSD: -; another molecule: CCN, not CCO
passes: true, valid: false, RMSD: 0.463 Å; bond too long 1-2: 2.331, limit 1.755; wrong angle 0-2: 3.371, limit 3.026; falls apart: 2.000, limit 1.000
";
    assert_eq!(judge_texts::report().unwrap(), expected);
}
