//! `palisade login` and `palisade logout`: sessions at daemons over the network.
//!
//! States of a URL: unknown → known by its key, and logged in → known, once the session
//! has ended. What a person says counts for the first certificate and for each one after it.
//!
//! Invariant: no password and no token is sent before the certificate is agreed to.

use crate::client::{Asked, Client, TOKEN, broken, understood};
use crate::confirm::is_terminal;
use crate::logins::{Login, Logins, Session};
use crate::output::{Output, Problem, printable};
use crate::remote::{self, Url};
use crate::secret;
use core::fmt::Write as _;
use hyper::Method;
use hyper::header::LOCATION;
use redfish::dates;
use redfish::messages as say;
use redfish::service::uri;
use redfish::view::{Answer, Certificate};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{BufRead, IsTerminal, Write};

/// What `login` takes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Where the daemon serves HTTPS: https://HOST:PORT
    #[arg(value_name = "URL")]
    at: String,
    /// Account [default: asked for at the terminal]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Trust the certificate with this SHA-256 fingerprint, without a question
    #[arg(long, value_name = "HEX", value_parser = fingerprint)]
    fingerprint: Option<String>,
    /// Read the password from the standard input instead of asking for it at the terminal
    #[arg(long)]
    password_stdin: bool,
    #[command(flatten)]
    output: Output,
}

/// What `logout` takes.
#[derive(Debug, clap::Args)]
pub struct Out {
    /// Which daemon's [default: that of --url or PALISADE_URL, else all]
    #[arg(value_name = "URL")]
    at: Option<String>,
    /// Forget the login even if its daemon does not answer: the session lives on there until its
    /// time is over
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    output: Output,
}

/// What is to be done about a session that was not ended.
const LIVES_ON: &str = "the login is kept: try again when the daemon answers, or forget it here \
                        with: palisade logout --force";

fn fingerprint(text: &str) -> Result<String, String> {
    remote::fingerprint(text).ok_or_else(|| "use 64 hexadecimal digits".to_owned())
}

/// Somebody is logged in.
#[derive(Debug, Serialize)]
struct Begun {
    url: String,
    fingerprint: String,
    user: String,
    password_change_required: bool,
}

/// Sessions are ended.
#[derive(Debug, Serialize)]
struct Ended {
    done: bool,
    urls: Vec<String>,
}

/// Begins a session, and keeps it.
pub async fn run(arguments: &Arguments) -> Result<(), Problem> {
    let url = Url::parse(&arguments.at)?;
    let logins = Logins::own()?;
    let known = logins.at(&url).or_else(|problem| logins.set_aside(&problem))?;
    let shown = remote::look(&url).await?;
    agree(&url, &shown, known.as_ref(), arguments.fingerprint.as_deref())?;
    let user = match &arguments.user {
        Some(user) => user.clone(),
        None => ask_user()?,
    };
    let is_piped = arguments.password_stdin || !std::io::stdin().is_terminal();
    let password = match is_piped {
        true => secret::from_stdin()?,
        false => secret::ask(&format!("password of {}: ", printable(&user)))?,
    };
    let login = Login {
        url: url.to_string(),
        fingerprint: shown.fingerprint,
        key: shown.key,
        user: user.clone(),
        session: None,
    };
    let body = json!({ "UserName": user, "Password": password }).to_string();
    let asked = Asked { body: Some(body), ..Asked::new(Method::POST, uri::SESSIONS) };
    let answer = Client::logged_in(url, login.clone()).send(&asked).await?;
    let header = |name: &str| {
        let value = answer.headers().get(name).and_then(|value| value.to_str().ok());
        value.map(str::to_owned)
    };
    let (token, place) = (header(TOKEN), header(LOCATION.as_str()));
    let told = understood(answer)?;
    let (Some(token), Some(uri)) = (token, place) else {
        return Err(broken("it does not say what opens the session"));
    };
    let session = Some(Session { uri, token });
    logins.keep(Login { session, ..login.clone() })?;
    let Login { url, fingerprint, user, .. } = login;
    let password_change_required = told.to_string().contains("PasswordChangeRequired");
    let begun = Begun { url, fingerprint, user, password_change_required };
    arguments.output.print(&Answer::new(begun), text);
    Ok(())
}

