/// A class or function that drift knows in pickles.
#[derive(Debug, PartialEq, Eq)]
pub struct Global {
    /// The module, as pickles write it.
    pub module: &'static str,
    /// The name within the module.
    pub name: &'static str,
    /// How drift interprets it.
    pub role: Role,
}

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
    /// A class or function of the list.
    Known(&'static Global),
    /// Any other, by its index in the pickle's list of unknown names.
    Unknown(u32),
}

impl Callee {
    /// How drift interprets it; `None` for a class outside the list.
    #[must_use]
    pub fn role(self) -> Option<Role> {
        match self {
            Callee::Known(global) => Some(global.role),
            Callee::Unknown(_) => None,
        }
    }
}

impl Global {
    /// The class or function of this name, if it is in the list.
    ///
    /// The list contains what pickles of molecules need: RDKit's molecule classes, Python's containers (in the spellings of Python
    /// 2 and 3), data classes of its standard library, and NumPy's scalars and arrays (in the spellings of NumPy 1 and 2).
    #[must_use]
    pub fn find(module: &str, name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.module == module && known.name == name)
    }
}

const fn global(module: &'static str, name: &'static str, role: Role) -> Global {
    Global { module, name, role }
}

static KNOWN: &[Global] = &[
    global("rdkit.Chem.rdchem", "Mol", Role::Molecule),
    global("rdkit.Chem.rdchem", "RWMol", Role::Molecule),
    global("rdkit.Chem.PropertyMol", "PropertyMol", Role::Molecule),
    global("_codecs", "encode", Role::Encode),
    global("collections", "OrderedDict", Role::Plain),
    global("collections", "defaultdict", Role::Plain),
    global("collections", "Counter", Role::Plain),
    global("collections", "deque", Role::Plain),
    global("datetime", "date", Role::Plain),
    global("datetime", "datetime", Role::Plain),
    global("datetime", "timedelta", Role::Plain),
    global("decimal", "Decimal", Role::Plain),
    global("fractions", "Fraction", Role::Plain),
    global("pathlib", "Path", Role::Plain),
    global("pathlib", "PosixPath", Role::Plain),
    global("pathlib", "PurePath", Role::Plain),
    global("pathlib", "PurePosixPath", Role::Plain),
    global("pathlib", "PureWindowsPath", Role::Plain),
    global("pathlib", "WindowsPath", Role::Plain),
    // The name of this module in pickles that Python 3.13 writes.
    global("pathlib._local", "PosixPath", Role::Plain),
    global("pathlib._local", "PurePosixPath", Role::Plain),
    global("pathlib._local", "PureWindowsPath", Role::Plain),
    global("pathlib._local", "WindowsPath", Role::Plain),
    global("types", "SimpleNamespace", Role::Plain),
    global("uuid", "UUID", Role::Plain),
    global("copyreg", "_reconstructor", Role::Plain),
    global("copy_reg", "_reconstructor", Role::Plain),
    global("builtins", "object", Role::Plain),
    global("builtins", "list", Role::Plain),
    global("builtins", "dict", Role::Plain),
    global("builtins", "set", Role::Plain),
    global("builtins", "frozenset", Role::Plain),
    global("builtins", "tuple", Role::Plain),
    global("builtins", "int", Role::Plain),
    global("builtins", "float", Role::Plain),
    global("builtins", "complex", Role::Plain),
    global("builtins", "range", Role::Plain),
    global("builtins", "str", Role::Plain),
    global("builtins", "bytes", Role::Plain),
    global("builtins", "bytearray", Role::Plain),
    global("__builtin__", "object", Role::Plain),
    global("__builtin__", "list", Role::Plain),
    global("__builtin__", "dict", Role::Plain),
    global("__builtin__", "set", Role::Plain),
    global("__builtin__", "frozenset", Role::Plain),
    global("__builtin__", "tuple", Role::Plain),
    global("__builtin__", "int", Role::Plain),
    global("__builtin__", "float", Role::Plain),
    global("__builtin__", "str", Role::Plain),
    global("__builtin__", "unicode", Role::Plain),
    global("__builtin__", "bytes", Role::Plain),
    global("__builtin__", "bytearray", Role::Plain),
    global("numpy", "dtype", Role::Plain),
    global("numpy", "ndarray", Role::Plain),
    global("numpy.core.multiarray", "scalar", Role::Plain),
    global("numpy.core.multiarray", "_reconstruct", Role::Plain),
    global("numpy.core.numeric", "_frombuffer", Role::Plain),
    global("numpy._core.multiarray", "scalar", Role::Plain),
    global("numpy._core.multiarray", "_reconstruct", Role::Plain),
    global("numpy._core.numeric", "_frombuffer", Role::Plain),
];
