//! The trainer: gradients against finite differences and against candle's own, runs against each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use drift::corpus::{Conformers, EmbeddedConformers, Files, Frame, Part, ReadOptions};
use drift::encoding::Encoding;
use drift::error::Error;
use drift::job::{Job, Observer, Unit};
use drift::model::{Architecture, Config, Decoder, Device, Feed, HiddenStates, Room};
use drift::text::skeleton;
use drift::tokenizer::{Tokenizer, config_beside};
use drift::train::batches::{Batches, packs, thinned};
use drift::train::documents::{Document, Loss, TokenKind, pack};
use drift::train::network::{Network, Pack, Target};
use drift::train::optimizer::FlatWeights;
use drift::train::{Augmentation, Gradients, Optimizer, Schedule, Shape, Start, TrainPlan, kernels, train};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::support::{Folder, conformers, drift, words};
use super::train_reference::reference;

const VOCABULARY: usize = 37;

/// A decoder with odd sizes, several query heads to a pair, and nothing equal to anything else.
pub(crate) fn config(architecture: Architecture) -> Config {
    Config {
        architecture,
        vocab_size: VOCABULARY,
        hidden_size: 20,
        intermediate_size: 28,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 6,
        max_position_embeddings: 512,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000.0,
        rope_scaling: None,
        tie_word_embeddings: true,
        bos_token_id: None,
        eos_token_ids: vec![0],
        torch_dtype: None,
    }
}

/// Random tokens in documents of these lengths; weights differ, and some are zero.
pub(crate) fn random_pack(lengths: &[usize], seed: u64) -> Pack {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut pack = Pack::default();
    for &length in lengths {
        let start = pack.tokens.len();
        pack.tokens.extend((0..length).map(|_| random.random_range(0..VOCABULARY as u32)));
        pack.documents.push(start..start + length);
        let targets = (start..start + length - 1).filter(|row| row % 5 != 0);
        let targets = targets.map(|row| {
            let weight = 0.5 + (row % 3) as f32;
            Target { row, token: pack.tokens[row + 1], weight }
        });
        pack.targets.extend(targets.collect::<Vec<_>>());
    }
    pack
}

/// Weights larger than initial ones, so that no part of the decoder is nearly linear.
pub(crate) fn weights(network: &Network, seed: u64) -> Vec<f32> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let initial = network.layout.initial(seed);
    initial
        .into_iter()
        .map(|w| 8.0 * w * if w == 1.0 { random.random_range(0.05..0.2) } else { 1.0 })
        .collect()
}

/// The gradient of each parameter, by name.
fn gradients(network: &Network, flat: &[f32], pack: &Pack) -> (f64, Vec<(String, Vec<f32>)>) {
    let (loss, gradient) = network.gradient(&network.weights(flat).unwrap(), pack).unwrap();
    let named =
        network.layout.parameters.iter().map(|p| (p.name.clone(), gradient[p.range.clone()].to_vec()));
    (loss, named.collect())
}

#[test]
fn gradients_are_those_of_a_recorded_graph_in_f64() {
    for architecture in [Architecture::Qwen3, Architecture::Llama] {
        let config = config(architecture);
        // One document longer than a strip of attention.
        let pack = random_pack(&[9, 150, 2, 33], 1);
        let network = Network::new(&config, 150);
        let flat = weights(&network, 2);
        let (loss, ours) = gradients(&network, &flat, &pack);
        let (expected_loss, expected) = reference(&config, &network.layout, &flat, &pack);
        assert!((loss - expected_loss).abs() < 1e-5 * expected_loss, "{loss} {expected_loss}");
        for ((name, ours), expected) in ours.iter().zip(&expected) {
            let error =
                ours.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).powi(2)).sum::<f64>().sqrt();
            let size = expected.iter().map(|b| b * b).sum::<f64>().sqrt();
            assert!(size > 1e-3, "{architecture:?} {name} receives no gradient");
            assert!(error < 1e-4 * size, "{architecture:?} {name}: {error} of {size}");
        }
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let config = config(Architecture::Qwen3);
    let pack = random_pack(&[12, 7], 3);
    let network = Network::new(&config, 12);
    let flat = weights(&network, 4);
    let (_, ours) = gradients(&network, &flat, &pack);
    let loss = |flat: &[f32]| network.gradient(&network.weights(flat).unwrap(), &pack).unwrap().0;
    for (parameter, (name, gradient)) in network.layout.parameters.iter().zip(&ours) {
        // Along its own gradient a loss changes by the gradient's norm.
        let norm = gradient.iter().map(|g| g * g).sum::<f32>().sqrt();
        let step = 3e-3;
        let moved = |sign: f32| {
            let mut flat = flat.clone();
            let part = flat[parameter.range.clone()].iter_mut().zip(gradient);
            part.for_each(|(w, g)| *w += sign * step * g / norm);
            loss(&flat)
        };
        let slope = (moved(1.0) - moved(-1.0)) / (2.0 * f64::from(step));
        let error = (slope - f64::from(norm)).abs();
        assert!(error < 0.02 * f64::from(norm) + 2e-3, "{name}: {slope} {norm}");
    }
}

