//! The text that a position template holds in place of coordinates.

use crate::encoding::{Encoding, Precision, TrailingZeros};
use crate::error::{Error, Result};
use crate::parameter;
use crate::text::partition::Partition;
use crate::text::skeleton::placed;

/// The placeholder of the users' version 3, and the one that `drift fit` finds for most tokenizers.
pub const USUAL_PLACEHOLDER: &str = "0.0000,0.0000,0.0000";

/// The placeholder of the users' versions 3.9 to 4.3, the newest that they have published.
pub const THEIR_PLACEHOLDER: &str = "0.000,0.000,0.000";

/// Returns a placeholder given by a person, converted to the encoding. The usual decimal placeholder stands for the zeros of any
/// encoding.
pub fn as_written(text: &str, encoding: Encoding) -> String {
    if !encoding.is_decimal() && text == USUAL_PLACEHOLDER {
        return encoding.numbers_text(&[0; 3]);
    }
    text.replace(',', encoding.separator())
}

/// The content of the blocks of a template: one text for all, or one per class of block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    partition: Option<Partition>,
    /// By class; a single entry if there are no classes.
    by_class: Vec<String>,
}

impl Placeholder {
    /// Checks that every placeholder is the content of a slot of an encoding. For decimals any three numbers are accepted.
    ///
    /// # Errors
    /// The problem with the first placeholder that is not.
    pub fn check(&self, encoding: Encoding) -> Result<()> {
        for text in self.by_class.iter().filter(|_| !encoding.is_decimal()) {
            if let Err(problem) = encoding.parse_numbers(text.as_bytes(), false) {
                let zeros = encoding.numbers_text(&[0; 3]);
                let problem = format!("`{text}` is not the content of a slot of {encoding}: {problem}");
                return Err(Error::parameter(
                    parameter::PLACEHOLDER,
                    problem,
                    format!("give one such as {zeros}"),
                ));
            }
        }
        Ok(())
    }

    /// Returns the same placeholder in every block: three numbers, without brackets.
    ///
    /// # Errors
    /// If the text is neither three numbers nor only digits.
    pub fn new(text: &str) -> Result<Self> {
        Ok(Placeholder { partition: None, by_class: vec![checked(text)?] })
    }

    /// Returns a placeholder per class of block, as `drift fit` reports them: pairs of a class label and its placeholder. Blocks of a
    /// class that is not listed get `otherwise`.
    ///
    /// # Errors
    /// If the partition has no such class, or a placeholder is neither three numbers nor only digits.
    pub fn per_class(partition: Partition, classes: &[(&str, &str)], otherwise: &str) -> Result<Self> {
        let labels = partition.labels();
        let mut by_class = vec![checked(otherwise)?; labels.len()];
        for (label, text) in classes {
            let class = labels.iter().position(|known| known == label).ok_or_else(|| {
                let problem = format!("there is no class `{label}` of {}", partition.name());
                Error::input("placeholder", problem, format!("classes are {}", labels.join("; ")))
            })?;
            by_class[class] = checked(text)?;
        }
        Ok(Placeholder { partition: Some(partition), by_class })
    }

    /// Returns the skeleton with its slots filled, as the encoding writes them.
    pub fn fill(&self, skeleton: &str, encoding: Encoding) -> String {
        let mut classes = Vec::new();
        if let Some(partition) = self.partition {
            partition.classes(skeleton, &mut classes);
        }
        // `[C]<>` has 5 bytes; filled with a usual placeholder it has 25.
        let mut out = String::with_capacity(skeleton.len() * 5);
        for (block, piece) in placed(skeleton, encoding.slots()).split("<>").enumerate() {
            if block > 0 {
                // Without a partition, all blocks belong to one class.
                let class = classes.get(block - 1).map_or(0, |class| usize::from(*class));
                out.extend([encoding.open(), &self.by_class[class], encoding.close()]);
            }
            out.push_str(piece);
        }
        out
    }
}

impl std::fmt::Display for Placeholder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.partition {
            None => f.write_str(&self.by_class[0]),
            Some(partition) => write!(f, "by {}", partition.name()),
        }
    }
}

/// The numbers of a template may have other decimals than those of the model. For a placeholder of only digits, the processor
/// decides whether it fits the model's encoding.
fn checked(text: &str) -> Result<String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(text.to_owned());
    }
    let encoding = Encoding::decimal(TrailingZeros::Removed, Precision::MOST).with_spaces(text.contains(' '));
    encoding.parse_numbers(text.as_bytes(), false).map_err(|problem| {
        let problem = format!("{}: {problem}", crate::error::excerpt(text.as_bytes()));
        Error::input("placeholder", problem, "give three numbers, for example 0.0000,0.0000,0.0000")
    })?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_filled_by_class() {
        let skeleton = "[C]<>[c]<>1([N]<>)[c]<>1";
        let one = Placeholder::new("1,2,3").unwrap();
        assert_eq!(one.fill(skeleton, Encoding::FIXED), "[C]<1,2,3>[c]<1,2,3>1([N]<1,2,3>)[c]<1,2,3>1");
        let classes = Placeholder::per_class(Partition::Index, &[("first", "0,0,0")], "-1,2,3").unwrap();
        assert_eq!(
            classes.fill(skeleton, Encoding::FIXED),
            "[C]<0,0,0>[c]<-1,2,3>1([N]<-1,2,3>)[c]<-1,2,3>1"
        );
        assert_eq!((one.to_string(), classes.to_string()), ("1,2,3".into(), "by atom index".into()));
    }

    #[test]
    fn what_is_not_three_numbers_is_refused() {
        for text in ["", "1,2", "1,2,3,4", "a,b,c", "1,2,<", "0.,0,0"] {
            let error = Placeholder::new(text).unwrap_err().to_string();
            assert!(error.contains("give three numbers") && !error.contains('\n'), "{error}");
        }
        assert!(Placeholder::per_class(Partition::Size, &[("no such", "0,0,0")], "0,0,0").is_err());
    }
}
