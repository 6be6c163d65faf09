use proptest::prelude::*;

use super::*;

fn parse(bytes: &[u8]) -> Result<Pickle<'_>, PickleError> {
    Pickle::parse(bytes)
}

fn message(bytes: &[u8]) -> String {
    parse(bytes).unwrap_err().to_string()
}

fn root<'a>(pickle: &Pickle<'a>) -> Value<'a> {
    pickle[pickle.root()].clone()
}

fn one(bytes: &[u8]) -> Value<'_> {
    root(&parse(bytes).unwrap())
}

fn text(text: &str) -> Value<'_> {
    Value::Str(text.into())
}

fn bytes(bytes: &[u8]) -> Value<'_> {
    Value::Bytes(bytes.into())
}

#[test]
fn numbers() {
    let cases: &[(&[u8], Value<'_>)] = &[
        (b"N.", Value::None),
        (b"I01\n.", Value::Bool(true)),
        (b"I00\n.", Value::Bool(false)),
        (b"\x80\x02\x88.", Value::Bool(true)),
        (b"I-17\n.", Value::Int(-17)),
        (b"L123L\n.", Value::Int(123)),
        (b"L-99999999999999999999L\n.", Value::BigInt),
        (b"K\xff.", Value::Int(255)),
        (b"M\x01\x02.", Value::Int(513)),
        (b"J\xff\xff\xff\xff.", Value::Int(-1)),
        (b"\x8a\x00.", Value::Int(0)),
        (b"\x8a\x01\xff.", Value::Int(-1)),
        (b"\x8a\x02\xff\x00.", Value::Int(255)),
        (b"\x8a\x08\0\0\0\0\0\0\0\x80.", Value::Int(i64::MIN)),
        (b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.", Value::BigInt),
        (b"\x8b\x01\0\0\0\x05.", Value::Int(5)),
        (b"F-1.5e3\n.", Value::Float(-1500.0)),
        (b"G\x3f\xf8\0\0\0\0\0\0.", Value::Float(1.5)),
    ];
    for (pickle, expected) in cases {
        assert_eq!(&one(pickle), expected, "{}", pickle.escape_ascii());
    }
}

#[test]
fn strings() {
    let cases: &[(&[u8], Value<'_>)] = &[
        (b"S'plain'\n.", bytes(b"plain")),
        (
            br"S'\x00\n\\\'\101\q'
.",
            bytes(b"\0\n\\'A\\q"),
        ),
        (b"S\"it's\"\n.", bytes(b"it's")),
        (b"Vplain\n.", text("plain")),
        (b"V\\u00b5 \xe9\\U0001f600\n.", text("µ é😀")),
        (b"U\x02ab.", bytes(b"ab")),
        (b"T\x02\0\0\0ab.", bytes(b"ab")),
        (b"C\x02\xff\x00.", bytes(b"\xff\0")),
        (b"X\x02\0\0\0\xc2\xb5.", text("µ")),
        (b"\x8c\x02\xc2\xb5.", text("µ")),
        // A lone surrogate, as Python writes it.
        (b"\x8c\x03\xed\xa0\x80.", text("\u{fffd}\u{fffd}\u{fffd}")),
        (b"\x96\x01\0\0\0\0\0\0\0z.", bytes(b"z")),
        // bytes in protocol 2: _codecs.encode('\u00ff\0', 'latin1')
        (b"c_codecs\nencode\nX\x03\0\0\0\xc3\xbf\x00X\x06\0\0\0latin1\x86R.", bytes(b"\xff\0")),
    ];
    for (pickle, expected) in cases {
        assert_eq!(&one(pickle), expected, "{}", pickle.escape_ascii());
    }
}

#[test]
fn containers_keep_order_and_sharing() {
    // a = []; {'k': (a, a), 'l': [1, 2]}
    let pickle = parse(b"\x80\x04}(U\x01k]\x94h\x00\x86U\x01l](K\x01K\x02eu.").unwrap();
    let Value::Dict(entries) = &pickle[pickle.root()] else { panic!() };
    assert_eq!(entries.iter().map(|&(key, _)| pickle.text(key).unwrap()).collect::<Vec<_>>(), ["k", "l"]);
    let Value::Tuple(pair) = &pickle[entries[0].1] else { panic!() };
    assert_eq!(pair[0], pair[1]);
    let Value::List(list) = &pickle[entries[1].1] else { panic!() };
    assert_eq!(list.iter().map(|&id| pickle[id].clone()).collect::<Vec<_>>(), [Value::Int(1), Value::Int(2)]);
}

#[test]
fn calls_are_kept_and_not_made() {
    // defaultdict(list, {1: 2}) and object.__reduce__ with a state
    let pickle = parse(b"ccollections\ndefaultdict\ncbuiltins\nlist\n\x85RK\x01K\x02sK\x07b.").unwrap();
    let Value::Object(object) = root(&pickle) else { panic!() };
    assert_eq!(object.class, Callee::Known(Role::Plain));
    assert_eq!(object.entries.len(), 1);
    assert_eq!(pickle[object.state.unwrap()], Value::Int(7));
}

#[test]
fn classes_outside_the_list_are_names() {
    for input in [
        &b"cos\nsystem\n(S'true'\ntR."[..],
        b"\x80\x04\x8c\x02os\x8c\x06system\x93)R.",
        b"(ios\nsystem\n.",
        b"cos\nsystem\n)\x81K\x01b.",
        b"cos\nsystem\n)}\x92.",
        b"cos\nsystem\n)R)R.",
    ] {
        let pickle = parse(input).unwrap();
        let Value::Object(object) = root(&pickle) else { panic!() };
        assert_eq!((object.class.role(), pickle.unknown(object.class)), (None, Some("os.system")));
    }
    // A name takes no memory again, however often it stands there.
    let often = [&b"("[..], &b"ca\nb\n".repeat(1_000), b"t."].concat();
    assert_eq!(parse(&often).unwrap().unknown.len(), 1);
}

#[test]
fn what_is_refused_is_named() {
    let cases: &[(&[u8], &str)] = &[
        (b"P1\n.", "pickle uses a persistent identifier at byte 0, which drift does not read"),
        (b"\x82\x01.", "pickle uses Python's extension registry at byte 0, which drift does not read"),
        (b"\x97.", "pickle uses a buffer outside the file at byte 0, which drift does not read"),
        (b"\x80\x06N.", "pickle protocol 6 at byte 0; drift reads 0 to 5"),
        (b"{}", "byte 0 of the pickle is 0x7b, which is not an opcode of pickle protocols 0 to 5"),
        (b".", "pickle is malformed at byte 0: takes a value from an empty stack"),
        (b"K\x01(.", "pickle is malformed at byte 3: takes a value from an empty stack"),
        (b"h\x00.", "pickle is malformed at byte 0: the memo has no such value"),
        (
            b"K\x01K\x02R.",
            "pickle is malformed at byte 4: a call of something that is neither a class nor a function",
        ),
        (b"T\xff\xff\xff\xff", "pickle is malformed at byte 0: a negative length"),
        (b"X\xff\xff\xff\xff", "pickle is truncated: there is no value at byte 5"),
        (b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff", "pickle is truncated: there is no value at byte 9"),
    ];
    for (pickle, problem) in cases {
        assert_eq!(message(pickle), *problem);
    }
    assert!(parse(b"(").is_err() && parse(b"").is_err() && parse(b"S'a").is_err());
}

#[test]
fn nesting_is_not_recursion() {
    let depth = 1_000_000;
    // Memoised, as Python does: two bytes for each list.
    let mut pickle = b"]\x94".repeat(depth);
    pickle.extend(b"a".repeat(depth - 1));
    pickle.push(b'.');
    let parsed = parse(&pickle).unwrap();
    assert_eq!(parsed.value_count(), depth);
    drop(parsed.clone());
}

#[test]
fn sharing_stays_linear_and_floods_are_refused() {
    // l = [l', l'] a hundred deep: 2^100 leaves if copied.
    let mut pickle = b"]\x94".to_vec();
    for level in 0..100u8 {
        pickle.extend([b']', 0x94, b'(', b'h', level, b'h', level, b'e']);
    }
    pickle.push(b'.');
    assert_eq!(parse(&pickle).unwrap().value_count(), 101);
    assert!(message(&b"]".repeat(10_000)).contains("more than 6024 values"));
    // The same text decoded over and over.
    let mut pickle = b"c_codecs\nencode\nq\x00X\x10\x27\0\0".to_vec();
    pickle.extend("é".repeat(5000).bytes());
    pickle.extend(b"q\x01U\x06latin1q\x02");
    pickle.extend(b"X\x06\0\0\0latin1q\x03");
    pickle.extend(b"h\x00h\x01h\x03\x86R".repeat(10_000));
    assert!(message(&pickle).contains("bytes of text"));
}

#[test]
fn the_memo_takes_any_number() {
    // Number 5 before 0 to 4 exist, then taken over by the vector.
    let pickle =
        parse(b"K\x07q\x05K\x00q\x00K\x01q\x01K\x02q\x02K\x03q\x03K\x04q\x04K\x09q\x05h\x05.").unwrap();
    assert_eq!(pickle[pickle.root()], Value::Int(9));
    assert_eq!(one(b"K\x07r\xff\xff\xff\xffK\x08j\xff\xff\xff\xff."), Value::Int(7));
}

#[test]
fn what_follows_is_left_alone() {
    let pickle = parse(b"N.K\x01.").unwrap();
    assert_eq!(pickle.length(), 2);
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    /// Random programs of opcodes that mostly fit get further than random bytes.
    #[test]
    fn no_program_panics(parts in prop::collection::vec(prop::sample::select(PARTS), 0..60)) {
        let mut pickle = parts.concat();
        pickle.push(b'.');
        let _ = parse(&pickle);
    }
}

const PARTS: &[&[u8]] = &[
    b"(",
    b"N",
    b"K\x01",
    b"U\x01k",
    b"\x8c\x01k",
    b"]",
    b"}",
    b")",
    b"\x8f",
    b"a",
    b"e",
    b"s",
    b"u",
    b"t",
    b"l",
    b"d",
    b"\x85",
    b"\x86",
    b"\x87",
    b"\x90",
    b"\x91",
    b"0",
    b"1",
    b"2",
    b"\x94",
    b"q\x00",
    b"h\x00",
    b"q\x09",
    b"h\x09",
    b"ccollections\nOrderedDict\n",
    b"R",
    b"\x81",
    b"b",
    b"o",
    b"\x93",
    b"c_codecs\nencode\n",
    b"X\x01\0\0\0k",
    b"crdkit.Chem.rdchem\nMol\n",
    b"(icopyreg\n_reconstructor\n",
];
