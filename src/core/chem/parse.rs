//! The grammar of RDKit's SMILES parser.

use std::collections::HashMap;

use super::graph::{Atom, Bond, BondsOfAtom, Direction, Graph, Order, SmilesProblem};

/// A bond symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Symbol {
    /// A symbol that sets the order.
    Is(Order),
    /// `/` or `\`: single or aromatic.
    Directed(Direction),
    /// `<-`: dative, towards the preceding atom.
    Backward,
}

/// A ring bond whose second end has not been read yet.
struct OpenRing {
    atom: usize,
    symbol: Option<Symbol>,
    /// The index of the bond among those of the atom.
    place: usize,
}

/// What precedes the current position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PreviousItem {
    /// Nothing, or `.`: an atom must follow.
    Start,
    /// An atom, a ring number or `)`: anything may follow, also the end.
    Complete,
    /// `(`: a bond or an atom must follow.
    Opened,
    /// A bond behind `(`: an atom must follow.
    OpenedBond(Symbol),
    /// A bond: an atom or a ring number must follow.
    Bond(Symbol),
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    graph: Graph,
    /// The atom to which the next one is bonded; `None` at the start and behind `.`.
    active: Option<usize>,
    branches: Vec<usize>,
    /// By atom, the number of bonds that existed before it.
    first_bonds: Vec<usize>,
    rings: HashMap<u32, OpenRing>,
    /// The ring bonds that are closed, with their numbers.
    closed: Vec<(u32, usize)>,
    before: PreviousItem,
}

impl Graph {
    /// Parses a SMILES. An empty text is accepted.
    ///
    /// # Errors
    /// [`SmilesProblem::Syntax`] at the first byte that breaks the grammar.
    pub fn parse(smiles: &str) -> Result<Self, SmilesProblem> {
        let mut parser = Parser {
            text: smiles,
            at: 0,
            graph: Graph::default(),
            active: None,
            branches: Vec::new(),
            first_bonds: Vec::new(),
            rings: HashMap::new(),
            closed: Vec::new(),
            before: PreviousItem::Start,
        };
        while parser.at < smiles.len() {
            parser.step()?;
        }
        parser.end()
    }
}

impl<'t> Parser<'t> {
    fn error<T>(&self, what: &'static str) -> Result<T, SmilesProblem> {
        Err(SmilesProblem::Syntax { at: self.at, what })
    }

