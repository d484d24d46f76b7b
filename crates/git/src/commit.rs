//! Commits in the form in which git keeps them.

use signalbox_domain::time::Timestamp;

use crate::git::Author;

/// The committer of what the queue makes.
pub(crate) const COMMITTER: (&str, &str) = ("Signalbox", "signalbox@localhost");

/// A commit as it was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RawCommit<'a> {
    pub(crate) tree: &'a str,
    pub(crate) parents: Vec<&'a str>,
    author: &'a str,
    is_plain: bool,
}

impl<'a> RawCommit<'a> {
    pub(crate) fn parse(content: &'a [u8]) -> Option<Self> {
        let end = content.windows(2).position(|it| it == b"\n\n").unwrap_or(content.len());
        let header = std::str::from_utf8(content.get(..end)?).ok()?;
        let mut lines = header.lines();
        let tree = lines.next()?.strip_prefix("tree ")?;
        let (mut parents, mut author) = (Vec::new(), None);
        for line in lines.by_ref() {
            let Some(parent) = line.strip_prefix("parent ") else {
                author = line.strip_prefix("author ");
                break;
            };
            parents.push(parent);
        }
        let is_plain = !lines.any(|line| line.starts_with("encoding "));
        Some(Self { tree, parents, author: author?, is_plain })
    }

    /// The name, the address and the date of the author. `None` where git shows something else than
    /// is written.
    pub(crate) fn author(&self) -> Option<(&'a str, &'a str, &'a str)> {
        let (name, rest) = self.author.split_once(" <")?;
        let (email, date) = rest.split_once("> ")?;
        let is_simple = |text: &str| is_kept(text) && !text.contains(['<', '>']);
        let is_dated = !date.contains(['<', '>']);
        (self.is_plain && is_dated && is_simple(name) && is_simple(email))
            .then_some((name, email, date))
    }
}

/// Whether git writes a name or an address as it is: it strips these characters from both ends.
fn is_kept(text: &str) -> bool {
    let is_stripped = |c: char| c <= ' ' || ".,:;<>\"\\'".contains(c);
    let ends = [text.chars().next(), text.chars().next_back()];
    ends.iter().all(|it| it.is_some_and(|it| !is_stripped(it)))
        && !text.contains(['<', '>', '\n', '\0'])
}

/// A commit as git would write it; `None` where git would change a part.
pub(crate) fn written(
    tree: &str,
    parents: &[&str],
    message: &str,
    author: &Author,
    at: Timestamp,
) -> Option<Vec<u8>> {
    if !is_kept(&author.name) || !is_kept(&author.email) || message.is_empty() {
        return None;
    }
    let now = format!("{} +0000", at.unix_micros() / 1_000_000);
    let date = match &author.date {
        Some(date) => date.strip_prefix('@').filter(|date| is_kept_date(date))?,
        None => &now,
    };
    let mut text = format!("tree {tree}\n");
    for parent in parents {
        text.push_str(&["parent ", parent, "\n"].concat());
    }
    let (name, email) = COMMITTER;
    let more = format!(
        "author {} <{}> {date}\ncommitter {name} <{email}> {now}\n\n{message}",
        author.name, author.email
    );
    text.push_str(&more);
    Some(text.into_bytes())
}

