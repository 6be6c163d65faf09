//! Files of encodings, good and bad.

use super::*;

#[test]
fn the_users_bins_are_read_as_they_are() {
    let json = r#"{"mode": "uniform", "L": -1.0, "H": 2.0, "n_bins": 2, "edges": [-1.0, 0.5, 2.0]}"#;
    let encoding = of_json(json).unwrap();
    assert_eq!((encoding.name(), json.parse::<Encoding>()), ("uniform-2", Ok(encoding)));
    let mut text = String::new();
    encoding.write_slot(&encoding.quantize([-1.5, 2.0, 2.5]).unwrap(), &mut text);
    assert_eq!(text, "000002003;");
    let kept = serde_json::to_string(&encoding).unwrap();
    assert_eq!(serde_json::from_str::<Encoding>(&kept).unwrap(), encoding);
    for wrong in [
        r#"{"mode": "uniform", "L": -1.0, "H": 2.0, "n_bins": 2}"#,
        r#"{"mode": "uniform", "L": 2.0, "H": -1.0, "n_bins": 2, "edges": [-1.0, 0.5, 2.0]}"#,
        r#"{"mode": "uniform", "L": 0.5, "H": 0.5, "n_bins": 2, "edges": [-1.0, 0.5, 2.0]}"#,
        r#"{"mode": "uniform", "L": 3.0, "H": 4.0, "n_bins": 2, "edges": [-1.0, 0.5, 2.0]}"#,
        r#"{"mode": "uniform", "L": -1.0, "H": 2.0, "n_bins": 3, "edges": [-1.0, 0.5, 2.0]}"#,
        r#"{"mode": "uniform", "L": -1.0, "H": 2.0, "n_bins": 2, "edges": [-1.0, 2.5, 2.0]}"#,
        r#"{"schema": "drift.encoding/2"}"#,
        "[]",
        "{",
    ] {
        assert!(of_json(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn every_kind_of_number_can_be_said_in_a_file() {
    for (json, text) in [
        (r#"{"kind": "decimal", "decimals": 0, "trailing_zeros": true}"#, "{1,-2,0}"),
        (
            r#"{"kind": "integer", "scale": 10, "width": 4, "most": 9999, "signed": true, "rounding": "nearest"}"#,
            "{0012,-0026,0001}",
        ),
        (r#"{"kind": "index", "width": 2, "axes": [{"low": -4, "high": 4, "step": 1}]}"#, "{06,02,05}"),
    ] {
        let file = format!(
            r#"{{"schema": "{ENCODING_SCHEMA}", "name": "own", "open": "{{", "separator": ",", "close": "}}", "numbers": 3, "number": {json}}}"#
        );
        let encoding = of_json(&file).unwrap();
        let mut out = String::new();
        encoding.write_slot(&encoding.quantize([1.23, -2.55, 0.09]).unwrap(), &mut out);
        assert_eq!(out, text);
        let dfa = encoding.dfa(super::super::IntegersBelow::GENERATED);
        assert!(dfa.matches(out.as_bytes()), "{out}");
        let kept = serde_json::to_string(&encoding).unwrap();
        assert_eq!(serde_json::from_str::<Encoding>(&kept).unwrap(), encoding);
    }
}

#[test]
fn what_cannot_be_read_back_is_refused() {
    let of = |around: [&str; 3], number: &str| {
        let [open, separator, close] = around;
        of_json(&format!(
            r#"{{"schema": "{ENCODING_SCHEMA}", "name": "own", "open": "{open}", "separator": "{separator}", "close": "{close}", "numbers": 3, "number": {number}}}"#
        ))
    };
    let integer = r#"{"kind": "integer", "scale": 10, "width": 4, "most": 99999, "signed": false, "rounding": "floor"}"#;
    let decimal = r#"{"kind": "decimal", "decimals": 2, "trailing_zeros": true}"#;
    assert!(of(["", "", ";"], integer).unwrap_err().contains("does not fit"));
    assert!(of(["<", "", ">"], decimal).unwrap_err().contains("separator"));
    assert!(of(["<", ",", ""], decimal).unwrap_err().contains("closes"));
    assert!(of(["<", "1", ">"], decimal).is_err());
    assert!(of(["<", ",", ">"], decimal).is_ok());
    assert!(of(["<", ",", ","], decimal).unwrap_err().contains("cannot close a slot"));
    assert!(of(["<", ",;", ";"], decimal).unwrap_err().contains("cannot close a slot"));
    let axis = |step: f64| format!(r#"{{"low": -10, "high": 10, "step": {step}}}"#);
    let of_axes = |steps: [f64; 3]| {
        format!(r#"{{"kind": "index", "width": 3, "axes": [{}]}}"#, steps.map(axis).join(", "))
    };
    for steps in [[0.01, 0.1, 0.1], [0.1, 0.01, 0.1], [0.1, 0.1, 0.01]] {
        assert!(of(["", "", ";"], &of_axes(steps)).unwrap_err().contains("2000 does not fit into 3"));
    }
}
