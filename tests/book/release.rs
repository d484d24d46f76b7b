//! A release: its toolchain, its components, and where they come from.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

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
    let pinned: toml::Table = read("rust-toolchain.toml").parse().expect("TOML");
    assert_eq!(pinned["toolchain"]["channel"].as_str(), Some(rust), "development");
    assert!(read("tests/run").contains("sed -n 's/^rust=//p' .ci/release"));
    let page = read("docs/contributing/toolchain.md");
    assert!(page.contains(&format!("`{rust}`")), "the page names another version than {rust}");
}

/// Packs a program, which is a script here, and returns the files.
fn packed(folder: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    packed_with(folder, &std::env::var("PATH").unwrap_or_default())
}

/// The same with this search path.
fn packed_with(folder: &std::path::Path, path: &str) -> Vec<(String, Vec<u8>)> {
    let program = folder.join("program");
    let script = "#!/bin/sh\ncase $1 in completions) echo \"for $2\" ;; \
                  man) mkdir -p \"$2\" && echo page > \"$2/signalbox.1\" ;; esac\n";
    std::fs::write(&program, script).expect("written");
    let may_run = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, may_run).expect("a program");
    let out = folder.join("out");
    let has_dpkg = Command::new("dpkg-deb").arg("--version").output().is_ok();
    for kind in ["archive", "deb"].iter().take(1 + usize::from(has_dpkg)) {
        let mut script = Command::new(root().join(".ci/package"));
        // A tree without a repository has no commit whose time could be used.
        script.arg(kind).arg(&program).arg(&out).env("SOURCE_DATE_EPOCH", "1700000000");
        script.env("PATH", path);
        let done = script.output().expect("it ran");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let files = std::fs::read_dir(&out).expect("a folder").map(|file| file.expect("a file"));
    let mut files: Vec<_> = files
        .map(|file| {
            let content = std::fs::read(file.path()).expect("a file");
            (file.file_name().into_string().expect("UTF-8"), content)
        })
        .collect();
    files.sort();
    files
}

fn output(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output().expect("it ran");
    assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("UTF-8")
}

/// A program that is linked with the C library needs a package with it. What lists the libraries writes more
/// than a pipe holds after the one that counts.
#[test]
fn a_package_of_a_dynamic_program_depends_on_the_c_library() {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        return signalbox_tests::not_tested("dpkg-deb is not installed");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let ldd = folder.path().join("ldd");
    let script =
        "#!/bin/sh\necho 'libc.so.6 => /lib/libc.so.6'\nyes 'libm.so.6' | head -n 100000\n";
    std::fs::write(&ldd, script).expect("written");
    std::fs::set_permissions(&ldd, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let path = std::env::var("PATH").unwrap_or_default();
    packed_with(folder.path(), &format!("{}:{path}", folder.path().display()));
    let out = std::fs::read_dir(folder.path().join("out")).expect("a folder");
    let out: Vec<_> = out.map(|file| file.expect("a file").path()).collect();
    let package = out.iter().find(|it| it.extension().is_some_and(|it| it == "deb"));
    let package = package.expect("a package").display().to_string();
    let depends = output("dpkg-deb", &["--field", &package, "Depends"]);
    assert!(
        depends.starts_with("libc6 (>= 2.") && depends.contains(", libgcc-s1, git "),
        "{depends}"
    );
}

/// The packages have what a server needs, in the places that the unit names, and the same bytes
/// again.
#[test]
fn a_release_is_packed() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = packed(folder.path());
    let again = tempfile::tempdir().expect("a folder");
    assert_eq!(files, packed(again.path()), "another time and place");

    let path = |end: &str| {
        let name = files.iter().map(|(name, _)| name).find(|name| name.ends_with(end));
        name.map(|name| folder.path().join("out").join(name).display().to_string())
    };
    let archive = output("tar", &["-tzf", &path(".tar.gz").expect("an archive")]);
    for name in [
        "signalbox",
        "LICENSE-MIT",
        "config.example.toml",
        "signalbox.service",
        "man/man1/signalbox.1",
        "completions/signalbox.bash",
        "completions/_signalbox",
        "completions/signalbox.fish",
    ] {
        assert!(archive.lines().any(|line| line.ends_with(&format!("/{name}"))), "{archive}");
    }

    let Some(package) = path(".deb") else {
        eprintln!("skipped: dpkg-deb is not installed");
        return;
    };
    let tree = folder.path().join("tree");
    output("dpkg-deb", &["--raw-extract", &package, &tree.display().to_string()]);
    let file = |name: &str| std::fs::read_to_string(tree.join(name)).expect(name);
    for (shell, name) in [
        ("bash", "bash-completion/completions/signalbox"),
        ("zsh", "zsh/vendor-completions/_signalbox"),
        ("fish", "fish/vendor_completions.d/signalbox.fish"),
    ] {
        assert_eq!(file(&format!("usr/share/{name}")), format!("for {shell}\n"));
    }
    assert!(tree.join("usr/share/man/man1/signalbox.1.gz").is_file());
    let unit = file("usr/lib/systemd/system/signalbox.service");
    let start = line(&unit, "ExecStart=/").expect("a program").trim_start_matches("ExecStart=/");
    let words: Vec<&str> = start.split(' ').collect();
    assert_eq!(words[1..3], ["serve", "--config"], "{start}");
    for name in [words[0], words[3].trim_start_matches('/')] {
        assert!(tree.join(name).is_file(), "the package has no {name}");
    }
    assert!(!unit.contains("Copy to"), "{unit}");
    let state = line(&unit, "StateDirectory=").expect("a folder").replace("StateDirectory=", "");
    let settings: toml::Table = file("etc/signalbox/signalbox.toml").parse().expect("TOML");
    assert_eq!(settings["data_dir"].as_str(), Some(format!("/var/lib/{state}").as_str()));
    assert_eq!(file("DEBIAN/conffiles").trim(), "/etc/signalbox/signalbox.toml");
    let manifest: toml::Table = read("Cargo.toml").parse().expect("TOML");
    let version = manifest["workspace"]["package"]["version"].as_str().expect("a version");
    let control = file("DEBIAN/control");
    assert_eq!(line(&control, "Version: "), Some(format!("Version: {version}").as_str()));
    for script in ["postinst", "prerm", "postrm"] {
        output("sh", &["-n", &tree.join("DEBIAN").join(script).display().to_string()]);
    }
}
