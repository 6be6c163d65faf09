//! Grammar rules of a skeleton's texts.

use super::rules::{Alternatives, Head, Rules, Symbol, by_target, uncached};
use crate::constraint::skeleton::{GraphPart, SkeletonGraph};
use crate::error::Result;

/// Returns the rules of a graph. Where the text goes on in one way, the rule does too.
///
/// # Errors
/// If slots have too many states.
pub(super) fn rules(graph: &SkeletonGraph) -> Result<Rules> {
    let mut rules = Rules::from([(Head::Start, vec![vec![Symbol::Rule(Head::Place(0))]])]);
    for chunk in 0..graph.chunks.len() {
        add_chunk(graph, chunk, &mut rules)?;
    }
    let mut waiting = vec![0];
    while let Some(place) = waiting.pop() {
        if rules.contains_key(&Head::Place(place)) {
            continue;
        }
        let mut ways = Alternatives::new();
        for edge in &graph.places[place] {
            let (mut way, mut at) = (Vec::new(), Some(edge));
            while let Some(edge) = at {
                way.extend(edge.part.iter().flat_map(|part| symbols(&part.0)));
                at = match edge.to.map(|to| (to, &graph.places[to][..])) {
                    Some((_, [only])) => Some(only),
                    Some((to, _)) => {
                        way.push(Symbol::Rule(Head::Place(to)));
                        waiting.push(to);
                        None
                    }
                    None => None,
                };
            }
            ways.push(way);
        }
        rules.insert(Head::Place(place), ways);
    }
    Ok(uncached(rules))
}

fn symbols(part: &GraphPart) -> Vec<Symbol> {
    match part {
        GraphPart::Run(ids) => ids.iter().map(|id| Symbol::Tokens(vec![*id])).collect(),
        GraphPart::Chunk(chunk, from) => vec![Symbol::Rule(Head::Part(*chunk, *from))],
    }
}

/// Adds a rule for each state of a part with slots.
fn add_chunk(graph: &SkeletonGraph, chunk: usize, rules: &mut Rules) -> Result<()> {
    let states = graph.states(chunk)?;
    for (number, state) in &states {
        let mut ways = Alternatives::new();
        for (then, ids) in by_target(&state.ids, &state.targets) {
            let mut way = vec![Symbol::Tokens(ids)];
            if !states[&then].ids.is_empty() {
                way.push(Symbol::Rule(Head::Part(chunk, then)));
            }
            ways.push(way);
        }
        if state.ends {
            ways.push(Vec::new());
        }
        rules.insert(Head::Part(chunk, *number), ways);
    }
    Ok(())
}
