/// A class or function that a pickle may name.
#[derive(Debug, PartialEq, Eq)]
pub struct Global {
    /// The module as pickles write it.
    pub module: &'static str,
    /// The name in the module.
    pub name: &'static str,
    /// What drift makes of it.
    pub role: Role,
}

/// What drift makes of a class or function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An RDKit molecule, whose first argument is the molecule in RDKit's binary format.
    Molecule,
    /// `_codecs.encode`, which is how the protocols 0 to 2 write `bytes`: as text, one character per byte.
    Encode,
    /// Anything else: kept with its arguments and contents, never interpreted.
    Plain,
}

impl Global {
    /// The class or function of that name, if it may stand in a pickle that drift reads.
    ///
    /// The list holds what pickles of molecules need: RDKit's molecule classes, Python's containers (in the
    /// spelling of Python 2 and 3), and NumPy's scalars and arrays (in the spelling of NumPy 1 and 2).
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