    fn rest(&self) -> &'t [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn end(mut self) -> Result<Graph, SmilesProblem> {
        if self.before != PreviousItem::Complete && !self.text.is_empty() {
            return self.error("ends where an atom is expected");
        }
        if !self.branches.is_empty() {
            return self.error("unclosed `(`");
        }
        if !self.rings.is_empty() {
            return self.error("unclosed ring");
        }
        // Bonds of the same number stay in the order in which they were closed.
        self.closed.sort_by_key(|(number, _)| *number);
        self.graph.ring_bonds = self.closed.into_iter().map(|(_, bond)| bond).collect();
        Ok(self.graph)
    }

    /// Reads one atom, bond, ring number, branch or dot.
    fn step(&mut self) -> Result<(), SmilesProblem> {
        let rest = self.rest();
        match rest[0] {
            b'0'..=b'9' | b'%' => self.ring(),
            b'(' if self.before == PreviousItem::Complete => {
                // Wherever the text is complete, there is an active atom.
                self.branches.extend(self.active);
                self.pass(1, PreviousItem::Opened)
            }
            b')' if self.before == PreviousItem::Complete => match self.branches.pop() {
                Some(atom) => {
                    self.active = Some(atom);
                    self.pass(1, PreviousItem::Complete)
                }
                None => self.error("`)` without `(`"),
            },
            b'.' if self.before == PreviousItem::Complete => {
                self.active = None;
                self.pass(1, PreviousItem::Start)
            }
            _ => match symbol(rest) {
                Some((symbol, length)) => self.bond(symbol, length),
                None => self.atom(),
            },
        }
    }

    fn pass(&mut self, bytes: usize, before: PreviousItem) -> Result<(), SmilesProblem> {
        self.at += bytes;
        self.before = before;
        Ok(())
    }

    fn bond(&mut self, symbol: Symbol, length: usize) -> Result<(), SmilesProblem> {
        match self.before {
            PreviousItem::Complete => self.pass(length, PreviousItem::Bond(symbol)),
            PreviousItem::Opened => self.pass(length, PreviousItem::OpenedBond(symbol)),
            _ => self.error("bond without an atom before it"),
        }
    }

    fn atom(&mut self) -> Result<(), SmilesProblem> {
        let (atom, length) = if self.rest()[0] == b'[' {
            super::brackets::bracket(self.rest())
                .map_err(|what| SmilesProblem::Syntax { at: self.at, what })?
        } else {
            match organic(self.rest()) {
                Some(atom) => atom,
                None => return self.error("expected an atom, bond or ring number"),
            }
        };
        let symbol = match self.before {
            PreviousItem::Bond(symbol) | PreviousItem::OpenedBond(symbol) => Some(symbol),
            _ => None,
        };
        let new = self.graph.atoms.len();
        self.graph.atoms.push(atom);
        self.graph.written.push(BondsOfAtom::new());
        self.graph.starts.push(self.active.is_none());
        self.first_bonds.push(self.graph.bonds.len());
        if let Some(active) = self.active {
            let bond = self.join(active, new, symbol);
            self.graph.written[active].push(bond);
            self.graph.written[new].push(bond);
        }
        self.active = Some(new);
        self.pass(length, PreviousItem::Complete)
    }

    /// Adds the bond between an atom and a later one, and returns its index.
    fn join(&mut self, first: usize, second: usize, symbol: Option<Symbol>) -> usize {
        // A bond between two aromatic rings counts as aromatic too; the Kekulé structure makes it single.
        let aromatic = self.graph.atoms[first].aromatic && self.graph.atoms[second].aromatic;
        let implied = if aromatic { Order::Aromatic } else { Order::Single };
        let (atoms, order) = match symbol {
            None | Some(Symbol::Directed(_)) => ([first, second], implied),
            Some(Symbol::Is(order)) => ([first, second], order),
            Some(Symbol::Backward) => ([second, first], Order::Dative),
        };
        let direction = match symbol {
            Some(Symbol::Directed(direction)) => Some(direction),
            _ => None,
        };
        // A direction is stereo and does not set the order.
        let explicit = symbol.is_some() && direction.is_none();
        self.graph.bonds.push(Bond { atoms, order, direction, explicit });
        self.graph.bonds.len() - 1
    }

    fn ring(&mut self) -> Result<(), SmilesProblem> {
        let symbol = match self.before {
            PreviousItem::Complete => None,
            PreviousItem::Bond(symbol) => Some(symbol),
            _ => return self.error("ring number without an atom before it"),
        };
        let Some((number, length)) = ring_number(self.rest()) else {
            return self.error("no ring number");
        };
        let Some(active) = self.active else {
            return self.error("ring number without an atom before it");
        };
        match self.rings.remove(&number) {
            None => {
                let place = self.graph.written[active].len();
                // A placeholder until the other end is read.
                self.graph.written[active].push(usize::MAX);
                self.rings.insert(number, OpenRing { atom: active, symbol, place });
            }
            Some(open) => {
                let bond = self.close(&open, active, symbol)?;
                self.closed.push((number, bond));
            }
        }
        self.pass(length, PreviousItem::Complete)
    }

    /// Adds a ring bond; its index.
    fn close(
        &mut self,
        open: &OpenRing,
        atom: usize,
        symbol: Option<Symbol>,
    ) -> Result<usize, SmilesProblem> {
        let joined = |bond: &Bond| bond.atoms.contains(&open.atom) && bond.atoms.contains(&atom);
        // A bond between two atoms cannot be older than the later atom.
        let since = self.first_bonds[open.atom.max(atom)];
        if open.atom == atom || self.graph.bonds[since..].iter().any(joined) {
            return self.error("ring bond between atoms that are already bonded");
        }
        // Either end may state the order; if both do, the first one wins.
        let symbol = match (open.symbol, symbol) {
            (Some(Symbol::Is(order)), _) => Some(Symbol::Is(order)),
            (_, Some(Symbol::Is(order))) => Some(Symbol::Is(order)),
            // The bond runs from its opening end, but a direction is relative to the end at which it is written.
            (None, Some(Symbol::Directed(direction))) => Some(Symbol::Directed(direction.reversed())),
            (a, b) => a.or(b),
        };
        let bond = self.join(open.atom, atom, symbol);
        self.graph.written[open.atom][open.place] = bond;
        self.graph.written[atom].push(bond);
        Ok(bond)
    }
}

