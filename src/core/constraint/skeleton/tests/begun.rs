//! Prompts that end with the beginning of a text.

use super::*;

/// Behind a prompt that has the beginning of a text, rows go on as behind these tokens.
#[test]
fn prompts_may_begin_the_text() {
    let behind = |name: &str, skeleton: &str, begun: &str, prompt: Value| {
        let tokenizer = Tokenizer::load(Path::new(name)).unwrap();
        let own = Arc::into_inner(processor(tokenizer, skeleton).unwrap()).unwrap();
        let own = Arc::new(own.begun(begun));
        own.constraint(prompt.as_object().unwrap(), prompt["prompt"].as_str(), "prompt")
    };
    let salt = json!({"formula": "NaCl"});
    for name in ["qwen-like", "llama-like"] {
        let tokenizer = Tokenizer::load(Path::new(name)).unwrap();
        let begun = "4.0 4.0 5.6\n90 90 90\n";
        let made = behind(name, "crystal-text", begun, salt.clone()).unwrap();
        let whole = tokenizer.ids(CRYSTAL).unwrap();
        let ids = tokenizer.ids(begun).unwrap();
        assert!(whole.starts_with(&ids), "{name}");
        assert!(made.accepts(&whole[ids.len()..], true), "{name}");
        assert!(!made.accepts(&whole, true), "{name}");
        let conformer = json!({"smiles": "CO"});
        let made = behind(name, "enriched-smiles", "[CONFORMER]", conformer.clone()).unwrap();
        let text =
            "[SMILES]CO[/SMILES][CONFORMER][C]<0.0000,0.0000,0.0000>[O]<1.0000,0.0000,0.0000>[/CONFORMER]";
        let (prompt, whole) = (made.prompt_ids().unwrap(), tokenizer.ids(text).unwrap());
        let answer = tokenizer.ids("[SMILES]CO[/SMILES][CONFORMER]").unwrap().len();
        // Llama's prompts begin with a token of their own.
        assert!(prompt.ends_with(&whole[..answer]), "{name}");
        assert!(made.accepts(&whole[answer..], true), "{name}");
        // The graph begins there too.
        let whole = behind(name, "enriched-smiles", "", conformer).unwrap().graph().unwrap();
        let tokens = [whole, made.graph().unwrap()].map(|graph| graph.tokens().unwrap().tokens);
        assert_eq!(tokens[0].map(|count| count - 1), tokens[1], "{name}");
        for wrong in ["x", "4.0 4.0 5.6\n90 90 90\nK", "4.0 4.0 5.6\n90 90 90\nN"] {
            let error = behind(name, "crystal-text", wrong, salt.clone()).err().unwrap().to_string();
            assert!(error.contains("no text of this prompt begins with"), "{name} {wrong}: {error}");
        }
    }
    // Behind the marker nothing is free, whether a token ends there or not.
    let words =
        Arc::new(processor(words(), "simple-cif").ok().and_then(Arc::into_inner).unwrap().begun("<CIF>"));
    let made = words.constraint(salt.as_object().unwrap(), None, "prompt").unwrap();
    assert!(!made.row().is_free());
    let text = "P1\n4.69532317 4.69532317";
    assert!(made.accepts(&words.tokenizer().ids(text).unwrap(), false));
}
