//! The example of a policy runs, and the guide has its code.

#[path = "../examples/own_policy.rs"]
mod example;

#[test]
fn the_example_runs() {
    example::main().expect("a valid study");
}

#[test]
fn the_guide_has_the_code_of_the_example() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/write-a-policy.md");
    let guide = std::fs::read_to_string(guide).expect("the guide");
    let example = include_str!("../examples/own_policy.rs");
    let from = example.find("impl Policy").expect("a policy");
    let code = &example[from..];
    let code = &code[..code.find("\n}\n").expect("the end of the policy")];
    assert!(guide.contains(code), "docs/how-to/write-a-policy.md needs this code:\n{code}");
}