/// Whether git writes a date as it is.
fn is_kept_date(date: &str) -> bool {
    let Some((seconds, zone)) = date.split_once(' ') else { return false };
    let (hours, minutes) = (zone.get(1..3), zone.get(3..));
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u32>().ok());
    seconds.parse::<u32>().is_ok_and(|number| number.to_string() == seconds && number > 100_000_000)
        && zone != "-0000"
        && number(hours).is_some_and(|hours| hours <= 14)
        && number(minutes).is_some_and(|minutes| minutes < 60)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use signalbox_domain::ports::HostError;
    use tempfile::TempDir;

    use super::*;
    use crate::git::Git;
    use crate::processes::Processes;

    const AT: Timestamp = Timestamp::from_unix_seconds(1_790_000_000);

    /// An empty repository: with git started for each request, and with processes that stay.
    async fn both() -> (TempDir, Git, Git) {
        let folder = TempDir::new().expect("a folder");
        let plain = Git::at(folder.path().join("bare.git"));
        plain.ok(&["init", "-q"]).await.expect("a repository");
        let lasting = plain.clone().with(&Arc::new(Processes::default()));
        (folder, plain, lasting)
    }

    fn words(error: &HostError) -> String {
        error.to_string()
    }

    #[tokio::test]
    async fn commits_are_the_same_by_a_process_that_stays() {
        let (_folder, plain, lasting) = both().await;
        let tree = plain.call_with(&["mktree"], "").await.expect("a tree").text();
        let names =
            ["Ada", "Ada L.", "\"Ada\"", "Åsa Ü", "a<b", "  Ada  ", "x'", "Ada, Countess", "名"];
        let emails = ["ada@example.org", "", "<ada>", "a b", ".ada", "ada@example.org\n"];
        let dates = [
            None,
            Some("@1234567890 +0130"),
            Some("@1234567890 -0000"),
            Some("@12 +0000"),
            Some("@4294967297 +0000"),
            Some("@1234567890 +9999"),
            Some("@0123456789 +0000"),
        ];
        let messages = ["", "one\n", "one", "\n\n one \n\n", "# one\n\ntwo\n", "ü\r\n", "a\0b"];
        let mut parents: Vec<String> = Vec::new();
        for name in names {
            for (email, date) in emails.into_iter().flat_map(|it| dates.map(|date| (it, date))) {
                let (name, email) = (name.to_owned(), email.to_owned());
                let author = Author { name, email, date: date.map(ToOwned::to_owned) };
                let message = messages[parents.len() % messages.len()];
                let own: Vec<&str> = parents.iter().rev().take(3).map(String::as_str).collect();
                let made = lasting.commit_tree(&tree, &own, message, &author, AT).await;
                let expected = plain.commit_tree(&tree, &own, message, &author, AT).await;
                match (made, expected) {
                    (Ok(made), Ok(expected)) => {
                        assert_eq!(made, expected, "{author:?} {message:?}");
                        parents.push(made);
                    }
                    (Err(made), Err(expected)) => assert_eq!(words(&made), words(&expected)),
                    (made, expected) => panic!("{author:?}: {made:?} {expected:?}"),
                }
            }
        }
        assert!(parents.len() > 100, "most of them are commits");
        for commit in &parents {
            same(&plain, &lasting, commit).await;
        }
    }

    /// What is read of a commit must be the same.
    async fn same(plain: &Git, lasting: &Git, commit: &str) {
        let read = async |git: &Git| {
            let author = git.author(commit).await;
            let author = author.map(|it| (it.name, it.email, it.date)).map_err(|it| words(&it));
            let tree = git.tree(commit).await.map_err(|it| words(&it));
            (author, tree, git.parents(commit).await.map_err(|it| words(&it)))
        };
        assert_eq!(read(lasting).await, read(plain).await, "{commit}");
    }

    #[tokio::test]
    async fn odd_commits_and_other_objects_are_read_the_same() {
        let (_folder, plain, lasting) = both().await;
        let tree = plain.call_with(&["mktree"], "").await.expect("a tree").text();
        let committer = "committer C <c@example.org> 1 +0000";
        let mut commits = vec!["1".repeat(40), tree.clone(), "main".to_owned()];
        for header in [
            format!("author A <a@example.org> 1 +0000\n{committer}"),
            format!("author A <a> <a@example.org> 1 +0000\n{committer}"),
            format!("author  <a@example.org> 1 +0000\n{committer}"),
            format!("author A <a@example.org> 99999999999999 +0000\n{committer}"),
            format!("author A. <a@example.org> 1 +0000\n{committer}"),
            format!("author A <a@example.org> 1 +0000\n{committer}\nencoding ISO-8859-1"),
            format!("author A <a@example.org> 1 +0000\n{committer}\ngpgsig -----BEGIN\n  author X"),
            committer.to_owned(),
        ] {
            for text in
                [format!("tree {tree}\n{header}\n\nmessage\n"), format!("tree {tree}\n{header}\n")]
            {
                let args = ["hash-object", "-t", "commit", "-w", "--literally", "--stdin"];
                commits.push(plain.call_with(&args, &text).await.expect("a commit").text());
            }
        }
        for commit in &commits {
            same(&plain, &lasting, commit).await;
        }
    }

    /// What was written after a process had started is found, also in packs; a process that was
    /// killed is replaced.
    #[tokio::test]
    async fn processes_see_what_is_new() {
        let (folder, plain, lasting) = both().await;
        let tree = plain.call_with(&["mktree"], "").await.expect("a tree").text();
        let author = Author { name: "Ada".into(), email: "ada@example.org".into(), date: None };
        let mut tip = plain.commit_tree(&tree, &[], "0\n", &author, AT).await.expect("made");
        for number in 1..6 {
            assert_eq!(lasting.tree(&tip).await.expect("read").as_str(), tree);
            let text = format!("{number}\n");
            tip = plain.commit_tree(&tree, &[&tip], &text, &author, AT).await.expect("made");
            plain.ok(&["update-ref", "refs/heads/main", &tip]).await.expect("moved");
            plain.ok(&["repack", "-q", "-a", "-d"]).await.expect("packed");
        }
        let listed = std::fs::read_dir("/proc").expect("processes").flatten();
        let path = folder.path().display().to_string();
        let mut killed = 0;
        for process in listed {
            let arguments = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let arguments = String::from_utf8_lossy(&arguments);
            if arguments.contains(&path) && arguments.contains("cat-file") {
                let id = process.file_name().to_str().and_then(|it| it.parse().ok());
                let id = id.and_then(rustix::process::Pid::from_raw).expect("an id");
                rustix::process::kill_process(id, rustix::process::Signal::KILL).expect("killed");
                killed += 1;
            }
        }
        assert_eq!(killed, 1, "one process has answered all requests");
        assert_eq!(lasting.tree(&tip).await.expect("read").as_str(), tree);
    }
}
