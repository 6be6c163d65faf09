//! Maximum matching in a general graph: Edmonds' blossom algorithm (Canad. J. Math. 17, 1965), O(n³).

use std::collections::VecDeque;

struct Search<'e> {
    edges: &'e [Vec<usize>],
    mate: Vec<Option<usize>>,
    /// The previous vertex on the path back to the root.
    parent: Vec<Option<usize>>,
    /// The base of the blossom that a vertex lies in.
    base: Vec<usize>,
    queue: VecDeque<usize>,
    is_outer: Vec<bool>,
}

/// Returns a maximum matching among the allowed vertices: by vertex, its mate.
pub(super) fn matching(n: usize, edges: &[[usize; 2]], allowed: &[bool]) -> Vec<Option<usize>> {
    let mut lists = vec![Vec::new(); n];
    for &[a, b] in edges.iter().filter(|[a, b]| allowed[*a] && allowed[*b]) {
        lists[a].push(b);
        lists[b].push(a);
    }
    let mut mate: Vec<Option<usize>> = vec![None; n];
    // A greedy start leaves few vertices to search from.
    for a in 0..n {
        let free = lists[a].iter().find(|b| mate[**b].is_none() && mate[a].is_none()).copied();
        if let Some(b) = free {
            (mate[a], mate[b]) = (Some(b), Some(a));
        }
    }
    let mut search = Search {
        edges: &lists,
        mate,
        parent: Vec::new(),
        base: Vec::new(),
        queue: VecDeque::new(),
        is_outer: Vec::new(),
    };
    for (root, edges) in lists.iter().enumerate() {
        if search.mate[root].is_none() && !edges.is_empty() {
            search.augment(root);
        }
    }
    search.mate
}

impl Search<'_> {
    /// Searches for an alternating path from `root` to another free vertex, and swaps its edges.
    fn augment(&mut self, root: usize) {
        let n = self.edges.len();
        self.parent = vec![None; n];
        self.base = (0..n).collect();
        self.is_outer = vec![false; n];
        self.is_outer[root] = true;
        self.queue = VecDeque::from([root]);
        while let Some(from) = self.queue.pop_front() {
            for &to in &self.edges[from] {
                if self.base[from] == self.base[to] || self.mate[from] == Some(to) {
                    continue;
                }
                let is_outer = to == root || self.mate[to].is_some_and(|mate| self.parent[mate].is_some());
                if is_outer {
                    self.contract(from, to);
                } else if self.parent[to].is_none() {
                    self.parent[to] = Some(from);
                    match self.mate[to] {
                        None => return self.swap(to),
                        Some(mate) => {
                            self.is_outer[mate] = true;
                            self.queue.push_back(mate);
                        }
                    }
                }
            }
        }
    }

    /// Swaps matched and free edges along the path from a free vertex back to the root.
    fn swap(&mut self, mut vertex: usize) {
        while let Some(before) = self.parent[vertex] {
            let next = self.mate[before];
            (self.mate[vertex], self.mate[before]) = (Some(before), Some(vertex));
            match next {
                Some(next) => vertex = next,
                None => return,
            }
        }
    }

    /// Contracts the odd cycle that an edge between two outer vertices closes (a blossom).
    fn contract(&mut self, a: usize, b: usize) {
        let common = self.common_base(a, b);
        let mut in_blossom = vec![false; self.edges.len()];
        self.mark(a, common, b, &mut in_blossom);
        self.mark(b, common, a, &mut in_blossom);
        for vertex in 0..self.edges.len() {
            if in_blossom[self.base[vertex]] {
                self.base[vertex] = common;
                // An odd cycle can be walked both ways, so all its vertices become outer.
                if !self.is_outer[vertex] {
                    self.is_outer[vertex] = true;
                    self.queue.push_back(vertex);
                }
            }
        }
    }

    /// Marks the blossoms from a vertex up to the common base, and turns parents so that paths may also go round the other way.
    fn mark(&mut self, mut vertex: usize, common: usize, mut child: usize, in_blossom: &mut [bool]) {
        while self.base[vertex] != common {
            // A vertex above the base is matched, and its mate has a parent.
            let Some(mate) = self.mate[vertex] else { return };
            in_blossom[self.base[vertex]] = true;
            in_blossom[self.base[mate]] = true;
            self.parent[vertex] = Some(child);
            child = mate;
            let Some(parent) = self.parent[mate] else { return };
            vertex = parent;
        }
    }

    /// Returns the first base that lies on both vertices' paths to the root.
    fn common_base(&self, mut a: usize, mut b: usize) -> usize {
        let mut on_way = vec![false; self.edges.len()];
        loop {
            a = self.base[a];
            on_way[a] = true;
            match self.mate[a].and_then(|mate| self.parent[mate]) {
                Some(parent) => a = parent,
                None => break,
            }
        }
        loop {
            b = self.base[b];
            if on_way[b] {
                return b;
            }
            match self.mate[b].and_then(|mate| self.parent[mate]) {
                Some(parent) => b = parent,
                // Both paths end at the root.
                None => return b,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the most pairs, by trying everything.
    fn most(edges: &[[usize; 2]], used: u32) -> usize {
        let free = |[a, b]: &&[usize; 2]| used & (1 << a | 1 << b) == 0;
        edges.iter().filter(free).map(|[a, b]| 1 + most(edges, used | 1 << a | 1 << b)).max().unwrap_or(0)
    }

    #[test]
    fn as_many_pairs_as_possible() {
        // Every graph of 5 vertices.
        let all: Vec<[usize; 2]> = (0..5).flat_map(|a| (a + 1..5).map(move |b| [a, b])).collect();
        for chosen in 0u32..1 << all.len() {
            let edges: Vec<[usize; 2]> =
                all.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1).map(|(_, edge)| *edge).collect();
            check(5, &edges);
        }
        // Graphs of 9 vertices with odd cycles in odd cycles.
        let mut state = 1u64;
        for _ in 0..2_000 {
            let mut edges = Vec::new();
            for a in 0..9 {
                for b in a + 1..9 {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    if state >> 61 < 2 {
                        edges.push([a, b]);
                    }
                }
            }
            check(9, &edges);
        }
    }

    fn check(n: usize, edges: &[[usize; 2]]) {
        let mates = matching(n, edges, &vec![true; n]);
        for (vertex, mate) in mates.iter().enumerate() {
            if let Some(mate) = mate {
                assert_eq!(mates[*mate], Some(vertex));
                assert!(edges.contains(&[vertex.min(*mate), vertex.max(*mate)]));
            }
        }
        assert_eq!(mates.iter().flatten().count(), 2 * most(edges, 0), "{edges:?}");
    }
}
