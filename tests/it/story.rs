//! The demo, as a newcomer runs it.

use crate::harness::{On, System};

#[tokio::test]
async fn the_demo_ends_by_itself_and_as_it_should() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let folder = system.path("demo").display().to_string();
    let told = system.run(&["demo", "--once", "--data-dir", &folder]);
    assert!(told.contains("Everything ended as it should."), "{told}");
    assert!(told.contains("landed tree = tested tree"), "{told}");
    for chapter in ["main", "batches", "rescue", "lanes", "urgent", "flaky"] {
        let mut lines = told.lines().map(str::trim_start);
        let good = lines.any(|it| it.starts_with(chapter) && it.contains("ended as it should"));
        assert!(good, "{chapter}: {told}");
    }
}
