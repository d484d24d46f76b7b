//! Commands that pages show: `signalbox …` parses with the real command line, `just …` names a recipe.

use signalbox_domain::queue::setting;

use crate::page::{Page, none, pages, root};

/// Splits a line of shell into commands, and each command into words. Substitutions stay as they are.
fn shell(line: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words) = (Vec::new(), Vec::new());
    let (mut word, mut quote, mut depth): (Option<String>, Option<char>, usize) = (None, None, 0);
    let mut chars = line.chars().peekable();
    let end = |words: &mut Vec<String>, word: &mut Option<String>| {
        words.extend(word.take());
    };
    while let Some(char) = chars.next() {
        match (quote, char) {
            (Some(open), _) if open == char && depth == 0 => quote = None,
            (None, '\'' | '"') if depth == 0 => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (_, '$') if chars.peek() == Some(&'(') => {
                chars.next();
                depth += 1;
                word.get_or_insert_default().push_str("$(");
            }
            (_, ')') if depth > 0 => {
                depth -= 1;
                word.get_or_insert_default().push(')');
            }
            (None, ' ') if depth == 0 => end(&mut words, &mut word),
            (None, '#') if depth == 0 && word.is_none() => break,
            (None, '|' | ';' | '&' | '>' | '<') if depth == 0 => {
                end(&mut words, &mut word);
                commands.push(std::mem::take(&mut words));
            }
            _ => word.get_or_insert_default().push(char),
        }
    }
    end(&mut words, &mut word);
    commands.push(words);
    // A substitution has commands of its own.
    let inner: Vec<String> = commands
        .iter()
        .flatten()
        .filter_map(|word| word.split_once("$(").and_then(|(_, rest)| rest.rsplit_once(')')))
        .map(|(inner, _)| inner.to_owned())
        .collect();
    for inner in inner {
        commands.extend(shell(&inner));
    }
    commands
}

/// The words after the program's name, if the command runs it.
fn arguments<'a>(words: &'a [String], program: &str) -> Option<&'a [String]> {
    let at = words.iter().rposition(|word| word == program)?;
    let before = &words[..at];
    let prefix = |word: &String| {
        word.contains('=')
            || ["sudo", "-u", "nice", "*", "exec"].contains(&word.as_str())
            || word.chars().all(|char| char.is_ascii_digit())
            || before.first().is_some_and(|first| first == "sudo")
    };
    before.iter().all(prefix).then(|| &words[at + 1..])
}

/// Commands in shell blocks, with their lines. A backslash continues a line.
fn commands(page: &Page) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let shells = ["sh", "bash", "yaml", "groovy"];
    for block in page.blocks.iter().filter(|block| shells.contains(&block.language.as_str())) {
        let mut whole = String::new();
        for (at, line) in block.text.lines().enumerate() {
            whole.push_str(line.trim().trim_end_matches('\\'));
            if line.ends_with('\\') {
                whole.push(' ');
                continue;
            }
            let words = shell(whole.trim_start_matches("run: ").trim_start_matches("- "));
            found.extend(words.into_iter().map(|words| (block.line + 1 + at, words)));
            whole.clear();
        }
    }
    found
}

/// The error in the arguments of a command in a block, which must be complete.
fn wrong(arguments: &[String]) -> Option<String> {
    let program = signalbox::command();
    let mut leaf = &program;
    for word in arguments {
        match leaf.find_subcommand(word) {
            Some(command) => leaf = command,
            None => break,
        }
    }
    let mut full = vec!["signalbox".to_owned()];
    // A variable with a default has that value.
    let value = |word: &String| {
        let inner = word.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
        let default = inner.and_then(|it| it.split_once(":-")).map(|(_, value)| value.to_owned());
        default.unwrap_or_else(|| word.clone())
    };
    full.extend(arguments.iter().map(value));
    // Set in the environment of a user.
    for argument in leaf.get_arguments().filter(|argument| argument.get_env().is_some()) {
        let flag = format!("--{}", argument.get_long().unwrap_or_default());
        let is_needed = argument.is_required_set() || argument.get_long() == Some("token");
        if is_needed && !full.contains(&flag) {
            // Before the command that a command runs.
            let end = full.iter().position(|word| word == "--").unwrap_or(full.len());
            full.splice(end..end, [flag, "x".to_owned()]);
        }
    }
    if arguments.first().is_some_and(|word| word == "queue")
        && arguments.get(1).is_some_and(|word| word == "set")
    {
        for (name, value) in arguments.iter().filter_map(|word| word.split_once('=')) {
            let Some(spec) = setting(name) else {
                return Some(format!("{name} is not a setting of a queue"));
            };
            let value = match value {
                "yes" => "true",
                "no" => "false",
                value => value,
            };
            let is_list = spec.kind.is_list();
            let lines = if is_list { value.replace(',', "\n") } else { value.to_owned() };
            if spec.parse(&lines).is_none_or(|value| spec.check(&value).is_err()) {
                return Some(format!("{value:?} is not a value of {name}"));
            }
        }
    }
    let parsed = program.try_get_matches_from(full).err()?;
    let first = parsed.to_string().lines().next().unwrap_or_default().to_owned();
    (parsed.use_stderr()).then_some(first)
}

