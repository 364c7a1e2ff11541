//! What a rule answers.

use crate::world::{ANSWER, DESCRIPTOR, HITS, Hostile, INPUT, expect, fate, hit};

/// With some words of its answer replaced.
fn answering(words: &[(usize, u32)]) -> Hostile {
    let mut rule = Hostile::default();
    words.iter().for_each(|(at, word)| rule.answer[*at] = *word);
    rule
}

/// With some words of its descriptor replaced.
fn describing(words: &[(usize, u32)]) -> Hostile {
    let mut rule = Hostile::default();
    words.iter().for_each(|(at, word)| rule.descriptor[*at] = *word);
    rule
}

fn reading(words: &[(usize, u32)]) -> Hostile {
    let mut rule = Hostile::default();
    words.iter().for_each(|(at, word)| rule.input[*at] = *word);
    rule
}

fn at(place: &str) -> Hostile {
    Hostile { evaluate: format!("(i32.const {place})"), ..Hostile::default() }
}

fn check(cases: &[(&str, Hostile, &str)]) {
    expect(cases.iter().map(|(name, rule, expected)| ((*name).to_owned(), fate(rule), (*expected).to_owned())));
}

#[test]
fn pointers_to_nowhere_are_answers_that_are_not_valid() {
    check(&[
        ("the end of all memory", at("-1"), "invalid"),
        ("beyond its memory", at("0x7fffff00"), "invalid"),
        ("the last bytes of its memory", at("131068"), "invalid"),
        ("between two words", at("4097"), "invalid"),
        ("hits nowhere", answering(&[(1, 0xffff_fff8), (2, 2)]), "invalid"),
        ("hits that wrap around", answering(&[(1, HITS), (2, 0x0800_0000)]), "invalid|limit output_bytes_per_row"),
        ("billions of hits", answering(&[(1, HITS), (2, u32::MAX)]), "invalid|limit output_bytes_per_row"),
        ("misaligned hits", answering(&[(1, HITS + 1), (2, 1)]), "invalid"),
        ("notes nowhere", answering(&[(3, 0x7fff_0000), (4, 3)]), "invalid"),
        ("billions of notes", answering(&[(3, HITS), (4, u32::MAX)]), "invalid|limit output_bytes_per_row"),
        ("state nowhere", answering(&[(5, 1), (6, 0xffff_fff0), (7, 4)]), "invalid"),
        ("derived nowhere", answering(&[(8, 0xffff_fff0), (9, 4)]), "invalid"),
        ("neither ok nor error", answering(&[(0, 2)]), "invalid"),
        ("an option that is neither", answering(&[(5, 7)]), "invalid"),
        ("an error from nowhere", answering(&[(0, 1), (1, 0xffff_ff00), (2, 50)]), "invalid"),
        ("an error without end", answering(&[(0, 1), (1, 0), (2, 120_000)]), "limit output_bytes_per_row|invalid"),
        ("an error", answering(&[(0, 1), (1, 1056), (2, 7)]), "reported"),
        // Two lists over the same bytes are read twice, and harm nobody.
        ("lists over each other", answering(&[(8, ANSWER), (9, 2)]), "invalid"),
    ]);
}

#[test]
fn texts_are_unicode_or_refused() {
    let note = |bytes: &str, len: u32| {
        // One note at 9000, whose text is at 9100.
        let more = format!(
            "(data (i32.const 9000) \"\\8c\\23\\00\\00\\{len:02x}\\00\\00\\00\") (data (i32.const 9100) \"{bytes}\")"
        );
        Hostile { more, ..answering(&[(3, 9000), (4, 1)]) }
    };
    check(&[
        ("plain", note("abc", 3), "ok"),
        ("half a character", note("\\c3", 1), "invalid"),
        ("an overlong form", note("\\c0\\80", 2), "invalid"),
        ("a surrogate", note("\\ed\\a0\\80", 3), "invalid"),
        ("beyond unicode", note("\\f5\\80\\80\\80", 4), "invalid"),
        ("a zero", note("\\00", 1), "ok"),
        ("an escape", note("\\1b[2J", 4), "ok"),
        ("a name that is no text", describing(&[(2, 2052), (3, 3)]), "load: invalid|ok"),
    ]);
}

