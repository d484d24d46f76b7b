//! What tests report when they fail.

use signalbox_domain::flaky::{ReportedFailure, TestKey};

use super::Numbers;

const WORDS: [&str; 6] = ["sum", "rounded", "Grüße", "a/b", "x-1", "total_of"];

/// The key of a test.
pub(crate) fn key(number: u32) -> TestKey {
    let file = ["tests/calc.rs", "src\\Sum.java", "", "./test_sum.py"];
    let at = usize::try_from(number).expect("small") % file.len();
    TestKey {
        parent: if number.is_multiple_of(3) { "calc".into() } else { String::new() },
        classname: if number.is_multiple_of(2) { "CalcTest".into() } else { String::new() },
        file: file[at].into(),
        name: format!("adds {number}"),
        variant: if number.is_multiple_of(7) { "linux".into() } else { String::new() },
        ..TestKey::default()
    }
}

/// A failure that says something else each time, in one of many forms.
pub(crate) fn failure(numbers: &mut Numbers, number: u32) -> ReportedFailure {
    let (one, two) = (numbers.below(10_000), numbers.below(60));
    let (word, long) = (*numbers.pick(&WORDS), numbers.next());
    let message = match numbers.below(20) {
        0 => format!("expected {one} but was {two}"),
        1 => format!("could not connect to db{}.internal:5432", two % 3),
        2 => format!("GET https://api.test/v1/{one}?id={long:x} failed after {two}ms"),
        3 => format!("\"{word}\" is not '{word}s' but `{one}`"),
        4 => format!("/home/ci/build-{one}/src/calc.rs:{two}:{one}: mismatch"),
        5 => format!("at 2026-11-{:02}T{:02}:{two:02}:09.{one}Z too late", 1 + two % 28, two % 24),
        6 => format!("segmentation fault at 0x{long:x}"),
        7 => format!("token {long:016x}{long:016x} is not valid"),
        8 => format!("\u{1b}[31m{word}\u{1b}[0m {two}% of {one}.5"),
        9 => format!("{}:{two:02} {}:{two:02}:{two:02},123 it's late", two % 24, two % 24),
        10 => format!("{two}.5e-7 is not -{one}.25e+3 nor 1_000"),
        11 => format!("550e8400-e29b-41d4-a716-{:012x}", long & 0xffff_ffff_ffff),
        12 => format!("C:\\work\\{word}\\calc_{one}.py:{two} and ../{word}/x.go"),
        13 => format!("ran {two}m{two}s, {one} ms, {two}h; limit {one}s"),
        14 => format!("don't {word} 'quoted \\' text' \"open"),
        15 => format!("[{one}, {two}] != [{word}] (x{one}y)"),
        16 => format!("line one of {word}\n\n  line {one}\n{}", "more\n".repeat(12)),
        17 => format!("http://[::1]:{one}/{word}) or localhost:{one}, user@host:22"),
        18 => String::new(),
        _ => format!("assertion of {number} failed"),
    };
    let text = match numbers.below(6) {
        0 => format!("Error\n  at Calc.{word}(Calc.java:{one})\n  at T.run(T.java:{two})"),
        1 => format!("Traceback:\n  File \"a.py\", line {one}, in {word}\nValueError: {two}"),
        2 => format!("   {two}: calc::{word}\n             at ./src/lib.rs:{one}:5\n#0 {word} ()"),
        3 => format!("goroutine 1 [running]:\nmain.{word}(...)\n\t/src/x.go:{one}"),
        _ => String::new(),
    };
    ReportedFailure { message, text }
}

/// A failure that many tests share, in one of three ways.
pub(crate) fn shared(numbers: &mut Numbers, way: u32) -> ReportedFailure {
    let number = numbers.below(1_000);
    let (message, text) = match way % 3 {
        0 => ("no space left on device".to_owned(), String::new()),
        1 => (format!("failed {number}"), format!("x\n  at Pool.get(Pool.java:{number})")),
        _ => (format!("cannot reach cache.internal:6379 ({number})"), String::new()),
    };
    ReportedFailure { message, text }
}
