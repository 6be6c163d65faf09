//! drift's interface for Python: the module `moldrift._lib`.

mod completions;
mod constraint;
mod ensembles;
mod errors;
mod judge;
mod legal;
mod options;
mod processor;
mod reports;
mod requests;
mod rows;
mod sampling;
mod skeleton;
mod tables;
mod tokenizer;
mod work;

use pyo3::prelude::*;

#[pymodule]
mod _lib {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::constraint::{Constraint, are_different, skeleton_of};
    #[pymodule_export]
    use super::judge::Judge;
    #[pymodule_export]
    use super::processor::Processor;
    #[pymodule_export]
    use super::reports::{audit, encode, fit, inspect, mine, train_tokenizer};
    #[pymodule_export]
    use super::requests::{Request, follow_requests};
    #[pymodule_export]
    use super::rows::Rows;
    #[pymodule_export]
    use super::sampling::Sampler;
    #[pymodule_export]
    use super::skeleton::SkeletonAutomaton;
    #[pymodule_export]
    use super::tokenizer::Tokenizer;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(_: &Bound<'_, PyModule>) -> PyResult<()> {
        drift::job::set_revision(drift::REVISION);
        super::work::loaded();
        Ok(())
    }
}