#[test]
fn hits_must_make_sense() {
    let noted = |note: u32| {
        let mut words = hit(0, 1, 1, 1.0);
        (words[5], words[6]) = (1, note);
        Hostile::hitting(&[words])
    };
    let cause = |cause: u32| {
        let mut words = hit(0, 1, 1, 1.0);
        words[4] = cause;
        Hostile::hitting(&[words])
    };
    check(&[
        ("good", Hostile::hitting(&[hit(0, 1, 2, 1.0), hit(1, 3, 4, 2.0)]), "ok"),
        ("a row that is not there", Hostile::hitting(&[hit(2, 1, 1, 1.0)]), "invalid"),
        ("the last row of all", Hostile::hitting(&[hit(u32::MAX, 1, 1, 1.0)]), "invalid"),
        ("hold below raise", Hostile::hitting(&[hit(0, 3, 1, 1.0)]), "invalid"),
        ("a severity that is none", Hostile::hitting(&[hit(0, 9, 9, 1.0)]), "invalid"),
        ("no number", Hostile::hitting(&[hit(0, 1, 1, f64::NAN)]), "invalid"),
        ("no end", Hostile::hitting(&[hit(0, 1, 1, f64::INFINITY)]), "invalid"),
        ("a cause that is none", cause(11), "invalid"),
        ("a note that is not there", noted(0), "invalid"),
        ("a note far away", noted(u32::MAX), "invalid"),
        ("more hits than rows", Hostile::hitting(&vec![hit(0, 1, 1, 1.0); 3]), "limit hits"),
        ("2,000 hits", Hostile::hitting(&vec![hit(0, 1, 1, 1.0); 1700]), "limit hits|limit output_bytes_per_row"),
    ]);
}

#[test]
fn notes_state_and_derived_values_have_their_numbers() {
    let stateful = |words: &[(usize, u32)], slots: u32| {
        let mut rule = answering(words);
        rule.descriptor[13] = slots;
        rule
    };
    let nan = Hostile {
        more: "(data (i32.const 9000) \"\\00\\00\\00\\00\\00\\00\\f8\\7f\")".into(),
        ..stateful(&[(5, 1), (6, 9000), (7, 2)], 1)
    };
    check(&[
        ("64 notes", answering(&[(3, 16_384), (4, 64)]), "ok"),
        ("65 notes", answering(&[(3, 16_384), (4, 65)]), "limit notes"),
        ("a state for a rule without", stateful(&[(5, 1), (6, 16_384), (7, 2)], 0), "invalid"),
        ("the right state", stateful(&[(5, 1), (6, 16_384), (7, 2)], 1), "ok"),
        ("too short a state", stateful(&[(5, 1), (6, 16_384), (7, 1)], 1), "invalid"),
        ("too long a state", stateful(&[(5, 1), (6, 16_384), (7, 5)], 1), "invalid"),
        ("an empty state", stateful(&[(5, 1)], 1), "invalid"),
        ("a state that is no number", nan, "invalid"),
        ("derived values of no output", answering(&[(8, 16_384), (9, 2)]), "invalid"),
        ("16 slots", stateful(&[], 16), "ok"),
        ("17 slots", stateful(&[], 17), "load: limit state_slots"),
        ("a million slots", stateful(&[], 1_000_000), "load: limit state_slots"),
    ]);
}

#[test]
fn descriptors_that_lie_are_refused() {
    // The aggregate is `quantile`, of 7.
    let quantile = |bits: u64| reading(&[(4, 10), (6, bits as u32), (7, (bits >> 32) as u32)]);
    check(&[
        ("another contract", describing(&[(1, 19)]), "load: contract"),
        ("a scope that is none", describing(&[(6, 9)]), "load: invalid"),
        ("millions of inputs", describing(&[(8, 1_000_000)]), "load: invalid|load: limit output_bytes_base"),
        ("thousands of inputs", describing(&[(7, 65_536), (8, 1_100)]), "load: limit output_bytes_base|load: invalid"),
        (
            "billions of outputs",
            describing(&[(9, INPUT), (10, u32::MAX)]),
            "load: invalid|load: limit output_bytes_base",
        ),
        ("a giant schema", describing(&[(11, 0), (12, 120_000)]), "load: limit output_bytes_base"),
        ("a schema from nowhere", describing(&[(11, 0xffff_0000), (12, 10)]), "load: invalid"),
        ("a truth that is neither", describing(&[(15, 7)]), "load: invalid|ok"),
        ("a group that is neither", describing(&[(16, 7)]), "load: invalid"),
        ("itself as its inputs", describing(&[(7, DESCRIPTOR), (8, 1)]), "load: invalid|ok"),
        ("quantile 7", quantile(7.0_f64.to_bits()), "load: describe"),
        ("quantile NaN", quantile(f64::NAN.to_bits()), "load: describe"),
        ("quantile below zero", quantile((-0.1_f64).to_bits()), "load: describe"),
        ("an aggregate that is none", reading(&[(4, 99)]), "load: invalid"),
        ("what is read is neither", reading(&[(0, 5)]), "load: invalid"),
    ]);
}
