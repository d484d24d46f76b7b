//! The example of a policy runs, and the guide has its code.

#[path = "../examples/own_policy.rs"]
mod example;

use example::Growing;
use signalbox_domain::queue::Settings;
use signalbox_domain::testing::{Rules, World};

#[test]
fn a_batch_grows_while_no_slot_is_free() {
    let settings = Settings::builder()
        .concurrency(1_u32)
        .batch(true)
        .batching_min_size(3_u32)
        .build()
        .expect("valid settings");
    let mut world = World::new(settings, Rules::default()).with_policy(Growing);
    for pr in 1..=5 {
        world.submit(pr, None).expect("submitted");
    }
    let tested = |world: &World| world.queue.runs().map(|run| run.group.len()).collect::<Vec<_>>();
    assert_eq!(tested(&world), [1], "the first did not wait for others");
    while tested(&world) == [1] {
        world.step();
    }
    assert!(tested(&world).contains(&3), "four wait, and three are the most");
    world.settle();
    assert_eq!(world.landed, [1, 2, 3, 4, 5]);
}

#[test]
fn the_example_runs() {
    example::main().expect("a valid study");
}

#[test]
fn the_guide_has_the_code_of_the_example() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/write-a-policy.md");
    let guide = std::fs::read_to_string(guide).expect("the guide");
    let example = include_str!("../examples/own_policy.rs");
    let test = include_str!("own_policy.rs");
    for (text, from) in
        [(example, "struct Growing"), (example, "impl Policy"), (test, "fn a_batch")]
    {
        let from = text.find(from).expect("a part");
        let code = &text[from..];
        let code = &code[..code.find("\n}\n").map_or(code.find('\n').expect("a line"), |it| it)];
        assert!(guide.contains(code), "docs/how-to/write-a-policy.md needs this code:\n{code}");
    }
}
