//! Completion: `palisade completion SHELL` prints a script, and that script asks `palisade` for
//! what may stand at the cursor; names come from the daemon.
//!
//! Invariant: who completes a word is neither kept waiting nor told of problems: where no daemon
//! answers within [`PATIENCE`], there are no names.

use crate::client::Client;
use crate::fetch::{self, Part};
use crate::output::Problem;
use clap::ValueEnum;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::Shells;
use redfish::service::uri;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// How long a daemon may take to tell names.
const PATIENCE: Duration = Duration::from_millis(500);

/// The variable by which a script asks.
pub const VARIABLE: &str = "PALISADE_COMPLETE";

/// What it is called.
const NAME: &str = "palisade";

/// Bash takes a word apart at colons, which are part of names here: it is put together again, and
/// of what is offered only what bash would replace is left.
const BASH: &str = r#"
_palisade_words() {
    local line="${COMP_LINE:0:COMP_POINT}" words
    read -ra words <<< "$line"
    if [[ "$line" == *[[:space:]] ]]; then words+=(""); fi
    local COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
    local current="${COMP_WORDS[COMP_CWORD]}"
    _clap_complete_palisade palisade "$current"
    if [[ "$current" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then
        local begin="${current%"${current##*:}"}" at
        for at in "${!COMPREPLY[@]}"; do COMPREPLY[at]="${COMPREPLY[at]#"$begin"}"; done
    fi
}
complete -o nospace -o bashdefault -F _palisade_words palisade
"#;

/// A shell that can complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Shell {
    /// GNU Bash: source <(palisade completion bash)
    Bash,
    /// Elvish: eval (palisade completion elvish | slurp)
    Elvish,
    /// fish: palisade completion fish | source
    Fish,
    /// Z shell: source <(palisade completion zsh)
    Zsh,
}

/// What `completion` takes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub fn run(arguments: &Arguments) -> Result<(), Problem> {
    let name = match arguments.shell {
        Shell::Bash => "bash",
        Shell::Elvish => "elvish",
        Shell::Fish => "fish",
        Shell::Zsh => "zsh",
    };
    let mut script = Vec::new();
    let written = Shells::builtins()
        .completer(name)
        .map(|shell| shell.write_registration(VARIABLE, NAME, NAME, NAME, &mut script));
    debug_assert!(matches!(written, Some(Ok(()))), "{name}: {written:?}");
    if arguments.shell == Shell::Bash {
        script.extend_from_slice(BASH.as_bytes());
    }
    // A reader that went away has seen enough.
    let _ = std::io::stdout().write_all(&script);
    Ok(())
}

/// What the words before the cursor say of the daemon.
fn client(words: impl Iterator<Item = String>) -> Option<Client> {
    let (mut socket, mut url) = (None, None);
    let mut words = words.skip_while(|word| word != "--").skip(1);
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        match name.as_str() {
            "--socket" => socket = value.or_else(|| words.next()).map(PathBuf::from),
            "--url" => url = value.or_else(|| words.next()),
            _ => {}
        }
    }
    Client::meant(socket, url.as_deref()).ok()
}

/// What a daemon tells in time.
fn ask<T: Default>(asked: impl AsyncFnOnce(&Client) -> Result<T, Problem>) -> T {
    let told = || {
        let client = client(std::env::args())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let told = runtime
            .block_on(async { tokio::time::timeout(PATIENCE, asked(&client)).await.ok()?.ok() });
        // A name that is looked up may take longer than that.
        runtime.shutdown_background();
        told
    };
    told().unwrap_or_default()
}

fn candidates(names: Vec<String>, current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let fit = names.into_iter().filter(|name| name.starts_with(&*current) && is_plain(name));
    fit.map(CompletionCandidate::new).collect()
}

/// Whether a shell takes a name as it is. What is offered stands on the command line unquoted, and
/// serial numbers are what a drive says.
fn is_plain(name: &str) -> bool {
    name.chars().all(|one| one.is_alphanumeric() || "._-+:/@,=%".contains(one))
}

/// Names of arrays.
pub fn arrays(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(ask(async |client| array_names(client).await), current)
}

async fn array_names(client: &Client) -> Result<Vec<String>, Problem> {
    Ok(fetch::arrays(client, &[]).await?.into_iter().map(|array| array.name).collect())
}

/// Names of arrays, as a volume begins with one.
pub fn of_arrays(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = ask(async |client| array_names(client).await);
    candidates(names.into_iter().map(|name| format!("{name}/")).collect(), current)
}

/// Names of volumes.
pub fn volumes(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = ask(async |client| {
        let arrays = fetch::arrays(client, &[Part::Volumes]).await?;
        let volumes = arrays.into_iter().flat_map(|array| array.volumes);
        Ok(volumes.map(|volume| format!("{}/{}", volume.array, volume.name)).collect())
    });
    candidates(names, current)
}