#[test]
fn documents_of_a_pack_do_not_see_each_other() {
    let config = config(Architecture::Qwen3);
    let network = Network::new(&config, 140);
    let flat = weights(&network, 5);
    let whole = random_pack(&[40, 3, 140], 6);
    let alone: Vec<Pack> = whole
        .documents
        .iter()
        .map(|rows| Pack {
            tokens: whole.tokens[rows.clone()].to_vec(),
            documents: std::iter::once(0..rows.len()).collect(),
            targets: whole
                .targets
                .iter()
                .filter(|target| rows.contains(&target.row))
                .map(|target| Target { row: target.row - rows.start, ..*target })
                .collect(),
        })
        .collect();
    let (loss, together) = gradients(&network, &flat, &whole);
    let apart: Vec<_> = alone.iter().map(|pack| gradients(&network, &flat, pack)).collect();
    assert!((loss - apart.iter().map(|(loss, _)| loss).sum::<f64>()).abs() < 1e-3);
    for (n, (name, together)) in together.iter().enumerate() {
        for (at, value) in together.iter().enumerate() {
            let sum: f32 = apart.iter().map(|(_, gradients)| gradients[n].1[at]).sum();
            assert!((value - sum).abs() < 1e-3 * (1.0 + sum.abs()), "{name} {at}: {value} {sum}");
        }
    }
}

#[test]
fn the_exponential_is_exact_to_f32() {
    let mut worst = 0.0f64;
    for n in -87_000..=87_000 {
        let x = n as f32 / 1000.0;
        worst = worst.max((f64::from(kernels::exp(x)) / f64::from(x).exp() - 1.0).abs());
    }
    assert!(worst < 3e-7, "{worst}");
    assert_eq!(kernels::exp(0.0), 1.0);
    assert_eq!(kernels::exp(f32::NEG_INFINITY), kernels::exp(-87.0));
}

#[test]
fn a_pass_sees_every_document_once() {
    let lengths: Vec<usize> = (0..500).map(|n| 10 + n * 7 % 90).collect();
    for shortest_first in [false, true] {
        let batches = || Batches::new(lengths.clone(), 300, 9, shortest_first);
        let seen: Vec<usize> = batches().take(400).flatten().collect();
        for pass in seen.chunks_exact(lengths.len()) {
            let mut pass = pass.to_vec();
            pass.sort_unstable();
            assert!(pass.into_iter().eq(0..lengths.len()));
        }
        assert!(batches().take(50).all(|batch| batch.iter().map(|&n| lengths[n]).sum::<usize>() >= 300));
        assert_ne!(seen[..500], seen[500..1000], "each pass has an order of its own");
        let first: Vec<usize> = seen[..500].iter().map(|&n| lengths[n]).collect();
        assert_eq!(first.is_sorted(), shortest_first);
        let batch = batches().next().unwrap();
        let batch: Vec<Document> = batch.iter().map(|&n| document(n, lengths[n])).collect();
        let cut = packs(&batch, 120);
        assert_eq!(cut.concat(), batch);
        assert!(
            cut.iter().all(|pack| pack.iter().map(|document| document.tokens.len()).sum::<usize>() <= 120)
        );
    }
    assert!(Batches::new(vec![], 300, 9, false).next().is_none());
    let long = [0, 1, 2].map(|n| document(n, 500));
    assert!(packs(&long, 120).into_iter().eq(long.chunks(1)));
    assert!(packs(&[], 120).is_empty());
}

/// A document of `length` tokens, 3 of them the prompt; after it one COPY token, then blocks of 4 FREE and 1 COPY.
fn document(n: usize, length: usize) -> Document {
    let tokens = (0..length as u32).map(|at| n as u32 * 1000 + at).collect();
    let kind = |at| if (at - 3) % 5 == 0 { TokenKind::Copy } else { TokenKind::Free };
    Document { tokens, prompt: 3, kinds: (3..length).map(kind).collect() }
}

#[test]
fn thinned_documents_keep_whole_blocks_more_and_more() {
    let documents: Vec<Document> = (0..40).map(|n| document(n, 104)).collect();
    let batches: Vec<Vec<Document>> = thinned(&documents, 400, 50, 3).collect();
    assert!(batches == thinned(&documents, 400, 50, 3).collect::<Vec<_>>());
    assert_eq!(batches.len(), 50);
    let mut kept = vec![];
    for batch in &batches {
        assert!(batch.iter().map(|document| document.tokens.len()).sum::<usize>() >= 400);
        let (mut blocks, mut all) = (0, 0);
        for document in batch {
            let whole = &documents[document.tokens[0] as usize / 1000];
            assert!(document.tokens.starts_with(&whole.tokens[..3]));
            assert_eq!(document.kinds.iter().filter(|kind| **kind == TokenKind::Copy).count(), 21);
            let runs: Vec<usize> =
                document.kinds.split(|kind| *kind == TokenKind::Copy).map(<[TokenKind]>::len).collect();
            assert!(runs.iter().all(|&run| run == 0 || run == 4), "{runs:?}");
            blocks += runs.iter().filter(|&&run| run == 4).count();
            all += 20;
        }
        kept.push(blocks as f64 / f64::from(all));
    }
    assert_eq!(kept[0], 0.0);
    let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((mean(&kept[..10]) - 0.09).abs() < 0.06 && (mean(&kept[40..]) - 0.89).abs() < 0.06, "{kept:?}");
    let seen: std::collections::HashSet<u32> =
        batches.iter().flatten().map(|document| document.tokens[0] / 1000).collect();
    assert_eq!(seen.len(), 40);
}

