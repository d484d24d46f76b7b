//! What a check sees and may do under bubblewrap: the arguments of `bwrap`.
//!
//! A check sees the programs of the machine, read-only, and its own folder. It has its own users,
//! processes, mounts, semaphores and host name, and its own network or none; it has no rights of an
//! administrator and cannot get any. On a server that runs as root it is also another user.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::SandboxSettings;

/// The program.
pub(crate) const PROGRAM: &str = "bwrap";
/// The home folder of a check.
pub(crate) const HOME: &str = "/home/check";
/// The folder for its temporary files.
pub(crate) const TMP: &str = "/tmp";
/// Its working directory.
pub(crate) const CHECKOUT: &str = "/checkout";
/// Bytes of shared memory in `/dev/shm`.
const SHARED_MEMORY: u32 = 256 * 1024 * 1024;
/// Where programs and libraries are. Mostly these are links into `/usr`.
const PROGRAMS: [&str; 8] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];
/// The settings of programs in `/usr/local`, which are not shown.
const LOCAL_SETTINGS: &str = "/usr/local/etc";
/// What programs read of `/etc`. Nothing of it is secret.
const SETTINGS: [&str; 17] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/java",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
];
/// What programs read to find other machines.
const NETWORK: [&str; 2] = ["/etc/hosts", "/etc/resolv.conf"];

/// Who a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The user of the server, in a user namespace of its own.
    Own(u32),
    /// Another user. The server runs as root.
    Other(u32),
}

impl Identity {
    pub(crate) const fn is_other(self) -> bool {
        matches!(self, Self::Other(_))
    }
}

/// What a check must not see although it is below a folder that is shown, and that folder. A check
/// in a container sees the programs of its image.
pub(crate) fn exposed(
    settings: &SandboxSettings,
    hidden: &[PathBuf],
) -> Option<(PathBuf, PathBuf)> {
    let programs: &[&str] = if settings.backend.has_images() { &[] } else { &PROGRAMS };
    let shown = programs.iter().map(PathBuf::from).chain(settings.read_only_paths.iter().cloned());
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let shown: Vec<PathBuf> = shown.map(|it| real(&it)).collect();
    hidden.iter().find_map(|path| {
        let hidden = real(path);
        let by = shown.iter().find(|it| hidden.starts_with(it) || it.starts_with(&hidden))?;
        Some((path.clone(), by.clone()))
    })
}

/// Writes the files that tell a check who it is.
pub(crate) fn write_names(folder: &Path, identity: Identity) -> io::Result<()> {
    let (Identity::Own(id) | Identity::Other(id)) = identity;
    let passwd = format!("check:x:{id}:{id}:check:{HOME}:/bin/sh\n");
    for (name, text) in [("passwd", passwd), ("group", format!("check:x:{id}:\n"))] {
        let path = folder.join(name);
        std::fs::write(&path, text)?;
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o644))?;
    }
    Ok(())
}

