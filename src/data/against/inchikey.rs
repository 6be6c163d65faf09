//! InChIKeys as numbers.

/// An InChIKey: `IKHGUXGNUITLKF-UHFFFAOYSA-N`, its 25 letters in five bits each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct InchiKey(u128);

/// The first block of an InChIKey: a hash of the skeleton of the molecule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct InchiKeyBlock(u128);

/// The letters of the three blocks.
const BLOCKS: [usize; 3] = [14, 10, 1];

impl InchiKey {
    /// Reads a key, also behind the prefix `InChIKey=`; `None` if it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix("InChIKey=").unwrap_or(text);
        let mut blocks = text.split('-');
        let mut value = 0u128;
        for length in BLOCKS {
            let block = blocks.next().filter(|block| block.len() == length)?;
            for letter in block.bytes() {
                let letter = letter.is_ascii_uppercase().then(|| letter - b'A')?;
                value = value << 5 | u128::from(letter);
            }
        }
        blocks.next().is_none().then_some(InchiKey(value))
    }

    /// Returns its first block.
    pub(super) fn block(self) -> InchiKeyBlock {
        InchiKeyBlock(self.0 >> (5 * (BLOCKS[1] + BLOCKS[2])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        let key = |text: &str| InchiKey::parse(text);
        let ethanol = key("LFQSCWFLJHTTHZ-UHFFFAOYSA-N").unwrap();
        assert_eq!(key("InChIKey=LFQSCWFLJHTTHZ-UHFFFAOYSA-N "), Some(ethanol));
        let charged = key("LFQSCWFLJHTTHZ-UHFFFAOYSA-O").unwrap();
        assert!(charged != ethanol && charged.block() == ethanol.block());
        assert!(key("LFQSCWFLJHTTHA-UHFFFAOYSA-N").unwrap().block() != ethanol.block());
        for broken in [
            "",
            "LFQSCWFLJHTTHZ",
            "LFQSCWFLJHTTHZ-UHFFFAOYSA-N-X",
            "lfqscwfljhtthz-uhfffaoysa-n",
            "LFQSCWFLJHTTH1-UHFFFAOYSA-N",
        ] {
            assert_eq!(key(broken), None, "{broken}");
        }
    }
}
