//! A device without a GPU: the kernels compiled by g++ with `tests/cuda/shim.h`, in a program of its own that is told by pipes
//! what to copy and to launch, as a driver is.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

use drift::io::hash_bytes;
use drift::model::cuda::KernelShape;

/// The order of threads that is usual, and another.
pub(crate) const ORDERS: [u32; 2] = [0, 1];

/// One more, mixed.
pub(crate) const MIXED: u32 = 7;

/// The compiler for C++, found as `build.rs` finds it.
fn compiler() -> Option<String> {
    let named = std::env::var("CXX").ok();
    let works =
        |name: &String| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    named.into_iter().chain(["c++".to_owned(), "g++".to_owned()]).find(works)
}

/// What a program is compiled with besides: nothing, or the checks of `tests/cuda/checks.cpp`.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Checks {
    None,
    All,
}

/// The program of `source`, compiled once with such options.
fn program(source: &str, kernel_options: &[String], checks: Checks) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let compiler = compiler().expect("build.rs has these tests ignored without a C++ compiler");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda");
    let (more, unchecked): (&[&str], &[&str]) = match checks {
        Checks::None => (&[], &[]),
        // Addresses in what is said of a fault are those of the file.
        Checks::All => (
            &["-fsanitize=thread,alignment", "-DCHECKED", "-g", "-fno-pie"],
            &["-no-pie", "-g", "checks.cpp"],
        ),
    };
    let parts = ["shim.h", "launch.h", "emulator.cpp", "checks.h", "checks.cpp"]
        .map(|name| std::fs::read_to_string(folder.join(name)).unwrap());
    let options = [kernel_options, &more.iter().copied().map(str::to_owned).collect::<Vec<_>>()].concat();
    let all = [source, &parts.concat(), &options.join(" ")].map(str::as_bytes).concat();
    let name = hash_bytes("kernels", &all).sha256[..16].to_owned();
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda").join(name);
    let _held = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let program = place.join("emulator");
    if !program.exists() {
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("kernels.cu"), source).unwrap();
        let process = std::process::id();
        let [object, made] = ["o", "program"].map(|kind| place.join(format!("{process}.{kind}")));
        let general = ["-std=c++17", "-O2", "-U_FORTIFY_SOURCE", "-Wall", "-Wno-unknown-pragmas", "-Werror"];
        let compile = |arguments: &mut Command| {
            let output = arguments.current_dir(&folder).args(general).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        compile(
            Command::new(&compiler)
                .args(["-c", "emulator.cpp", "-o", object.to_str().unwrap(), "-I", place.to_str().unwrap()])
                .args(&options),
        );
        // What checks is not checked.
        compile(
            Command::new(&compiler).arg(&object).args(unchecked).args(kernel_options).arg("-o").arg(&made),
        );
        std::fs::remove_file(object).unwrap();
        std::fs::rename(made, &program).unwrap();
    }
    program
}

/// A number that lies in device memory as it does here.
pub(crate) trait Plain: Copy {
    fn put(self, bytes: &mut Vec<u8>);
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! plain {
    ($($kind:ty),*) => {$(
        impl Plain for $kind {
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }
            fn get(bytes: &[u8]) -> Self {
                <$kind>::from_le_bytes(bytes.try_into().unwrap())
            }
        }
    )*};
}

plain!(u8, u16, u32, u64, f32);

/// A device.
pub(crate) struct Emulator {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
}

/// An argument of a kernel.
pub(crate) fn argument<T: Plain>(value: T) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.put(&mut bytes);
    bytes
}

impl Emulator {
    /// Starts one. With `DRIFT_CHECKED` it is one that checks.
    pub(crate) fn start(shape: KernelShape) -> Self {
        match std::env::var_os("DRIFT_CHECKED") {
            Some(_) => Emulator::checked(shape),
            None => Emulator::of(&KernelShape::source(), &shape.options(), Checks::None),
        }
    }

    /// One that ends with the first fault of a kernel.
    pub(crate) fn checked(shape: KernelShape) -> Self {
        Emulator::of(&KernelShape::source(), &shape.options(), Checks::All)
    }

    /// One of other kernels.
    pub(crate) fn of(source: &str, options: &[String], checks: Checks) -> Self {
        let mut child = Command::new(program(source, options, checks))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        Emulator { child, stdin, stdout }
    }