#[test]
fn the_split_is_by_molecule_and_has_its_shares() {
    let mut parts = std::collections::HashMap::new();
    for conformer in conformers(&EmbeddedConformers::default()) {
        let smiles = skeleton::smiles(&conformer.skeleton);
        assert_eq!(Part::from_conformer(&conformer), Part::of_smiles(&smiles));
        parts.insert(smiles, Part::from_conformer(&conformer));
    }
    let share = |part| parts.values().filter(|p| **p == part).count() as f64 / parts.len() as f64;
    // Five standard deviations of the share of 2,000 molecules.
    assert!((share(Part::Test) - 0.10).abs() < 0.034, "{}", share(Part::Test));
    assert!((share(Part::Validation) - 0.03).abs() < 0.019, "{}", share(Part::Validation));
    // The split of a published checkpoint must not move.
    let known = ["C", "CCO", "c1ccccc1", "CCCCCCCCCC"].map(Part::of_smiles);
    assert_eq!(known, [Part::Train, Part::Train, Part::Test, Part::Validation]);
}

#[test]
fn the_molecules_to_train_on_are_others_than_those_of_the_embedded_corpus() {
    // Without stereo marks, charges and the order of atoms: what isomers of a molecule have in common.
    let flat = |smiles: &str| {
        let mut letters: Vec<char> = smiles.chars().filter(|c| !"@/\\[]H+-".contains(*c)).collect();
        letters.sort_unstable();
        letters
    };
    let mut known: std::collections::HashMap<_, Vec<String>> = Default::default();
    let embedded = conformers(&EmbeddedConformers::default());
    let test = embedded.iter().filter(|conformer| Part::from_conformer(conformer) == Part::Test);
    for smiles in test.map(|conformer| skeleton::smiles(&conformer.skeleton)) {
        known.entry(flat(&smiles)).or_default().push(smiles);
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora/training.jsonl.gz");
    let mut conformers = 0;
    let check = &mut |batch: drift::corpus::Batch| {
        for conformer in &batch.conformers {
            let smiles = skeleton::smiles(&conformer.skeleton);
            for test in known.get(&flat(&smiles)).into_iter().flatten() {
                assert_eq!(
                    drift::chem::same_graph(test, &smiles).unwrap(),
                    drift::chem::SameGraph::Different,
                    "{smiles} is {test}"
                );
            }
        }
        conformers += batch.conformers.len();
        Ok(())
    };
    let summary =
        Files { inputs: vec![path], options: ReadOptions::default() }.read(&Job::default(), check).unwrap();
    assert_eq!((conformers, summary.skipped), (9_982, 0));
}

#[test]
fn needless_hydrogens_do_not_move_a_molecule() {
    let mut all = conformers(&EmbeddedConformers::default()).into_iter();
    let bare = all.find(|conformer| conformer.skeleton.contains("[O]")).unwrap();
    let mut spelled = bare.clone();
    spelled.skeleton = skeleton::with_hydrogens(&bare.skeleton).unwrap().into();
    assert_eq!(Part::from_conformer(&spelled), Part::from_conformer(&bare));
}

#[test]
fn documents_are_prompt_answer_and_end() {
    let tokenizer = Tokenizer::load("llama-like".as_ref()).unwrap();
    let config = config_beside("llama-like".as_ref()).unwrap();
    let end = tokenizer.end_of_text(config.as_ref()).unwrap();
    let begin = tokenizer.beginning_of_text(config.as_ref()).unwrap();
    let conformers = conformers(&small_corpus().files());
    let made = conformers.iter().map(|c| Document::new(c, &tokenizer, &end, Encoding::STRIPPED).unwrap());
    let document = &made.collect::<Vec<_>>()[1];
    let text = tokenizer.decode(&document.tokens).unwrap();
    let expected = "<|begin_of_text|>[SMILES]CCO[/SMILES][CONFORMER][C]<1.5,0,0.25>[C]<0.0001,0,-1.5>[O]<-1.2,0.3,1>\
                    [/CONFORMER]<|end_of_text|>";
    assert_eq!(text, expected);
    assert_eq!((document.tokens[0], document.tokens.last()), (begin.id, Some(&end.id)));
    assert_eq!(document.kinds.len(), document.tokens.len() - document.prompt);
    // Without weight for the prompt, the first target is the answer's first token.
    let packed = pack([document], Loss { copy: 2.0, ..Loss::default() });
    assert_eq!(packed.targets[0].row, document.prompt - 1);
    assert_eq!(packed.targets.len(), document.kinds.len());
    let heavy = packed.targets.iter().filter(|target| target.weight == 2.0).count();
    assert_eq!(heavy, document.kinds.iter().filter(|kind| **kind == TokenKind::Copy).count());
    assert_eq!(
        pack([document], Loss { prompt: 1.0, ..Loss::default() }).targets.len(),
        document.tokens.len() - 1
    );
}

#[test]
fn fine_tokens_begin_at_the_third_decimal() {
    let folder = Folder::new();
    folder.file("one.txt", "[C]<10.0200,-0.2345,0.3000>[C]<1.5000,0.2000,-0.3000>\n");
    let files = Files { inputs: vec![folder.path().join("one.txt")], options: ReadOptions::default() };
    // The first block, with its fine tokens in brackets.
    for (name, expected) in [
        ("qwen-like", "10.02(0)(0),-0.23(4)(5),0.30(0)(0)"),
        // Three digits are one token, and begin at the first decimal.
        ("llama-like", "10.020(0),-0.234(5),0.300(0)"),
        ("qwen-like-separate", "10.02(00),-0.23(45),0.30(00)"),
    ] {
        let tokenizer = Tokenizer::load(name.as_ref()).unwrap();
        let end = tokenizer.end_of_text(config_beside(name.as_ref()).unwrap().as_ref()).unwrap();
        let mut text = String::new();
        let document = Document::new(&conformers(&files)[0], &tokenizer, &end, Encoding::FIXED).unwrap();
        for (token, kind) in document.tokens[document.prompt..].iter().zip(&document.kinds) {
            let token = tokenizer.decode(&[*token]).unwrap();
            text += &if *kind == TokenKind::Fine { format!("({token})") } else { token };
        }
        let loss = Loss { copy: 2.0, fine: 0.25, ..Loss::default() };
        let fine = document.kinds.iter().filter(|kind| **kind == TokenKind::Fine).count();
        let light = pack([&document], loss).targets.iter().filter(|target| target.weight == 0.25).count();
        assert!(fine > 0 && light == fine);
        let block = text.split(['<', '>']).nth(1).unwrap();
        assert_eq!(block, expected, "{name}: {text}");
    }
}

#[test]
fn augmented_conformers_are_the_same_molecule_in_another_pose() {
    let conformer = &conformers(&small_corpus().files())[2];
    let turned = Augmentation { turned: true, ..Augmentation::default() };
    let poses: std::collections::BTreeSet<_> = (0..64)
        .map(|draw| turned.apply(conformer, Encoding::FIXED, 5, draw).coordinates)
        .inspect(|pose| {
            let signs: Vec<[i32; 3]> = (pose.iter().zip(&conformer.coordinates))
                .map(|(new, old)| [0, 1, 2].map(|axis| if new[axis] == old[axis] { 1 } else { -1 }))
                .collect();
            let ones = conformer.coordinates.iter().zip(&signs).filter(|(old, _)| !old.contains(&0));
            // A mirror image would have an odd number of turned axes.
            assert!(ones.clone().count() > 1);
            assert!(ones.clone().all(|(_, signs)| signs.iter().product::<i32>() == 1), "{signs:?}");
        })
        .collect();
    assert_eq!(poses.len(), 4);
    let framed = Augmentation { noise_angstrom: 0.01, frame: Frame::FirstAtoms, ..Augmentation::default() };
    for draw in 0..64 {
        let new = framed.apply(conformer, Encoding::FIXED, 5, draw).coordinates;
        assert_eq!((new[0], &new[1][1..], new[2][2]), ([0; 3], &[0, 0][..], 0), "noise leaves the frame");
        assert_ne!(new, framed.apply(conformer, Encoding::FIXED, 5, draw + 1).coordinates);
    }
    for name in ["binned-v2:-6.525,6.525,0.05", "binned-v2:-6.5,6.5,0.05"] {
        // Noise that is far smaller than a bin moves nothing, wherever the edges are: the frame is not that of rounded positions.
        let bins: Encoding = name.parse().unwrap();
        let mut binned = conformer.clone();
        let angstrom = |values| Encoding::FIXED.angstrom(values).unwrap();
        let mut positions: Vec<_> = conformer.coordinates.iter().map(angstrom).collect();
        drift::corpus::frame::first_atoms(&mut positions);
        binned.coordinates = positions.iter().map(|p| bins.quantize(*p).unwrap()).collect();
        let slight =
            Augmentation { noise_angstrom: 1e-6, frame: Frame::FirstAtoms, ..Augmentation::default() };
        assert_eq!(slight.apply(&binned, bins, 5, 0).coordinates, binned.coordinates, "{name}");
    }
    let noisy = Augmentation { noise_angstrom: 0.01, ..Augmentation::default() };
    let added: Vec<f64> = (0..400)
        .flat_map(|draw| {
            let new = noisy.apply(conformer, Encoding::FIXED, 5, draw).coordinates;
            let pairs = new.into_iter().flatten().zip(conformer.coordinates.iter().flatten());
            pairs.map(|(new, old)| f64::from(new - old)).collect::<Vec<_>>()
        })
        .collect();
    let mean = added.iter().sum::<f64>() / added.len() as f64;
    let deviation = (added.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / added.len() as f64).sqrt();
    assert!(mean.abs() < 6.0 && (deviation - 100.0).abs() < 5.0, "{mean} {deviation}");
    assert!(Augmentation::default().is_none() && !turned.is_none() && !noisy.is_none());
}

/// A few molecules, benzene for tests and decane for validation.
pub(crate) struct SmallCorpus(pub(crate) Folder);

pub(crate) fn small_corpus() -> SmallCorpus {
    let folder = Folder::new();
    let lines = [
        "[C]<0.1000,0.2000,0.3000>[C]<1.5000,0.2000,-0.3000>",
        "[C]<1.5000,0.0000,0.2500>[C]<0.0001,0.0000,-1.5000>[O]<-1.2000,0.3000,1.0000>",
        "[N]<1.4000,0.1000,0.2000>[C]<0.1000,0.0000,-0.5000>[C]<-1.4000,0.3000,0.9000>",
        "[C]<1.5000,0.7000,0.2500>#[N]<2.6000,0.0000,-1.5000>",
        "[c]<1.2000,0.7000,0.0000>1[c]<0.0000,1.4000,0.0000>[c]<-1.2000,0.7000,0.0000>[c]<-1.2000,-0.7000,0.0000>\
         [c]<0.0000,-1.4000,0.0000>[c]<1.2000,-0.7000,0.0000>1",
        "[C]<0.0000,0.0000,0.0000>(=[O]<1.2000,0.0000,0.0000>)[O]<-0.7000,1.1000,0.0000>",
    ];
    let decane: String = (0..10).map(|n| format!("[C]<{n}.2000,0.{}000,0.0000>", n % 2)).collect();
    folder.file("small.txt", format!("{}\n{decane}\n", lines.join("\n")));
    SmallCorpus(folder)
}

impl SmallCorpus {
    pub(crate) fn files(&self) -> Files {
        Files { inputs: vec![self.0.path().join("small.txt")], options: ReadOptions::default() }
    }
}

/// The shape of a plan for random weights.
fn shape(plan: &mut TrainPlan) -> &mut Shape {
    match &mut plan.start {
        Start::Random(shape) => shape,
        Start::Checkpoint(_) => panic!("starts at a checkpoint"),
    }
}

/// A plan for a tiny decoder.
pub(crate) fn plan(architecture: Architecture, steps: u64, output: std::path::PathBuf) -> TrainPlan {
    let (tokenizer, tokenizer_json) = Tokenizer::load_with_json("qwen-like".as_ref()).unwrap();
    TrainPlan {
        start: Start::Random(Shape {
            architecture,
            hidden: 32,
            layers: 2,
            heads: 2,
            kv_heads: 1,
            head_dim: 16,
            intermediate: 48,
            context: 256,
        }),
        gradients: Gradients::ByHand,
        schedule: Schedule {
            optimizer: Optimizer::AdamW,
            steps,
            batch_tokens: 300,
            learning_rate: 1e-2,
            warmup_steps: 5,
            final_share: 0.1,
            weight_decay: 0.1,
            clip: 1.0,
            outline_steps: steps.saturating_sub(1).min(2),
            shortest_first: true,
            new_rows_steps: 0,
        },
        loss: Loss::default(),
        augmentation: Augmentation::default(),
        encoding: Encoding::FIXED,
        seed: 7,
        tokenizer,
        tokenizer_json,
        tokenizer_config: config_beside("qwen-like".as_ref()).unwrap(),
        output,
        resume: false,
        save_steps: 4,
    }
}

#[test]
fn a_tiny_decoder_learns_a_tiny_corpus_by_heart() {
    let (corpus, out) = (small_corpus(), Folder::new());
    let report =
        train(&plan(Architecture::Llama, 200, out.path()), &corpus.files(), &Job::default()).unwrap();
    let (first, last) = (report.curve.first().unwrap(), report.curve.last().unwrap());
    assert!(first.loss > 3.0 && last.loss < 0.4, "{} {}", first.loss, last.loss);
    assert!(report.curve.iter().all(|point| point.gradient_norm > 0.0));
    assert_eq!((last.step, report.curve.len(), report.finished), (200, 20, true));
    let sizes =
        [report.corpus.train, report.corpus.validation, report.corpus.test].map(|part| part.conformers);
    assert_eq!(sizes, [5, 1, 1]);
    let stored = report.stored.unwrap();
    // The tags at least are known.
    assert!(stored.conformers == 1 && stored.copy_accuracy > Some(0.1) && stored.nats_per_token > Some(0.0));
}

/// Noise makes a long text of `<1,0,0>`.
#[test]
fn texts_that_noise_makes_too_long_are_learned_without_it() {
    let (corpus, out) = (Folder::new(), Folder::new());
    let chain = |n: usize| (0..n).map(|at| format!("[C]<{},{},0>", at % 10, at / 10)).collect::<String>();
    corpus.file("chains.txt", (25..33).map(chain).map(|text| text + "\n").collect::<String>());
    let files = Files { inputs: vec![corpus.path().join("chains.txt")], options: ReadOptions::default() };
    let trained = |context: usize, noise_angstrom: f64| {
        let mut plan = plan(Architecture::Qwen3, 4, out.path());
        shape(&mut plan).context = context;
        plan.encoding = Encoding::STRIPPED;
        plan.schedule.outline_steps = 0;
        plan.augmentation.noise_angstrom = noise_angstrom;
        let report = train(&plan, &files, &Job::default()).unwrap();
        let tokens = report.curve.last().unwrap().tokens;
        (tokens, out.read("model.safetensors"))
    };
    let plain = trained(480, 0.0);
    assert!(trained(480, 0.05) == plain);
    // Twice the longest text holds the shorter ones with noise.
    let noisy = trained(4096, 0.05);
    assert!(noisy.0 > plain.0 && noisy.1 != plain.1);
}

/// Sets the flag after so many steps.
struct Canceller {
    cancelled: Arc<AtomicBool>,
    steps: AtomicU64,
    training: AtomicBool,
}

impl Observer for Canceller {
    fn begin(&self, phase: &str, _: Option<u64>, _: Unit) {
        self.training.store(phase == "training", Ordering::Relaxed);
    }

    fn advance(&self, n: u64) {
        if self.training.load(Ordering::Relaxed) && self.steps.fetch_sub(n, Ordering::Relaxed) == n {
            self.cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn end(&self) {}
}

/// A job that is cancelled after `steps` steps.
pub(crate) fn cancelled_after(steps: u64) -> Job {
    let cancelled = Arc::new(AtomicBool::new(false));
    let steps = AtomicU64::new(steps);
    Job::new(Arc::new(Canceller { cancelled: cancelled.clone(), steps, training: false.into() }), cancelled)
}

#[test]
fn resumed_training_ends_in_the_same_bytes_for_any_number_of_threads() {
    let corpus = small_corpus();
    let (whole, parts) = (Folder::new(), Folder::new());
    let mut plan = plan(Architecture::Qwen3, 11, whole.path());
    let threads = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    threads(1).install(|| train(&plan, &corpus.files(), &Job::default())).unwrap();

    plan.output = parts.path();
    let stopped = threads(2).install(|| train(&plan, &corpus.files(), &cancelled_after(6))).unwrap_err();
    assert!(matches!(&stopped, Error::Stopped { kept } if kept.contains("6 of 11")), "{stopped}");
    assert_eq!(stopped.exit_code(), 130);
    plan.resume = true;
    threads(2).install(|| train(&plan, &corpus.files(), &Job::default())).unwrap();
    let names = |folder: &Folder| -> Vec<String> {
        let name = |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        folder.listing().keys().map(name).collect()
    };
    assert_eq!(names(&whole), names(&parts), "the state is gone in the end");
    for name in names(&whole) {
        assert!(whole.read(&name) == parts.read(&name), "{name}");
    }
}

#[test]
fn wherever_training_is_interrupted_the_checkpoint_is_the_same_in_the_end() {
    let corpus = small_corpus();
    let whole = Folder::new();
    let mut plan = plan(Architecture::Qwen3, 23, whole.path());
    train(&plan, &corpus.files(), &Job::default()).unwrap();
    // Steps without a save, with one (its validation is what is interrupted), and the last, whose validation is of all.
    for cancelled in [vec![1, 1, 2], vec![4], vec![8, 8], vec![10], vec![19, 20], vec![23]] {
        let parts = Folder::new();
        plan.output = parts.path();
        plan.resume = false;
        for steps in cancelled.clone() {
            let stopped = train(&plan, &corpus.files(), &cancelled_after(steps)).unwrap_err();
            assert!(matches!(stopped, Error::Stopped { .. }), "{stopped}");
            plan.resume = true;
        }
        train(&plan, &corpus.files(), &Job::default()).unwrap();
        for name in ["recipe.json", "model.safetensors"] {
            assert!(whole.read(name) == parts.read(name), "{name} after {cancelled:?}");
        }
    }
}

#[test]
fn a_state_of_another_recipe_or_a_damaged_one_is_refused() {
    let (corpus, out) = (small_corpus(), Folder::new());
    let mut plan = plan(Architecture::Qwen3, 9, out.path());
    train(&plan, &corpus.files(), &cancelled_after(5)).unwrap_err();
    plan.resume = true;
    let refusal = |plan: &TrainPlan| train(plan, &corpus.files(), &Job::default()).unwrap_err().to_string();

    plan.schedule.learning_rate = 2e-2;
    assert!(
        refusal(&plan).contains("another recipe: schedule.learning_rate was 0.01, is 0.02"),
        "{}",
        refusal(&plan)
    );
    plan.schedule.learning_rate = 1e-2;
    shape(&mut plan).layers = 1;
    assert!(refusal(&plan).contains("shape.layers was 2, is 1"));
    shape(&mut plan).layers = 2;

    let settings = plan.tokenizer_config.clone();
    plan.tokenizer_config.as_mut().unwrap()["eos_token"] = "<|im_end|>".into();
    assert!(
        refusal(&plan).contains("end_of_text was \"<|endoftext|>\", is \"<|im_end|>\""),
        "{}",
        refusal(&plan)
    );
    plan.tokenizer_config = settings;

    let options = ReadOptions { frame: Frame::Principal, ..ReadOptions::default() };
    let turned = Files { options, ..corpus.files() };
    let refused = train(&plan, &turned, &Job::default()).unwrap_err().to_string();
    assert!(refused.contains("was made with other texts of the same files"), "{refused}");

    let bytes = out.read("training.safetensors");
    out.file("training.safetensors", &bytes[..bytes.len() - 9]);
    assert!(refusal(&plan).contains("training.safetensors: is not a training state"));
    std::fs::remove_file(out.path().join("training.safetensors")).unwrap();
    assert!(refusal(&plan).contains("is not there; train without ‘resume’ first"));
}

#[test]
fn shapes_and_schedules_that_cannot_be_are_refused() {
    let (corpus, out) = (small_corpus(), Folder::new());
    let refusal = |change: fn(&mut TrainPlan)| {
        let mut plan = plan(Architecture::Qwen3, 2, out.path());
        change(&mut plan);
        train(&plan, &corpus.files(), &Job::default()).unwrap_err().to_string()
    };
    assert!(refusal(|plan| shape(plan).kv_heads = 3).contains("does not divide"));
    assert!(refusal(|plan| shape(plan).head_dim = 7).contains("odd"));
    assert!(refusal(|plan| shape(plan).hidden = 0).contains("hidden_size is 0"));
    assert!(refusal(|plan| plan.schedule.steps = 0).contains("‘steps’"));
    assert!(refusal(|plan| plan.schedule.outline_steps = 2).contains("‘outline steps’: is 2 of 2 updates"));
    assert!(refusal(|plan| plan.schedule.learning_rate = f64::NAN).contains("‘learning rate’"));
    assert!(refusal(|plan| shape(plan).context = 20).contains("longer than the context"));
    let diverged = refusal(|plan| {
        plan.schedule.steps = 50;
        plan.schedule.warmup_steps = 0;
        plan.schedule.learning_rate = 1e30;
    });
    assert!(diverged.contains("is not a number after"), "{diverged}");
}

#[test]
fn the_verb_writes_a_checkpoint_that_others_read() {
    let corpus = small_corpus();
    let out = corpus.0.path().join("model");
    let (text, out) = (corpus.0.path().join("small.txt"), out.to_str().unwrap().to_owned());
    let shape = "--hidden 32 --layers 1 --heads 2 --kv-heads 1 --head-dim 16 --intermediate 48 --context 256";
    let schedule = "--steps 3 --batch-tokens 200 --warmup 1 --json";
    let mut arguments = vec!["train-model", "--tokenizer", "llama-like", "--arch", "llama", "-o", &out];
    arguments.extend(["--corpus", text.to_str().unwrap()]);
    arguments.extend([words(shape), words(schedule)].concat());
    let report = drift(&arguments).good().json();
    assert_eq!((&report["finished"], &report["eos_token"]), (&true.into(), &"<|end_of_text|>".into()));
    assert_eq!(report["recipe"]["shape"]["architecture"], "llama");

    let config = Config::load(out.as_ref()).unwrap();
    assert_eq!((config.vocab_size, config.tie_word_embeddings), (2650, true));
    let tokenizer = Tokenizer::load(out.as_ref()).unwrap();
    let beside = config_beside(out.as_ref()).unwrap();
    let end = tokenizer.end_of_text(beside.as_ref()).unwrap();
    assert_eq!(config.eos_token_ids, [end.id]);
    let bytes = std::fs::read(corpus.0.path().join("model/model.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let embedding = tensors.tensor("model.embed_tokens.weight").unwrap();
    assert_eq!((embedding.dtype(), embedding.shape()), (safetensors::Dtype::BF16, &[2650, 32][..]));
    let weights: usize =
        tensors.tensors().iter().map(|(_, tensor)| tensor.shape().iter().product::<usize>()).sum();
    assert_eq!(report["parameters"], weights);
    assert!(tensors.tensor("model.layers.0.self_attn.q_norm.weight").is_err(), "Llama has no norms of heads");

    // The same command, the same bytes.
    drift(&arguments).good();
    assert!(std::fs::read(corpus.0.path().join("model/model.safetensors")).unwrap() == bytes);
}

#[test]
fn a_tokenizer_without_an_end_and_a_corpus_without_conformers_are_refused() {
    let folder = Folder::new();
    let (_, json) = Tokenizer::load_with_json("qwen-like".as_ref()).unwrap();
    let json = String::from_utf8(json).unwrap();
    let json = json.replace("<|endoftext|>", "<|nothing|>").replace("<|im_end|>", "<|no_end|>");
    folder.file("endless/tokenizer.json", json);
    let ran = folder.line("train-model --tokenizer endless --arch qwen3 --steps 1 -o out");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("endless: has no end-of-text token (EOS)"), "{}", ran.stderr);

    folder.file("chains.xyz", "2\nwater\nO 0 0 0\nC 0 0 1.1\n");
    let ran =
        folder.line("train-model --tokenizer qwen-like --arch qwen3 --corpus chains.xyz --steps 1 -o out");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("1 without SMILES"), "{}", ran.stderr);
    assert!(!folder.path().join("out").exists(), "nothing was written");
}

#[test]
fn updates_leave_numbers() {
    let network = Network::new(&config(Architecture::Qwen3), 64);
    let flat = weights(&network, 1);
    let nothing = vec![0.0; flat.len()];
    for optimizer in [Optimizer::AdamW, Optimizer::Muon] {
        let schedule =
            Schedule { optimizer, ..plan(Architecture::Qwen3, 9, std::path::PathBuf::new()).schedule };
        let mut weighted = FlatWeights::new(flat.clone());
        let mut update = |gradient: &[f32], count: f64| {
            let norm = weighted.update(gradient, count, &network.layout, &schedule).unwrap();
            let all = [&weighted.weights, &weighted.first, &weighted.second];
            assert!(all.into_iter().flatten().all(|number| number.is_finite()), "{optimizer:?}");
            (norm, weighted.clone())
        };
        // A batch without a target.
        let (norm, after) = update(&nothing, 0.0);
        assert_eq!((norm, after.step), (0.0, 1));
        for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut gradient = nothing.clone();
            gradient[flat.len() / 2] = wrong;
            let (norm, unchanged) = update(&gradient, 3.0);
            assert!(!norm.is_finite() && unchanged == after, "{optimizer:?} {wrong}");
        }
    }
}

#[test]
fn a_gradient_that_is_no_number_ends_training_before_it_is_saved() {
    let (corpus, out) = (small_corpus(), Folder::new());
    let heavy = Loss { copy: 3e38, fine: 3e38, ..Loss::default() };
    let plan = TrainPlan { loss: heavy, ..plan(Architecture::Qwen3, 4, out.path()) };
    let error = train(&plan, &corpus.files(), &Job::default()).unwrap_err().to_string();
    assert!(error.contains("the gradient is not a number after 0 steps"), "{error}");
    assert!(!out.path().join("model.safetensors").exists());
}

#[test]
fn the_engine_reads_a_checkpoint_and_gives_the_same_logits() {
    for architecture in [Architecture::Qwen3, Architecture::Llama] {
        let (corpus, out) = (small_corpus(), Folder::new());
        train(&plan(architecture, 8, out.path()), &corpus.files(), &Job::default()).unwrap();
        let decoder = Decoder::load(&out.path(), &Device::cpu()).unwrap();
        let network = Network::new(decoder.config(), 64);
        let flat = stored_weights(&network, &out.read("model.safetensors"));
        let mut random = ChaCha8Rng::seed_from_u64(8);
        let tokens: Vec<u32> = (0..60).map(|_| random.random_range(0..1549)).collect();
        let pack =
            Pack { documents: std::iter::once(0..60).collect(), targets: vec![], tokens: tokens.clone() };
        let ours = network.logits(&network.weights(&flat).unwrap(), &pack).unwrap();
        let mut cache = decoder.cache(1, 60, Room::Growing).unwrap();
        let hidden =
            decoder.forward(&[Feed { row: 0, tokens: &tokens }], &mut cache, HiddenStates::All).unwrap();
        let theirs = decoder.logits(&hidden).unwrap();
        let difference =
            (ours - theirs).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(difference < 1e-4, "{architecture:?}: {difference}");
    }
}

/// The weights of a checkpoint in the order of the layout.
fn stored_weights(network: &Network, bytes: &[u8]) -> Vec<f32> {
    let tensors = safetensors::SafeTensors::deserialize(bytes).unwrap();
    let of = |name: &str| tensors.tensor(name).unwrap().data().to_vec();
    let values = network.layout.parameters.iter().flat_map(|parameter| of(&parameter.name));
    let halves: Vec<u8> = values.collect();
    halves
        .chunks_exact(2)
        .map(|b| f32::from_bits(u32::from(u16::from_le_bytes([b[0], b[1]])) << 16))
        .collect()
}
