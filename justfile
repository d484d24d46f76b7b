set dotenv-load

# List the recipes
default:
    @just --list

# Format everything
[group('check')]
fmt:
    cargo fmt --all

# Lints, as errors
[group('check')]
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# The arrows between crates
[group('check')]
layers:
    cargo test -p signalbox-tests --test layers

# The domain crate without anything around it
[group('check')]
domain-alone:
    cargo check -p signalbox-domain --no-default-features

# Licences, sources, bans and advisories of dependencies
[group('check')]
deny:
    cargo deny check

# The documentation of all crates, with warnings as errors
[group('check')]
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Everything that CI runs, and nothing else
[group('check')]
ci:
    .ci/run

# Every test, on both databases
[group('test')]
test *ARGS:
    tests/run {{ARGS}}

# Tests that need no database and no server
[group('test')]
test-unit:
    cargo test -p signalbox-domain -p signalbox-conformance -p signalbox-http -p signalbox-metrics -p signalbox-git -p signalbox-reports -p signalbox-testkit

# The model tests of queues and flaky tests with many more histories
[group('test')]
model CASES='100000':
    SIGNALBOX_PROPTEST_CASES={{CASES}} cargo test --release -p signalbox-domain --test model --test flaky_model

# Changes the planner and the rules in every small way: at least 95 % must fail a test. Hours; writes
# target/mutants.out. Survivors are listed with reasons in docs/contributing/mutants.md
[group('test')]
mutants *ARGS:
    SIGNALBOX_PROPTEST_CASES=400 cargo mutants --package signalbox-domain --output target {{ARGS}}

# The simulation of the whole system with that many seeds
[group('test')]
simulate N='5000':
    SIGNALBOX_SIMULATION_SEEDS={{N}} cargo test --release -p signalbox-testkit --test simulation

# That many webhook messages while the server is killed that often: none is lost, on both databases
[group('test')]
webhooks MESSAGES='10000' KILLS='10':
    cargo build -p signalbox
    SIGNALBOX_WEBHOOK_MESSAGES={{MESSAGES}} SIGNALBOX_WEBHOOK_KILLS={{KILLS}} cargo nextest run --profile proof -p signalbox-tests --test it nothing_is_lost

# Measure operations against floors: all of them, or those that are named; writes target/bench.json
[group('test')]
bench *ARGS:
    cargo build --release -p signalbox
    cargo build --release -p signalbox-bench
    target/release/signalbox-bench {{ARGS}}

# A day of so many pull requests on a double of GitHub: with everything that can go wrong, and counted
[group('test')]
github-day N='500':
    cargo build -p signalbox
    SIGNALBOX_GITHUB_PRS={{N}} cargo test -p signalbox-tests --test github day -- --nocapture --test-threads 1

# Journeys through the pages in a real browser
[group('test')]
browser *ARGS:
    cargo build -p signalbox
    tests/browser/run {{ARGS}}

# Pictures of the pages for the documentation, from a server with something to see
[group('gen')]
screenshots:
    cargo build -p signalbox
    tests/browser/run --pictures

# The documentation as a book with search, in target/book
[group('gen')]
book:
    command -v mdbook >/dev/null || test -x target/tools/bin/mdbook || cargo install --locked --root target/tools mdbook
    PATH="$PWD/target/tools/bin:$PATH" mdbook build

# Write generated documents again
[group('gen')]
gen:
    SIGNALBOX_UPDATE=1 cargo test -p signalbox-tests --test docs
    SIGNALBOX_UPDATE=1 cargo test -p signalbox-persistence --lib --test migrations

# The whole story on a real repository, and pages to look at
[group('run')]
demo:
    cargo run --release -- demo

# A server on the embedded database
[group('run')]
run:
    cargo run -- serve