fn text(begun: &Begun) -> String {
    let Begun { url, user, .. } = begun;
    let user = printable(user);
    let mut text = format!("logged in at {url} as {user}");
    if begun.password_change_required {
        let _ = write!(
            text,
            "\n{user} has to change its password before anything else: palisade account passwd \
             {user} --url {url}"
        );
    }
    text
}

/// Makes sure that a certificate is the right one: its key is known, it is named by its
/// fingerprint, or agreed to by a person.
fn agree(
    url: &Url,
    shown: &Certificate,
    known: Option<&Login>,
    named: Option<&str>,
) -> Result<(), Problem> {
    let print = &shown.fingerprint;
    match (named, known) {
        (Some(named), _) if named == print => return Ok(()),
        (Some(named), _) => {
            let args: [&dyn core::fmt::Display; 3] = [url, print, &named];
            return Err(Problem::new(&say::CERTIFICATE_CHANGED, &args));
        }
        (None, Some(known)) if known.key == shown.key => return Ok(()),
        (None, Some(known)) if !is_terminal() => {
            let args: [&dyn core::fmt::Display; 3] = [url, print, &known.fingerprint];
            return Err(Problem::new(&say::CERTIFICATE_CHANGED, &args));
        }
        (None, None) if !is_terminal() => {
            return Err(Problem::new(&say::CERTIFICATE_NOT_TRUSTED, &[url, print]));
        }
        (None, _) => {}
    }
    let question = "compare the fingerprint with the daemon's log; type yes to trust it: ";
    let known = known.map(|known| known.fingerprint.as_str());
    match ask(&format!("{}{question}", certificate(url, shown, known)))?.trim() {
        "yes" => Ok(()),
        _ => Err(Problem::new(&say::CERTIFICATE_NOT_TRUSTED, &[url, print])),
    }
}

/// A certificate, as a person compares it.
fn certificate(url: &Url, shown: &Certificate, known: Option<&str>) -> String {
    let subject = &shown.subject;
    let parts = [&subject.common_name, &subject.organization, &subject.unit];
    let parts: Vec<&str> = parts.iter().map(|s| s.as_str()).filter(|s| !s.is_empty()).collect();
    let mut lines = vec![
        ("subject", parts.join(", ")),
        ("names", shown.names.join(", ")),
        ("ends", dates::text(shown.not_after)),
        ("SHA-256", shown.fingerprint.clone()),
    ];
    lines.extend(known.map(|known| ("until now", known.to_owned())));
    let mut text = match known {
        None => format!("{url} shows this certificate:\n"),
        Some(_) => format!("{url} shows ANOTHER certificate than until now:\n"),
    };
    for (what, value) in lines {
        let _ = writeln!(text, "  {what:<10}{}", printable(&value));
    }
    text
}

/// Asks a person.
fn ask(prompt: &str) -> Result<String, Problem> {
    // Without a standard error there is nobody to ask, and nothing is typed.
    let _ = write!(std::io::stderr(), "{prompt}");
    let mut typed = String::new();
    let _ = std::io::stdin().lock().read_line(&mut typed);
    Ok(typed)
}

fn ask_user() -> Result<String, Problem> {
    let none = || Problem::new(&say::USER_NOT_GIVEN, &[]);
    if !is_terminal() {
        return Err(none());
    }
    let user = ask("account: ")?.trim().to_owned();
    if user.is_empty() { Err(none()) } else { Ok(user) }
}

