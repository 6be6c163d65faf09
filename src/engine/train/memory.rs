//! The memory that training needs.

use crate::model::{Config, check_fits, checked_product, checked_sum, free_memory};
use crate::parameter;
use drift_core::Result;

/// Refuses a network or a batch that does not fit into memory. Counted are weights and moments, one gradient per pack of a batch,
/// the buffers of a save, and the activations of the threads.
///
/// # Errors
/// If they do not fit.
pub(super) fn check_memory(
    config: &Config,
    (batch_tokens, pack_tokens): (usize, usize),
    longest: usize,
) -> Result<()> {
    const NUMBER: usize = size_of::<f32>();
    let packs = batch_tokens.div_ceil(pack_tokens);
    // The weights and two moments, and as much again for the weights of a step or the file of a save; and one gradient per pack, or at
    // a save the bytes of one of the three.
    let copies = packs.checked_add(6);
    let weights = config
        .parameters()
        .zip(copies)
        .and_then(|(parameters, copies)| parameters.checked_mul(checked_product(&[copies, NUMBER])?));
    let Config { hidden_size, intermediate_size, num_attention_heads, head_dim, num_hidden_layers, .. } =
        *config;
    // A document longer than a pack gets its own pack, so the longer of the two counts.
    let tokens = longest.max(pack_tokens);
    let by_token = [
        checked_product(&[num_hidden_layers, 6, hidden_size]),
        checked_product(&[num_hidden_layers, 3, num_attention_heads, head_dim]),
        checked_product(&[num_hidden_layers, 3, intermediate_size]),
        checked_product(&[num_hidden_layers, num_attention_heads, longest]),
        checked_product(&[config.vocab_size]),
    ];
    let threads = rayon::current_num_threads();
    let activations = checked_product(&[threads, tokens, NUMBER])
        .zip(checked_sum(&by_token))
        .and_then(|(a, b)| a.checked_mul(b));
    let documents = checked_product(&[batch_tokens, 2 * NUMBER]);
    let [hidden, layers] = [parameter::HIDDEN, parameter::LAYERS];
    let remedy = format!(
        "give smaller {hidden}, {layers}, {}, or fewer {}",
        parameter::HEADS,
        parameter::BATCH_TOKENS
    );
    check_fits("training", checked_sum(&[weights, activations, documents]), free_memory(), &remedy)
}
