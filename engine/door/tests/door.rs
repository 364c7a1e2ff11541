//! The door from outside: texts in, errors with places out.
#![allow(clippy::unwrap_used, reason = "tests")]

use watchfire_door::{DEPTH_MAX, Errors, FILE_BYTES_MAX, Node, read};

fn refused(text: &str) -> String {
    let mut errors = Errors::default();
    assert!(read("f.yaml", text, &mut errors).is_none(), "{text}");
    errors.to_string()
}

fn node(text: &str) -> Node {
    read("f.yaml", text, &mut Errors::default()).unwrap()
}

#[test]
fn what_cannot_be_read_says_where() {
    assert_eq!(refused(""), "f.yaml:1:1: the file is empty");
    assert!(refused("a: [1, 2\nb: 3").starts_with("f.yaml:2:"), "{}", refused("a: [1, 2\nb: 3"));
    assert_eq!(refused("a: &x 1\nb: *x"), "f.yaml:2:4: anchors and aliases are not read\n  hint: write the value out");
    assert!(refused("a: 1\n---\nb: 2").contains("a second document begins"));
    assert!(refused(&"[".repeat(DEPTH_MAX + 1)).contains("nested more than 64 deep"));
    assert!(refused(&" ".repeat(FILE_BYTES_MAX + 1)).contains("at most 1048576 are read"));
}

#[test]
fn a_key_that_is_there_twice_is_an_error() {
    let mut errors = Errors::default();
    read("f.yaml", "a: 1\nb: 2\na: 3", &mut errors);
    assert_eq!(errors.to_string(), "f.yaml:3:1: key `a` is there twice; the first is at line 1");
}

#[test]
fn a_mark_of_byte_order_and_carriage_returns_are_no_error() {
    let mut errors = Errors::default();
    let mut map = node("\u{feff}a: 1\r\nb: x\r\n").map(&mut errors).unwrap();
    assert_eq!(map.take("b").unwrap().as_text(), Some("x"));
}

#[test]
fn values_are_what_they_are_written_as() {
    let json = node("{a: 1, b: 1.5, c: \"1\", d: true, e: x, f: [~, 2], g: 5m, h: inf, i: 0x10}").to_json();
    assert_eq!(
        json,
        serde_json::json!({"a": 1, "b": 1.5, "c": "1", "d": true, "e": "x", "f": [null, 2], "g": "5m", "h": "inf", "i": "0x10"})
    );
}

#[test]
fn a_path_finds_its_place() {
    let node = node("above:\n  warning: 85\n  critical: [1,\n    {x: 2}]\n");
    assert_eq!(node.place_of("above.critical[1].x").to_string(), "f.yaml:4:9");
    assert_eq!(node.place_of("above.emergency").to_string(), "f.yaml:2:3");
}

proptest::proptest! {
    #[test]
    fn no_text_is_a_reason_to_panic(text in "[a-z0-9:{}\\[\\],\\-&*!|>'\"#%@ \n\t]{0,200}") {
        let mut errors = Errors::default();
        let node = read("f.yaml", &text, &mut errors);
        proptest::prop_assert!(node.is_some() || !errors.is_empty());
    }
}