/// Ends sessions. What is kept of one is forgotten once its daemon has ended it, or at once if that
/// is to be forced.
pub async fn end(out: &Out, url: Option<&str>) -> Result<(), Problem> {
    let logins = Logins::own()?;
    let variable = std::env::var("PALISADE_URL").ok().filter(|url| !url.is_empty());
    let which = match out.at.as_deref().or(url).or(variable.as_deref()) {
        Some(text) => Some(Url::parse(text)?),
        None => None,
    };
    let is_meant = |login: &Login| which.as_ref().is_none_or(|url| url.to_string() == login.url);
    let mut meant = logins.all()?;
    meant.retain(|login| login.session.is_some() && is_meant(login));
    if let (true, Some(url)) = (meant.is_empty(), &which) {
        return Err(Problem::new(&say::NOT_LOGGED_IN, &[url]));
    }
    let (mut urls, mut outcome) = (Vec::new(), Ok(()));
    for login in meant {
        let ended = end_session(&login).await;
        if ended.is_ok() || out.force {
            urls.push(login.url.clone());
            logins.keep(Login { session: None, ..login })?;
        } else {
            outcome = ended.map_err(|problem| problem.advise(LIVES_ON));
        }
    }
    outcome?;
    let text = |ended: &Ended| match ended.urls.as_slice() {
        [] => "nobody was logged in".to_owned(),
        urls => format!("logged out at {}", urls.join(", ")),
    };
    out.output.print(&Answer::new(Ended { done: true, urls }), text);
    Ok(())
}

async fn end_session(login: &Login) -> Result<(), Problem> {
    let url = Url::parse(&login.url)?;
    let Some(session) = &login.session else { return Ok(()) };
    let asked = Asked::new(Method::DELETE, &*session.uri);
    let answer = Client::logged_in(url, login.clone()).send(&asked).await?;
    match answer.status().as_u16() {
        // It has ended by itself.
        401 | 404 => Ok(()),
        _ => understood(answer).map(|_: Value| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redfish::view::Named;

    #[test]
    fn a_certificate_is_shown_before_it_is_trusted() {
        let url = Url::parse("https://h:8443").expect("a URL");
        let shown = Certificate {
            fingerprint: "AB:CD".to_owned(),
            subject: Named { common_name: "h\u{1b}[2J".to_owned(), ..Named::default() },
            names: vec!["h".to_owned(), "192.0.2.1".to_owned()],
            ..Certificate::default()
        };
        let text = certificate(&url, &shown, None);
        let whole = "https://h:8443 shows this certificate:\n  subject   h\\u{1b}[2J\n  \
                     names     h, 192.0.2.1\n  ends      1970-01-01T00:00:00Z\n  \
                     SHA-256   AB:CD\n";
        assert_eq!(text, whole);
        let text = certificate(&url, &shown, Some("12:34"));
        assert!(text.contains("ANOTHER") && text.ends_with("  until now 12:34\n"), "{text}");
    }

    #[test]
    fn only_the_right_certificate_is_agreed_to_without_a_question() {
        let url = Url::parse("https://h:8443").expect("a URL");
        let shown = Certificate {
            fingerprint: "AB".to_owned(),
            key: "K".to_owned(),
            ..Certificate::default()
        };
        let login = |key: &str| Login {
            url: url.to_string(),
            fingerprint: "12".to_owned(),
            key: key.to_owned(),
            user: "ana".to_owned(),
            session: None,
        };
        let (same, other) = (login("K"), login("L"));
        for (known, named) in [(None, Some("AB")), (Some(&same), None), (Some(&other), Some("AB"))]
        {
            assert_eq!(agree(&url, &shown, known, named), Ok(()), "{known:?} {named:?}");
        }
        for (known, named) in [(None, Some("CD")), (Some(&same), Some("CD"))] {
            let told = agree(&url, &shown, known, named).expect_err("it is another");
            assert!(told.is(&say::CERTIFICATE_CHANGED), "{told:?}");
        }
    }
}
