//! A release: its toolchain, its components, and where they come from.

use crate::page::{none, root};

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).expect("a file")
}

/// Packages that are neither part of the workspace nor from the registry with a checksum.
fn foreign(lock: &str) -> Vec<String> {
    let lock: toml::Table = lock.parse().expect("TOML");
    let packages = lock["package"].as_array().expect("packages");
    let text = |package: &toml::Value, key: &str| {
        package.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned()
    };
    let is_foreign = |package: &&toml::Value| {
        let (name, source) = (text(package, "name"), text(package, "source"));
        let is_own = source.is_empty() && name.starts_with("signalbox");
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        !is_own && (source != registry || text(package, "checksum").len() != 64)
    };
    packages.iter().filter(is_foreign).map(|package| text(package, "name")).collect()
}

#[test]
fn every_dependency_comes_from_the_registry() {
    none(&foreign(&read("Cargo.lock")));
    let package = |rest: &str| format!("[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n{rest}");
    let git = package("source = \"git+https://git.example/a\"");
    let unchecked = package("source = \"registry+https://github.com/rust-lang/crates.io-index\"");
    for wrong in [git, unchecked, package("")] {
        assert_eq!(foreign(&wrong), ["a"], "{wrong}");
    }
}

/// The line of a script that begins with these words.
fn line<'a>(script: &'a str, start: &str) -> Option<&'a str> {
    script.lines().map(str::trim).find(|line| line.starts_with(start))
}

#[test]
fn the_release_has_a_list_of_its_components() {
    let script = read(".ci/release");
    let build = line(&script, "cargo build").expect("a build");
    assert!(build.contains("--locked") && build.contains("--release"), "{build}");
    let list = line(&script, "cargo cyclonedx --quiet").expect("a list of components");
    assert!(list.contains("--format json"), "{list}");
    let sums = line(&script, "sha256sum").expect("checksums");
    assert!(sums.contains("signalbox.cdx.json"), "{sums}");
    let recipes = read("justfile");
    for recipe in [".ci/release {{FOLDER}}", ".ci/release-twice"] {
        assert!(line(&recipes, recipe).is_some(), "{recipe}");
    }
}

#[test]
fn the_toolchain_of_releases_is_the_one_of_the_manifest_and_the_image() {
    let script = read(".ci/release");
    let rust = line(&script, "rust=").expect("a version").trim_start_matches("rust=");
    let manifest: toml::Table = read("Cargo.toml").parse().expect("TOML");
    let least = manifest["workspace"]["package"]["rust-version"].as_str().expect("a version");
    assert!(rust == least || rust.starts_with(&format!("{least}.")), "{rust} and {least}");
    let image = read("docs/operations/deploy/Containerfile");
    assert!(
        image.contains(&format!("/rust:{least}-")),
        "the image has another version than {least}"
    );
    assert!(read("tests/run").contains("sed -n 's/^rust=//p' .ci/release"));
    let page = read("docs/contributing/toolchain.md");
    assert!(page.contains(&format!("`{rust}`")), "the page names another version than {rust}");
}
