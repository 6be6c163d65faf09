//! What finds faults of kernels that need not show in a result (`tests/cuda/checks.cpp`) finds each kind of them, and nothing in
//! kernels that are sound.

use drift::model::cuda::{CUDA_SOURCES, KernelShape};

use crate::cuda_emulator::{Checks, Emulator, argument};

pub(crate) const FAULTS: &str = include_str!("../cuda/faults.cu");

/// Numbers, of which the last ones were never written.
const COUNT: usize = 256;
const UNWRITTEN: usize = 32;

/// The kernels, how many blocks and threads they are launched with, and what is said of them.
pub(crate) const FAULTY: [(&str, usize, u32, &str); 16] = [
    ("strays", 1, 64, "an access outside of what was given at faults.cu:"),
    ("reads_unwritten", 1, 64, "a read of what nobody wrote at faults.cu:"),
    ("reads_unwritten_shared", 1, 64, "a read of what nobody wrote at faults.cu:"),
    ("is_misaligned", 1, 32, "a misaligned access at faults.cu:"),
    ("races_in_a_warp", 1, 32, "what thread … at faults.cu:"),
    ("races_in_a_block", 1, 64, "what thread … at faults.cu:"),
    ("overwrites", 1, 64, "what thread … reads at faults.cu:"),
    ("mixes_atomic_and_not", 1, 64, "what thread … writes at faults.cu:"),
    ("races_between_blocks", 2, 32, "what another block writes at faults.cu:"),
    ("writes_other_bits", 2, 32, "what another block "),
    ("reads_what_is_added_to", 2, 64, "what another block writes at shim.h:"),
    ("releases_too_early", 3, 64, "what another block writes at faults.cu:"),
    ("acquires_nothing", 3, 64, "what another block writes at faults.cu:"),
    ("reads_before_it_waits", 1, 32, "an access before the kernels before are over at faults.cu:"),
    ("writes_before_it_waits", 1, 32, "an access before the kernels before are over at faults.cu:"),
    ("never_waits", 1, 32, "thread 3: ends before the kernels before are over"),
];

/// The device with these kernels.
fn device() -> Emulator {
    let before = CUDA_SOURCES.iter().filter(|(name, _)| ["prelude.cu", "ptx.cu"].contains(name));
    let source: String = before.map(|(name, text)| format!("#line 1 \"{name}\"\n{text}\n")).collect();
    let shape = KernelShape { bf16: false, head_dim: 64, group: 2 };
    let names: Vec<String> = FAULTY.iter().map(|(name, ..)| format!("each({name})")).collect();
    let kernels = format!("-DKERNELS_OF_PROGRAM(each)={}", names.join(" "));
    let options = [&shape.options()[..], &["-Wno-unused".to_owned(), kernels]].concat();
    Emulator::of(&format!("{source}#line 1 \"faults.cu\"\n{FAULTS}"), &options, Checks::All)
}

/// Launches a kernel behind one that has written the first numbers.
fn launched(kernel: &str, blocks: usize, threads: u32, order: u32, is_sound: bool) -> Result<(), String> {
    let mut device = device();
    device.order(order);
    let data = device.allocate(4 * COUNT);
    device.write(data, &[0u32; COUNT - UNWRITTEN]);
    let arguments = |is_sound: bool| [argument(data), argument(COUNT as u32), argument(u32::from(is_sound))];
    device.launch("strays", [1, 1, 1], 64, &arguments(true));
    device.try_launch(kernel, [blocks, 1, 1], threads, &arguments(is_sound))
}

#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn each_fault_of_a_kernel_is_found() {
    for (kernel, blocks, threads, said) in FAULTY {
        for order in [0, 1, 7] {
            let sound = launched(kernel, blocks, threads, order, true);
            assert_eq!(sound, Ok(()), "{kernel}, order {order}");
            let found = launched(kernel, blocks, threads, order, false).expect_err(kernel);
            assert!(said.split(" … ").all(|part| found.contains(part)), "{kernel}, order {order}: {found}");
        }
    }
}
