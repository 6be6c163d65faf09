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

/// A place in a graph: before an edge's part, within it, or behind the text.
#[derive(Debug, Clone, PartialEq)]
enum GraphSpot {
    Place(Option<usize>),
    Run(Arc<[u32]>, usize, Option<usize>),
    Chunk(usize, u32, Option<usize>),
}

/// The ways in which a text can be read by a graph alone.
struct GraphWalk<'g> {
    graph: &'g SkeletonGraph,
    spots: Vec<GraphSpot>,
}

impl GraphWalk<'_> {
    /// Returns the spots behind no token: parts that are over, and places without one, lead on.
    fn open(&self) -> Vec<GraphSpot> {
        let (mut open, mut waiting) = (Vec::new(), self.spots.clone());
        while let Some(spot) = waiting.pop() {
            match &spot {
                GraphSpot::Place(Some(place)) => {
                    for edge in &self.graph.places[*place] {
                        waiting.push(match &edge.part {
                            None => GraphSpot::Place(edge.to),
                            Some((GraphPart::Run(ids), _)) => GraphSpot::Run(ids.clone(), 0, edge.to),
                            Some((GraphPart::Chunk(chunk, from), _)) => {
                                GraphSpot::Chunk(*chunk, *from, edge.to)
                            }
                        });
                    }
                    continue;
                }
                GraphSpot::Run(ids, at, to) if *at == ids.len() => {
                    waiting.push(GraphSpot::Place(*to));
                    continue;
                }
                GraphSpot::Chunk(chunk, state, to)
                    if self.graph.chunks[*chunk].state(*state).unwrap().ends =>
                {
                    waiting.push(GraphSpot::Place(*to));
                }
                _ => {}
            }
            open.push(spot);
        }
        open
    }

    fn legal(&self) -> BTreeSet<u32> {
        let mut legal = BTreeSet::new();
        for spot in self.open() {
            match spot {
                GraphSpot::Place(_) => _ = legal.insert(EOS),
                GraphSpot::Run(ids, at, _) => _ = legal.insert(ids[at]),
                GraphSpot::Chunk(chunk, state, _) => {
                    legal.extend(self.graph.chunks[chunk].state(state).unwrap().ids.iter());
                }
            }
        }
        legal
    }

    fn advance(&mut self, token: u32) {
        let open = self.open();
        self.spots.clear();
        for spot in open {
            match spot {
                GraphSpot::Run(ids, at, to) if ids[at] == token => {
                    self.spots.push(GraphSpot::Run(ids, at + 1, to));
                }
                GraphSpot::Chunk(chunk, state, to) => {
                    let state = self.graph.chunks[chunk].state(state).unwrap();
                    if let Ok(at) = state.ids.binary_search(&token) {
                        self.spots.push(GraphSpot::Chunk(chunk, state.targets[at], to));
                    }
                }
                _ => {}
            }
        }
    }
}

/// A graph begins where the prompt ends, also within a run of fixed text or within a number: its masks are those of the row.
#[test]
fn graphs_begin_within_parts() {
    let salt = json!({"formula": "NaCl"});
    let (mut within, mut places) = (BTreeSet::new(), 0);
    for name in ["qwen-like", "llama-like", "words"] {
        for (skeleton, text) in [
            ("simple-cif", "<CIF>"),
            ("simple-cif", "<CIF>P1\n4.69532317 4.6953"),
            ("crystal-text", "4.0 4.0 5.6\n90 90 90\nNa\n"),
            ("crystal-text", "4.0 4.0 5.6\n90 9"),
            ("crystal-text", "4"),
        ] {
            let tokenizer = match name {
                "words" => words(),
                name => Tokenizer::load(Path::new(name)).unwrap(),
            };
            let own = Arc::into_inner(processor(tokenizer, skeleton).unwrap()).unwrap();
            let made = match Arc::new(own.begun(text)).constraint(salt.as_object().unwrap(), None, "prompt") {
                Ok(made) => made,
                Err(error) => {
                    // Its tokens of digits are longer than the beginning.
                    assert!(
                        name != "qwen-like" && error.to_string().contains("no text of this prompt begins")
                    );
                    continue;
                }
            };
            if made.row().border().is_none() {
                within.insert((name, skeleton, text));
            }
            let graph = made.graph().unwrap();
            assert!(graph.tokens().unwrap().tokens[0] > 0);
            let mut random = ChaCha8Rng::seed_from_u64(text.len() as u64);
            let mut walk = GraphWalk { graph: &graph, spots: vec![GraphSpot::Place(Some(0))] };
            let mut row = made.row();
            loop {
                let legal: Vec<u32> = walk.legal().into_iter().collect();
                assert_eq!(ids_of(row.mask()), legal, "{name} {skeleton} {text}");
                let id = legal[random.random_range(0..legal.len())];
                if id == EOS {
                    break;
                }
                walk.advance(id);
                row.advance(&made, id);
                places += 1;
            }
        }
    }
    assert!(within.len() >= 5 && places > 500, "{within:?} {places}");
    // Before the marker no graph begins: a grammar cannot leave the text before it free.
    let own = Arc::into_inner(processor(words(), "simple-cif").unwrap()).unwrap();
    let free = Arc::new(own.begun("Hm. ")).constraint(salt.as_object().unwrap(), None, "prompt").unwrap();
    assert!(free.has_marker() && free.row().is_free());
}