/// The arguments of `bwrap` that run a command in a folder.
pub(crate) fn arguments(
    settings: &SandboxSettings,
    identity: Identity,
    folder: &Path,
    command: &[String],
) -> Vec<OsString> {
    let mut args = Arguments::default();
    args.add(["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    args.add(["--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
    match identity {
        // No further user namespace in it, in which it would be an administrator.
        Identity::Own(_) => args.add(["--unshare-user", "--disable-userns"]),
        // Only until it has become that user.
        Identity::Other(_) => {
            args.add(["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]);
            args.add(["--cap-add", "CAP_SETPCAP"]);
        }
    }
    if !settings.network {
        args.add(["--unshare-net"]);
    }
    for path in PROGRAMS {
        args.program(Path::new(path));
    }
    // Here and there it has the settings of servers.
    if Path::new(LOCAL_SETTINGS).is_dir() {
        args.add(["--perms", "0755", "--tmpfs", LOCAL_SETTINGS, "--remount-ro", LOCAL_SETTINGS]);
    }
    args.folder(Path::new("/etc"));
    for path in SETTINGS {
        args.show(Path::new(path), true);
    }
    if settings.network {
        for path in NETWORK {
            args.show(Path::new(path), true);
        }
    }
    for path in &settings.read_only_paths {
        args.show(path, false);
    }
    for name in ["passwd", "group"] {
        args.mount("--ro-bind", &folder.join(name), &Path::new("/etc").join(name));
    }
    args.add(["--proc", "/proc", "--dev", "/dev"]);
    args.add(["--size", &SHARED_MEMORY.to_string(), "--perms", "1777", "--tmpfs", "/dev/shm"]);
    args.add(["--remount-ro", "/dev"]);
    for (inner, shown) in [("tmp", TMP), ("home", HOME), ("checkout", CHECKOUT)] {
        args.parents(Path::new(shown));
        args.mount("--bind", &folder.join(inner), Path::new(shown));
    }
    args.parents(Path::new("/var/tmp"));
    args.add(["--symlink", TMP, "/var/tmp", "--remount-ro", "/", "--chdir", CHECKOUT, "--"]);
    let processes = format!("--nproc={0}:{0}", settings.processes);
    args.add(["/usr/bin/prlimit", &processes, "--core=0:0", "--"]);
    if let Identity::Other(id) = identity {
        args.add(["/usr/bin/setpriv", &format!("--reuid={id}"), &format!("--regid={id}")]);
        args.add(["--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]);
        args.add(["--"]);
    }
    args.0.extend(command.iter().map(OsString::from));
    args.0
}

/// Arguments, one after the other.
#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.map(OsString::from));
    }

    fn mount(&mut self, how: &str, from: &Path, to: &Path) {
        self.0.extend([how.into(), from.into(), to.into()]);
    }

    /// A folder of the sandbox that every user can enter.
    fn folder(&mut self, path: &Path) {
        self.add(["--perms", "0755", "--dir"]);
        self.0.push(path.into());
    }

    /// The folders above a path, but not the root.
    fn parents(&mut self, path: &Path) {
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.pop();
        for folder in above.into_iter().rev() {
            self.folder(folder);
        }
    }

    /// Shows a file or folder of the machine where it is.
    fn show(&mut self, path: &Path, may_be_missing: bool) {
        if may_be_missing && !path.exists() {
            return;
        }
        self.parents(path);
        self.mount("--ro-bind", path, path);
    }

    /// Shows a folder of programs, or the link that is there instead.
    fn program(&mut self, path: &Path) {
        match std::fs::read_link(path) {
            Ok(target) => self.0.extend(["--symlink".into(), target.into(), path.into()]),
            Err(_) => self.show(path, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(settings: &SandboxSettings, identity: Identity) -> String {
        let command = ["make".to_owned(), "test".to_owned()];
        let args = arguments(settings, identity, Path::new("/jobs/1"), &command);
        let words: Vec<_> = args.iter().map(|it| it.to_string_lossy().into_owned()).collect();
        words.join(" ")
    }

    #[test]
    fn a_server_that_is_root_makes_the_check_another_user_before_it_runs() {
        let settings = SandboxSettings::default();
        let other = line(&settings, Identity::Other(60_801));
        let end = "--reuid=60801 --regid=60801 --clear-groups --inh-caps=-all \
                   --bounding-set=-all --no-new-privs -- make test";
        assert!(other.ends_with(end), "{other}");
        let own = line(&settings, Identity::Own(1_000));
        assert!(own.contains("--unshare-user --disable-userns"), "{own}");
        assert!(own.ends_with("--nproc=2048:2048 --core=0:0 -- make test"), "{own}");
        assert!(!own.contains("--cap-add"), "{own}");
    }

    #[test]
    fn the_network_is_shared_only_by_a_setting() {
        let mut settings = SandboxSettings::default();
        assert!(line(&settings, Identity::Own(1_000)).contains("--unshare-net"));
        settings.network = true;
        assert!(!line(&settings, Identity::Own(1_000)).contains("--unshare-net"));
    }

    #[test]
    fn what_is_hidden_may_not_be_in_what_is_shown_nor_around_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (data, tools) = (folder.path().join("data"), folder.path().join("tools"));
        let shown = |path: &Path| SandboxSettings {
            read_only_paths: vec![path.to_owned()],
            ..SandboxSettings::default()
        };
        for path in [&data, &tools, &data.join("cache"), &tools.join("data")] {
            std::fs::create_dir_all(path).expect("made");
        }
        let hidden = [data.clone()];
        assert_eq!(exposed(&shown(&tools), &hidden), None);
        assert!(exposed(&shown(folder.path()), &hidden).is_some(), "around it");
        assert!(exposed(&shown(&data.join("cache")), &hidden).is_some(), "in it");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&data, &link).expect("a link");
        assert!(exposed(&shown(&link), &hidden).is_some(), "by another name");
        let in_usr = [PathBuf::from("/usr/local/signalbox")];
        assert!(exposed(&SandboxSettings::default(), &in_usr).is_some());
    }
}
