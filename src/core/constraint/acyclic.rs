//! Values of the nodes of a graph without circles, each computed from those behind it.

/// Returns the values of these nodes and of all behind them. `behind` has the nodes behind one, and `value` the value of a node behind
/// which all are known; `None` if it has none.
pub(super) fn values<V: Clone>(
    count: usize,
    nodes: impl Iterator<Item = usize>,
    behind: impl Fn(usize) -> Vec<usize>,
    value: impl Fn(usize, &[Option<V>]) -> Option<V>,
) -> Option<Vec<Option<V>>> {
    let mut known: Vec<Option<V>> = vec![None; count];
    // No recursion: a text may have more parts than a stack has room for.
    let mut waiting: Vec<usize> = nodes.collect();
    while let Some(&node) = waiting.last() {
        if known[node].is_none() {
            let unknown = waiting.len();
            waiting.extend(behind(node).into_iter().filter(|next| known[*next].is_none()));
            if waiting.len() > unknown {
                continue;
            }
            known[node] = Some(value(node, &known)?);
        }
        waiting.pop();
    }
    Some(known)
}