/// Returns the atom of the organic subset at the start of a text, and its length in bytes.
fn organic(text: &[u8]) -> Option<(Atom, usize)> {
    let two = text.get(1).copied();
    let (element, length) = match text[0] {
        b'C' if two == Some(b'l') => (17, 2),
        b'B' if two == Some(b'r') => (35, 2),
        b'B' | b'b' => (5, 1),
        b'C' | b'c' => (6, 1),
        b'N' | b'n' => (7, 1),
        b'O' | b'o' => (8, 1),
        b'P' | b'p' => (15, 1),
        b'S' | b's' => (16, 1),
        b'F' => (9, 1),
        b'I' => (53, 1),
        b'*' => (0, 1),
        _ => return None,
    };
    Some((Atom { element, aromatic: text[0].is_ascii_lowercase(), ..Atom::default() }, length))
}

/// Returns the bond symbol at the start of a text, and its length in bytes.
fn symbol(text: &[u8]) -> Option<(Symbol, usize)> {
    let two = text.get(1).copied();
    Some(match text[0] {
        b'-' if two == Some(b'>') => (Symbol::Is(Order::Dative), 2),
        b'-' => (Symbol::Is(Order::Single), 1),
        b'<' if two == Some(b'-') => (Symbol::Backward, 2),
        b'=' => (Symbol::Is(Order::Double), 1),
        b'#' => (Symbol::Is(Order::Triple), 1),
        b'$' => (Symbol::Is(Order::Quadruple), 1),
        b':' => (Symbol::Is(Order::Aromatic), 1),
        b'~' => (Symbol::Is(Order::Any), 1),
        b'/' => (Symbol::Directed(Direction::Up), 1),
        // RDKit takes a doubled backslash for a single one.
        b'\\' if two == Some(b'\\') => (Symbol::Directed(Direction::Down), 2),
        b'\\' => (Symbol::Directed(Direction::Down), 1),
        _ => return None,
    })
}

/// Returns the ring number at the start of a text (`1`, `%12`, `%(5)` to `%(12345)`), and its length in bytes.
fn ring_number(text: &[u8]) -> Option<(u32, usize)> {
    let digit = |at: usize| text.get(at).filter(|b| b.is_ascii_digit()).map(|b| u32::from(b - b'0'));
    if text[0] != b'%' {
        return Some((digit(0)?, 1));
    }
    if text.get(1) != Some(&b'(') {
        let tens = digit(1).filter(|tens| *tens > 0)?;
        return Some((tens * 10 + digit(2)?, 3));
    }
    let digits = (2..7).map_while(digit).collect::<Vec<_>>();
    let number = digits.iter().fold(0, |number, digit| number * 10 + digit);
    let closed = text.get(2 + digits.len()) == Some(&b')');
    (closed && !digits.is_empty()).then_some((number, digits.len() + 3))
}
