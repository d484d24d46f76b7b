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

# Check the dependencies between crates
[group('check')]
layers:
    cargo test -p signalbox-tests --test layers

# Compile the domain crate alone
[group('check')]
domain-alone:
    cargo check -p signalbox-domain --no-default-features

# Check licences, sources, bans and advisories of dependencies
[group('check')]
deny:
    cargo deny check

# Build the documentation of all crates, with warnings as errors
[group('check')]
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Exactly what CI runs
[group('check')]
ci:
    .ci/run

# Run every test, on both databases
[group('test')]
test *ARGS:
    tests/run {{ARGS}}

# Tests that need no database and no server
[group('test')]
test-unit:
    cargo test -p signalbox-domain -p signalbox-conformance -p signalbox-http -p signalbox-metrics -p signalbox-git -p signalbox-reports -p signalbox-testkit

# Model tests of queues and flaky tests with many more random histories
[group('test')]
model CASES='100000':
    SIGNALBOX_PROPTEST_CASES={{CASES}} cargo test --release -p signalbox-domain --test model --test flaky_model --test rules

# Mutation tests of the planner and the rules: tests must catch at least 95 %. Takes hours; writes
# target/mutants.out. Survivors are listed with reasons in docs/contributing/mutants.md
[group('test')]
mutants *ARGS:
    SIGNALBOX_PROPTEST_CASES=400 cargo mutants --package signalbox-domain --output target {{ARGS}}

# Simulate the whole system with N seeds
[group('test')]
simulate N='5000':
    SIGNALBOX_SIMULATION_SEEDS={{N}} cargo test --release -p signalbox-testkit --test simulation

# Feed the parsers of untrusted input that docs/contributing/testing.md lists with INPUTS mutations of real inputs
[group('test')]
fuzz INPUTS='200000':
    #!/usr/bin/env bash
    set -euo pipefail
    export SIGNALBOX_FUZZ_INPUTS={{INPUTS}} PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-$(date +%s)}
    echo "PROPTEST_RNG_SEED=$PROPTEST_RNG_SEED repeats this run"
    cargo nextest run --profile proof --release --package=signalbox-{tests,admin,git,github,hosts,http,oidc,sandbox,web} -E 'binary(fuzz) | test(/(^|::)fuzz(_|::)/)'

# Compare the description of the API with the server: EXAMPLES random requests for each operation
[group('test')]
fuzz-api EXAMPLES='200':
    #!/usr/bin/env bash
    set -euo pipefail
    tests/fetch tests/clients target/clients
    export SIGNALBOX_CLIENTS=$PWD/target/clients SIGNALBOX_FUZZ_EXAMPLES={{EXAMPLES}}
    export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-$(date +%s)}
    echo "PROPTEST_RNG_SEED=$PROPTEST_RNG_SEED repeats this run"
    cargo build --workspace --bins
    cargo nextest run --workspace --profile proof -E 'binary(it) and test(a_fuzzer)'

# Check the figures of docs/domain/policies.md; SIGNALBOX_UPDATE=1 writes them again
[group('test')]
policies:
    cargo test --release -p signalbox-cli --test policies -- --ignored

# Send MESSAGES webhook messages with KILLS server kills: none is lost, on both databases
[group('test')]
webhooks MESSAGES='10000' KILLS='10':
    cargo build -p signalbox
    SIGNALBOX_WEBHOOK_MESSAGES={{MESSAGES}} SIGNALBOX_WEBHOOK_KILLS={{KILLS}} cargo nextest run --profile proof -p signalbox-tests --test it nothing_is_lost

# Long tests for a night: random histories, seeds, fuzzers, kills and a day on a GitHub double, at many
# times their CI size. Takes hours
[group('test')]
nightly:
    just model 100000
    cargo test --release -p signalbox-domain --test exhaustive -- --ignored
    just simulate 5000
    just fuzz 200000
    just fuzz-api 100
    cargo build -p signalbox && cargo nextest run -p signalbox-tests --test it --run-ignored only p99
    just webhooks 10000 10
    just github-day 500
    just policies

# Measure operations against floors: all operations, or the named ones; writes target/bench.json
[group('test')]
bench *ARGS:
    cargo build --release -p signalbox
    cargo build --release -p signalbox-bench
    target/release/signalbox-bench {{ARGS}}

# Draw a flame graph of an operation of the benchmark, in target/flame.svg. Needs Linux's perf
[group('test')]
flame OPERATION:
    test -x target/tools/bin/inferno-flamegraph || cargo install --locked --root target/tools inferno
    cargo build --profile profiling -p signalbox -p signalbox-bench
    perf record -F 199 --call-graph dwarf,16384 -o target/perf.data \
        target/profiling/signalbox-bench {{OPERATION}} --rounds 1
    perf script -i target/perf.data | target/tools/bin/inferno-collapse-perf \
        | target/tools/bin/inferno-flamegraph > target/flame.svg

# Replay generated years of a repository, with known truth, through the judge of flaky tests:
# how well it judges, and what that costs
[group('test')]
replay-year *ARGS:
    cargo run --release -p signalbox-bench --bin replay-year -- {{ARGS}}

# A day of N pull requests on a GitHub double with injected faults, with the number of calls
[group('test')]
github-day N='500':
    cargo build -p signalbox
    SIGNALBOX_GITHUB_PRS={{N}} cargo test -p signalbox-tests --test github day -- --nocapture --test-threads 1

# Test the pages in a real browser
[group('test')]
browser *ARGS:
    cargo build -p signalbox
    tests/browser/run {{ARGS}}

# Regenerate the screenshots in the documentation
[group('gen')]
screenshots:
    cargo build -p signalbox
    tests/browser/run --pictures

# Build the documentation as a book with search, in target/book
[group('gen')]
book:
    command -v mdbook >/dev/null || test -x target/tools/bin/mdbook || cargo install --locked --root target/tools mdbook
    PATH="$PWD/target/tools/bin:$PATH" mdbook build

# Regenerate documents
[group('gen')]
gen:
    SIGNALBOX_UPDATE=1 cargo test -p signalbox-tests --test docs
    SIGNALBOX_UPDATE=1 cargo test -p signalbox-persistence --lib --test migrations

# The whole story on a real repository, and pages to look at
[group('run')]
demo:
    cargo run --release -- demo

# Run a server on the embedded database
[group('run')]
run:
    cargo run -- serve

# Build a release into FOLDER: the program, the list of its components (SBOM), an archive, a Debian package and checksums
[group('release')]
release FOLDER='target/dist':
    .ci/release {{FOLDER}}

# Build a release twice, in different folders, and compare the bytes
[group('release')]
release-twice:
    .ci/release-twice