    /// What it wrote before it ended.
    fn ended(&mut self) -> String {
        drop(self.stdin.take());
        let mut text = String::new();
        self.child.stderr.as_mut().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    fn send(&mut self, bytes: &[u8]) {
        let sent = self.stdin.as_mut().is_some_and(|pipe| pipe.write_all(bytes).is_ok());
        assert!(sent, "the emulator ended: {}", self.ended());
    }

    fn receive(&mut self, bytes: usize) -> Vec<u8> {
        self.try_receive(bytes).unwrap_or_else(|why| panic!("the emulator ended: {why}"))
    }

    fn try_receive(&mut self, bytes: usize) -> Result<Vec<u8>, String> {
        let mut received = vec![0; bytes];
        match self.stdout.read_exact(&mut received) {
            Ok(()) => Ok(received),
            Err(_) => Err(self.ended()),
        }
    }

    /// Memory that holds rubbish.
    pub(crate) fn allocate(&mut self, bytes: usize) -> u64 {
        self.send(&[b"a", &(bytes as u64).to_le_bytes()[..]].concat());
        u64::get(&self.receive(8))
    }

    /// Writes at an address.
    pub(crate) fn write<T: Plain>(&mut self, address: u64, values: &[T]) {
        let mut bytes = Vec::new();
        values.iter().for_each(|value| value.put(&mut bytes));
        let head = [address.to_le_bytes(), (bytes.len() as u64).to_le_bytes()].concat();
        self.send(&[b"w", &head[..], &bytes].concat());
    }

    /// A copy in device memory.
    pub(crate) fn upload<T: Plain>(&mut self, values: &[T]) -> u64 {
        let address = self.allocate(size_of_val(values));
        self.write(address, values);
        address
    }

    /// Reads `count` numbers at an address.
    pub(crate) fn read<T: Plain>(&mut self, address: u64, count: usize) -> Vec<T> {
        let bytes = count * size_of::<T>();
        self.send(&[b"r", &[address.to_le_bytes(), (bytes as u64).to_le_bytes()].concat()[..]].concat());
        self.receive(bytes).chunks_exact(size_of::<T>()).map(T::get).collect()
    }

    /// Launches a kernel; what it wrote if it did not come to its end.
    pub(crate) fn try_launch(
        &mut self,
        kernel: &str,
        grid: [usize; 3],
        threads: u32,
        arguments: &[Vec<u8>],
    ) -> Result<(), String> {
        let mut command = b"l".to_vec();
        let mut string = |bytes: &[u8], length: bool| {
            if length {
                command.extend((bytes.len() as u32).to_le_bytes());
            }
            command.extend(bytes);
        };
        string(kernel.as_bytes(), true);
        grid.iter().for_each(|size| string(&(*size as u32).to_le_bytes(), false));
        string(&threads.to_le_bytes(), false);
        string(&(arguments.len() as u32).to_le_bytes(), false);
        arguments.iter().for_each(|bytes| string(bytes, true));
        self.send(&command);
        self.try_receive(4).map(|_| ())
    }

    /// Launches a kernel.
    pub(crate) fn launch(&mut self, kernel: &str, grid: [usize; 3], threads: u32, arguments: &[Vec<u8>]) {
        let done = self.try_launch(kernel, grid, threads, arguments);
        done.unwrap_or_else(|why| panic!("{kernel}: {why}"));
    }

    /// The order in which the threads of a block run: 0 ascending, 1 descending, others mixed.
    pub(crate) fn order(&mut self, order: u32) {
        self.send(&[b"o", &order.to_le_bytes()[..]].concat());
    }

    /// Leaves out a barrier, named `FILE:LINE`; none if the name is empty.
    pub(crate) fn leave_out(&mut self, barrier: &str) {
        self.send(&[b"s", &(barrier.len() as u32).to_le_bytes()[..], barrier.as_bytes()].concat());
    }

    /// The barriers that threads came to.
    pub(crate) fn barriers(&mut self) -> Vec<String> {
        self.send(b"b");
        let size = u32::get(&self.receive(4));
        let text = String::from_utf8(self.receive(size as usize)).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}