/// The error in a command in text, which may omit arguments.
fn unknown(words: &[String]) -> Option<String> {
    let program = signalbox::command();
    let mut leaf = &program;
    for word in words {
        if let Some(flag) = word.strip_prefix("--") {
            let known = |command: &&str| *command == flag;
            let longs = leaf.get_arguments().filter_map(|argument| argument.get_long());
            let global = program.get_arguments().filter_map(|argument| argument.get_long());
            if !longs.chain(global).any(|long| known(&long)) {
                return Some(format!("there is no --{flag}"));
            }
        } else if leaf.has_subcommands() {
            match leaf.find_subcommand(word) {
                Some(command) => leaf = command,
                None => return Some(format!("there is no command {word}")),
            }
        }
    }
    None
}

#[test]
fn every_signalbox_command_parses() {
    let mut found = Vec::new();
    for page in pages() {
        for (line, words) in commands(&page) {
            let Some(arguments) = arguments(&words, "signalbox") else { continue };
            if arguments.first().is_some_and(|word| word == "hook") {
                continue;
            }
            found.extend(wrong(arguments).map(|why| format!("{}: {why}", page.at(line))));
        }
        for (line, span) in page.spans.iter().filter(|(_, span)| span.starts_with("signalbox ")) {
            let words = shell(span).swap_remove(0);
            let skip = words.iter().any(|word| word == "hook" || word == "…");
            let why = (!skip).then(|| unknown(&words[1..])).flatten();
            found.extend(why.map(|why| format!("{}: {span}: {why}", page.at(*line))));
        }
    }
    none(&found);
}

#[test]
fn a_wrong_command_is_found() {
    let words = |line: &str| shell(line).swap_remove(0).split_off(1);
    assert!(wrong(&words("signalbox queue create --repo git.local/a/b --slots 3")).is_some());
    assert!(wrong(&words("signalbox queue create")).is_some());
    assert!(wrong(&words("signalbox queue set slots=3 --repo git.local/a/b")).is_some());
    assert!(wrong(&words("signalbox queue set concurrency=0 --repo git.local/a/b")).is_some());
    assert!(wrong(&words("signalbox queue set concurrency=3 --repo git.local/a/b")).is_none());
    assert!(unknown(&words("signalbox queue stop")).is_some());
    assert!(unknown(&words("signalbox queue submit --fast")).is_some());
    assert!(unknown(&words("signalbox queue submit --priority")).is_none());
}

#[test]
fn commands_are_split_as_a_shell_does() {
    let line = "export T=$(signalbox token create --org a | sed 's/x/y/') && a \"b c\" # d";
    let commands = shell(line);
    assert!(commands.contains(&vec!["a".to_owned(), "b c".to_owned()]));
    let token = ["signalbox", "token", "create", "--org", "a"].map(str::to_owned).to_vec();
    assert!(commands.contains(&token), "{commands:?}");
}

/// The names of the recipes in the justfile.
fn recipes() -> Vec<String> {
    let justfile = std::fs::read_to_string(root().join("justfile")).expect("a justfile");
    let heads = justfile.lines().filter(|line| !line.starts_with([' ', '#', '[']));
    heads
        .filter_map(|line| line.split_once(':'))
        .filter_map(|(head, _)| head.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_just_recipe_exists() {
    let recipes = recipes();
    let mut found = Vec::new();
    for page in pages() {
        let spans = page.spans.iter().map(|(line, span)| (*line, shell(span).swap_remove(0)));
        for (line, words) in commands(&page).into_iter().chain(spans) {
            let Some(recipe) = arguments(&words, "just").and_then(|words| words.first()) else {
                continue;
            };
            if !recipe.starts_with('-') && !recipe.starts_with('…') && !recipes.contains(recipe) {
                found.push(format!("{}: there is no recipe {recipe}", page.at(line)));
            }
        }
    }
    none(&found);
}