/// IDs of exports.
pub fn exports(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = ask(async |client| {
        let arrays = fetch::arrays(client, &[Part::Exports]).await?;
        Ok(arrays.into_iter().flat_map(|array| array.exports).map(|export| export.id).collect())
    });
    candidates(names, current)
}

/// Names of shares.
pub fn shares(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = ask(async |client| {
        let all = fetch::filesystems(client).await?;
        Ok(all.into_iter().flat_map(|own| own.shares).map(|share| share.name).collect())
    });
    candidates(names, current)
}

/// Names of users of shares, each once.
pub fn share_users(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut names: Vec<String> = ask(async |client| {
        let all = fetch::filesystems(client).await?;
        Ok(all.into_iter().flat_map(|own| own.users).map(|user| user.name).collect())
    });
    names.sort_unstable();
    names.dedup();
    candidates(names, current)
}

/// IDs of tasks.
pub fn tasks(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = ask(async |client| {
        let arrays = fetch::arrays(client, &[Part::Tasks]).await?;
        Ok(arrays.into_iter().flat_map(|array| array.tasks).map(|task| task.id).collect())
    });
    candidates(names, current)
}

/// Drives that the daemon knows, by path and by what else they are called, and files.
pub fn drives(current: &OsStr) -> Vec<CompletionCandidate> {
    let known = ask(async |client| fetch::drives(client).await);
    let mut names: Vec<String> = known.iter().map(|known| known.drive.path.clone()).collect();
    // Where nothing is typed yet, a path says most.
    if !current.is_empty() {
        names.extend(known.iter().map(|known| known.drive.serial.clone()));
        names.extend(known.into_iter().map(|known| known.id));
        names.retain(|name| !name.is_empty());
    }
    let mut all = candidates(names, current);
    // A name that a shell would not take as it is, the shell itself completes and quotes.
    let files = PathCompleter::any().complete(current).into_iter();
    let new: Vec<_> = files
        .filter(|file| is_plain(&file.get_value().to_string_lossy()))
        .filter(|file| all.iter().all(|own| own.get_value() != file.get_value()))
        .collect();
    all.extend(new);
    all
}

/// Names of accounts.
pub fn accounts(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = ask(async |client| {
        let all = fetch::expanded(client, uri::ACCOUNTS).await?;
        let names = redfish::read::all(&all, redfish::read::account)?;
        Ok(names.into_iter().map(|account| account.name).collect())
    });
    candidates(names, current)
}

/// Names of messages.
pub fn messages(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(redfish::messages::all().map(|entry| entry.name.to_owned()).collect(), current)
}

/// Paths of resources: what the resource before the last slash links to.
pub fn paths(current: &OsStr) -> Vec<CompletionCandidate> {
    const ROOT: &str = "/redfish/v1/";
    let typed = current.to_string_lossy();
    let (prefix, rest) = match typed.strip_prefix(ROOT) {
        Some(rest) => (ROOT, rest),
        None => (if typed.starts_with('/') { "/" } else { "" }, typed.trim_start_matches('/')),
    };
    let parent = rest.rsplit_once('/').map_or("", |(parent, _)| parent);
    let resource = format!("{ROOT}{parent}");
    let told = ask(async |client| client.get(resource.trim_end_matches('/')).await);
    let mut found = Vec::new();
    links(&told, &mut found);
    let names = found.iter().filter_map(|link| link.strip_prefix(ROOT));
    let mut names: Vec<String> = names.map(|name| format!("{prefix}{name}")).collect();
    names.sort();
    names.dedup();
    candidates(names, current)
}

fn links(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            found.extend(object.get("@odata.id").and_then(Value::as_str).map(str::to_owned));
            object.values().for_each(|value| links(value, found));
        }
        Value::Array(array) => array.iter().for_each(|value| links(value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemon_that_is_named_before_the_cursor_is_asked() {
        let words = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            client(words.into_iter()).map(|client| format!("{client:?}"))
        };
        let asks = |text: &str, what: &str| words(text).is_some_and(|asked| asked.contains(what));
        assert!(asks("palisade -- palisade --socket /a array show", "\"/a\""));
        assert!(asks("palisade -- palisade array show --socket=/b", "\"/b\""));
        assert!(asks("palisade -- palisade --url https://h:1 status", "host: \"h\""));
        assert!(words("palisade -- palisade --url http://h status").is_none());
    }

    #[test]
    fn only_what_begins_as_the_word_does_is_offered() {
        let names = || vec!["tank".to_owned(), "tape".to_owned(), "other".to_owned()];
        let offered = |current: &str| {
            let all = candidates(names(), OsStr::new(current));
            all.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(offered("ta"), ["tank", "tape"]);
        assert_eq!(offered("x"), Vec::<String>::new());
        let names = ["A$(reboot)", "A`x`", "A b", "A;b", "A\u{1b}[2J", "A-1"].map(str::to_owned);
        let safe = candidates(names.to_vec(), OsStr::new("A"));
        assert_eq!(safe.len(), 1, "a shell would carry the others out: {safe:?}");
    }
}
