/// How drift interprets a class or function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An RDKit molecule, whose first argument is the molecule in RDKit's binary format.
    Molecule,
    /// `_codecs.encode`, with which protocols 0 to 2 write `bytes`: as text, one character per byte.
    Encode,
    /// Any other known class: its arguments and contents are kept but never interpreted.
    Plain,
}

/// A class or function as a pickle names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callee {
    /// A class or function of the list ([`Role::of`]).
    Known(Role),
    /// Any other, by its index in the pickle's list of unknown names.
    Unknown(u32),
}

impl Callee {
    /// Returns how drift interprets it; `None` for a class outside the list.
    #[must_use]
    pub fn role(self) -> Option<Role> {
        match self {
            Callee::Known(role) => Some(role),
            Callee::Unknown(_) => None,
        }
    }
}

impl Role {
    /// Returns the role of the class or function of this name, if it is in the list.
    ///
    /// The list contains what pickles of molecules need: RDKit's molecule classes, Python's containers (in the spellings of Python
    /// 2 and 3), data classes of its standard library, and NumPy's scalars and arrays (in the spellings of NumPy 1 and 2).
    #[must_use]
    pub fn of(module: &str, name: &str) -> Option<Self> {
        match (module, name) {
            ("rdkit.Chem.rdchem", "Mol" | "RWMol") | ("rdkit.Chem.PropertyMol", "PropertyMol") => {
                Some(Role::Molecule)
            }
            ("_codecs", "encode") => Some(Role::Encode),
            _ => {
                let (_, names) = PLAIN.iter().find(|(known, _)| *known == module)?;
                names.split(' ').any(|known| known == name).then_some(Role::Plain)
            }
        }
    }
}

/// The plain classes and functions: each module with its names.
const PLAIN: [(&str, &str); 17] = [
    ("collections", "OrderedDict defaultdict Counter deque"),
    ("datetime", "date datetime timedelta"),
    ("decimal", "Decimal"),
    ("fractions", "Fraction"),
    ("pathlib", "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath"),
    // The name of this module in pickles that Python 3.13 writes.
    ("pathlib._local", "PosixPath PurePosixPath PureWindowsPath WindowsPath"),
    ("types", "SimpleNamespace"),
    ("uuid", "UUID"),
    ("copyreg", "_reconstructor"),
    ("copy_reg", "_reconstructor"),
    ("builtins", "object list dict set frozenset tuple int float complex range str bytes bytearray"),
    ("__builtin__", "object list dict set frozenset tuple int float str unicode bytes bytearray"),
    ("numpy", "dtype ndarray"),
    ("numpy.core.multiarray", "scalar _reconstruct"),
    ("numpy.core.numeric", "_frombuffer"),
    ("numpy._core.multiarray", "scalar _reconstruct"),
    ("numpy._core.numeric", "_frombuffer"),
];
