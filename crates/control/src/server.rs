//! The daemon: the management interface on a Unix socket, from start-up to a clean stop.
//!
//! States: starting (socket taken, so that a second daemon is refused; drives opened, arrays
//! started, requests answered already) → ready (said on standard output) → stopping (SIGTERM or
//! SIGINT: arrays stopped cleanly) → gone (everything closed, then the socket removed: another
//! daemon can take its place).
//!
//! A drive that hangs keeps the daemon from none of it. What was asked of the drive keeps it open,
//! and with it its claim, so that nobody has it before all of that has ended; and it keeps a thread
//! in the kernel, and so the process, without anything else being open in it. That ends by itself
//! when the drive answers.
//!
//! Invariant: a change that was begun is carried to its end, whether or not the client stays.

use crate::address;
use crate::answer;
use crate::api::{self, Answer, Done, Error, ErrorCode};
use crate::config::Config;
use crate::data::{self, Data};
use crate::gpu::Parity;
use crate::http::{self, Asked};
use crate::manager::Manager;
use crate::memory;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use core::future::Future;
use engine::Settings;
use engine::manage::command::TaskAction;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use units::Nanos;

/// How often exports that can't be served are tried again.
const RETRY: Duration = Duration::from_secs(3);

/// How often it is said again that clients are turned away.
const QUIET: Duration = Duration::from_secs(60);

type Shared = State<Arc<Manager>>;

pub use parity_gpu::leave_if_stuck;

/// Runs the daemon until it is told to stop.
///
/// # Errors
/// What kept it from starting. Arrays that can't be started do not; they are reported.
pub fn serve(config: Config) -> Result<(), Error> {
    // Before there are threads.
    let memory = memory::keep(config.parity);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| cannot_start(&error))?;
    let socket = config.socket.clone().unwrap_or_else(|| api::DEFAULT_SOCKET.into());
    let outcome = runtime.block_on(run(config, &socket, memory));
    // A look at a drive that does not answer may never end. All else is dropped, and closed.
    runtime.shutdown_background();
    let problems = outcome?;
    // Someone may have removed it before.
    let _ = std::fs::remove_file(&socket);
    match problems.into_iter().next() {
        None => Ok(()),
        Some(problem) => Err(problem),
    }
}

/// Clients are open files: raises the limit of them as far as it goes.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // What can't be raised stays as it is; clients beyond it are reported when they come.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn cannot_start(error: &std::io::Error) -> Error {
    let hint = "raise the limits of the daemon's account (ulimit -a)";
    Error::failed(format!("the daemon can't start: {error}"), hint)
}

/// Serves until it is told to stop. Answers with what went wrong then.
async fn run(config: Config, socket: &FilePath, memory: api::Memory) -> Result<Vec<Error>, Error> {
    let mut terminate = signal(SignalKind::terminate()).map_err(|e| cannot_start(&e))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|e| cannot_start(&e))?;
    let kernel = parity_kernel()?;
    raise_file_limit();
    let listener = listen(socket).await?;
    let parity = Arc::new(Parity::open(kernel, config.parity, config.parity_check));
    say_parity(kernel);
    memory::say(&memory);
    let deadline = Nanos::from_millis(config.drive_deadline_ms);
    let settings = Settings { deadline, ..Settings::default() };
    let started = data::start(config.cores, settings, parity.clone());
    let (cores, data) = started.map_err(|e| cannot_start(&e))?;
    let turned_away = tokio::spawn(say_turned_away(data.clone()));
    let manager = Arc::new(Manager::new(data, parity, memory, config.drives));
    let server = tokio::spawn(http::serve(listener, {
        let (manager, router) = (manager.clone(), router(manager.clone()));
        move |asked| dispatch(manager.clone(), router.clone(), asked)
    }));
    let wait = Duration::from_millis(config.drive_wait_ms);
    let starting = tokio::spawn({
        let manager = manager.clone();
        async move {
            report(&manager.start(wait).await);
            say_ready();
        }
    });
    let keeping = tokio::spawn({
        let manager = manager.clone();
        async move { manager.keep_view().await }
    });
    let retrying = tokio::spawn({
        let manager = manager.clone();
        async move {
            loop {
                tokio::time::sleep(RETRY).await;
                manager.retry_exports().await;
            }
        }
    });
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    // What was being started is started first, so that it can be stopped.
    manager.begin_end();
    let _ = starting.await;
    retrying.abort();
    keeping.abort();
    turned_away.abort();
    let problems = manager.shut_down().await;
    report(&problems);
    server.abort();
    if !cores.stop() {
        runtime::say(format_args!(
            "palisade: a drive does not answer: this process stays until it does, and keeps only \
             that drive open\n  start the daemon again; it can use the drive once this process has \
             ended"
        ));
    }
    Ok(problems)
}

/// Tests the parity kernels and picks one, before anything depends on it.
fn parity_kernel() -> Result<&'static str, Error> {
    parity::select_kernel().map_err(|error| {
        let hint = format!("unset {} to use the best kernel that works", parity::VARIABLE);
        Error::failed(error.to_string(), hint)
    })
}

/// Names the parity kernel, and those that this machine gets wrong.
fn say_parity(kernel: &str) {
    runtime::say(format_args!("palisade: parity kernel {kernel}"));
    for warning in parity::warnings() {
        runtime::say(format_args!("palisade: warning: {warning}"));
    }
}

fn report(problems: &[Error]) {
    for problem in problems {
        runtime::say(format_args!("palisade: {}\n  {}", problem.error, problem.hint));
    }
}

/// Says that clients found no room, but not more often than every [`QUIET`].
async fn say_turned_away(data: Data) {
    let most = nbd::MemorySize::default().connections;
    loop {
        data.turned_away().await;
        runtime::say(format_args!(
            "palisade: a client was turned away: each core serves at most {most} connections\n  \
             close some connections, or raise `cores` in the configuration"
        ));
        tokio::time::sleep(QUIET).await;
    }
}

fn say_ready() {
    // Nobody may be listening; the daemon serves all the same.
    let mut out = std::io::stdout();
    let _ = out.write_all(b"ready\n").and_then(|()| out.flush());
}

/// Takes the management socket: its directory is made, a socket that nobody answers on replaced.
async fn listen(path: &FilePath) -> Result<UnixListener, Error> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AddrInUse => Error::failed(
            format!("another daemon answers on {}", path.display()),
            "stop it, or name another socket with --socket",
        ),
        ErrorKind::AlreadyExists => Error::failed(
            format!("can't listen on {}: {error}", path.display()),
            "remove that file, or name another socket with --socket",
        ),
        _ => Error::failed(
            format!("can't listen on {}: {error}", path.display()),
            "run as root, or name a socket in a directory of yours with --socket",
        ),
    };
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    let listener = address::unix_listener(path).await.map_err(failed)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660)).map_err(failed)?;
    Ok(listener)
}

/// Answers a request: a Redfish one, or one of the interface under [`api::PREFIX`].
async fn dispatch(manager: Arc<Manager>, router: Router, asked: Asked) -> hyper::Response<Bytes> {
    if asked.uri().path().starts_with("/redfish") {
        return answer::answer(&manager, asked).await;
    }
    let (head, body) = asked.into_parts();
    let body = match body {
        Ok(body) => body,
        Err(why) => return (why.status(), ()).into_response().map(|_| Bytes::new()),
    };
    let request = hyper::Request::from_parts(head, Body::from(body));
    let Ok(response) = TowerToHyperService::new(router).call(request).await;
    let (head, body) = response.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    hyper::Response::from_parts(head, body)
}

fn router(manager: Arc<Manager>) -> Router {
    let v1 = Router::new()
        .route("/status", get(status))
        .route("/drives", get(drives))
        .route("/drives/wipe", post(wipe_drive))
        .route("/arrays", get(arrays).post(create_array))
        .route("/arrays/{name}", get(array).delete(delete_array))
        .route("/arrays/{name}/stop", post(stop_array))
        .route("/arrays/{name}/assemble", post(assemble_array))
        .route("/arrays/{name}/fail", post(fail_drive))
        .route("/arrays/{name}/replace", post(replace_drive))
        .route("/arrays/{name}/scrub", post(scrub_array))
        .route("/tasks", get(tasks))
        .route("/tasks/{id}/pause", post(pause_task))
        .route("/tasks/{id}/resume", post(resume_task))
        .route("/tasks/{id}/cancel", post(cancel_task))
        .route("/volumes", get(volumes).post(create_volume))
        .route("/volumes/{array}/{volume}/resize", post(resize_volume))
        .route("/volumes/{array}/{volume}", delete(delete_volume))
        .route("/exports", get(exports).post(create_export))
        .route("/exports/{id}", get(export).delete(delete_export))
        .method_not_allowed_fallback(no_such_request)
        .fallback(no_such_request);
    Router::new().nest(api::PREFIX, v1).fallback(no_such_request).with_state(manager)
}

async fn no_such_request() -> Response {
    answer::<Done>(Err(Error::usage(
        "the daemon does not know this request",
        "use a client of the same release as the daemon",
    )))
}

fn answer<T: Serialize>(outcome: Result<T, Error>) -> Response {
    let (status, body) = match outcome {
        Ok(body) => (StatusCode::OK, serde_json::to_vec(&Answer::new(body))),
        Err(error) => {
            let status = match error.code {
                ErrorCode::Failed => StatusCode::CONFLICT,
                ErrorCode::Usage => StatusCode::BAD_REQUEST,
                ErrorCode::Refused => StatusCode::FORBIDDEN,
            };
            (status, serde_json::to_vec(&Answer::new(error)))
        }
    };
    let body = body.expect("the interface's types always encode");
    (status, [("content-type", "application/json")], body).into_response()
}

/// Reads a request's body; an empty one counts as `{}`.
fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, Error> {
    let text: &[u8] = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(text).map_err(|error| {
        Error::usage(
            format!("the request is not valid: {error}"),
            "use a client of the same release as the daemon",
        )
    })
}

/// Carries a change to its end, whether or not the client stays.
async fn change<T, F>(work: F) -> Response
where
    T: Serialize + Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    match tokio::spawn(work).await {
        Ok(outcome) => answer(outcome),
        Err(_) => answer::<T>(Err(Error::failed("the daemon is stopping", "start it again"))),
    }
}

const DONE: Done = Done { done: true };

async fn status(State(manager): Shared) -> Response {
    answer(manager.status().await)
}

async fn drives(State(manager): Shared) -> Response {
    answer(manager.drives().await.map(|drives| api::DriveList { drives }))
}

async fn wipe_drive(State(manager): Shared, body: Bytes) -> Response {
    change(async move { manager.wipe(&parse(&body)?).await }).await
}

async fn arrays(State(manager): Shared) -> Response {
    answer(manager.arrays().await.map(|arrays| api::ArrayList { arrays }))
}

async fn array(State(manager): Shared, Path(name): Path<String>) -> Response {
    answer(manager.array(&name).await)
}

async fn create_array(State(manager): Shared, body: Bytes) -> Response {
    let request: api::CreateArray = match parse(&body) {
        Ok(request) => request,
        Err(error) => return answer::<Done>(Err(error)),
    };
    if request.dry_run {
        return answer(manager.plan(&request).await);
    }
    change(async move { manager.create(&request).await }).await
}

async fn delete_array(State(manager): Shared, Path(name): Path<String>) -> Response {
    change(async move { manager.delete(&name).await }).await
}

async fn stop_array(State(manager): Shared, Path(name): Path<String>) -> Response {
    change(async move { manager.stop(&name).await.map(|()| DONE) }).await
}

async fn assemble_array(State(manager): Shared, Path(name): Path<String>, body: Bytes) -> Response {
    change(async move { manager.assemble(&name, parse(&body)?).await }).await
}

async fn fail_drive(State(manager): Shared, Path(name): Path<String>, body: Bytes) -> Response {
    change(async move {
        let request: api::FailDrive = parse(&body)?;
        manager.fail(&name, &request.drive).await
    })
    .await
}

async fn replace_drive(State(manager): Shared, Path(name): Path<String>, body: Bytes) -> Response {
    change(async move {
        let request: api::ReplaceDrive = parse(&body)?;
        manager.replace(&name, &request).await
    })
    .await
}

async fn scrub_array(State(manager): Shared, Path(name): Path<String>, body: Bytes) -> Response {
    change(async move {
        let request: api::ScrubArray = parse(&body)?;
        manager.scrub(&name, request).await
    })
    .await
}

async fn tasks(State(manager): Shared) -> Response {
    answer(manager.tasks().await)
}

async fn pause_task(State(manager): Shared, Path(id): Path<String>) -> Response {
    change(async move { manager.act_on_task(&id, TaskAction::Pause).await }).await
}

async fn resume_task(State(manager): Shared, Path(id): Path<String>) -> Response {
    change(async move { manager.act_on_task(&id, TaskAction::Resume).await }).await
}

async fn cancel_task(State(manager): Shared, Path(id): Path<String>) -> Response {
    change(async move { manager.act_on_task(&id, TaskAction::Cancel).await }).await
}

async fn volumes(State(manager): Shared) -> Response {
    answer(manager.volumes().await.map(|volumes| api::VolumeList { volumes }))
}

async fn create_volume(State(manager): Shared, body: Bytes) -> Response {
    change(async move { manager.create_volume(&parse(&body)?).await }).await
}

async fn resize_volume(
    State(manager): Shared,
    Path((array, volume)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    change(async move { manager.resize_volume(&array, &volume, parse(&body)?).await }).await
}

async fn delete_volume(
    State(manager): Shared,
    Path((array, volume)): Path<(String, String)>,
) -> Response {
    change(async move { manager.delete_volume(&array, &volume).await.map(|()| DONE) }).await
}

async fn exports(State(manager): Shared) -> Response {
    answer(manager.exports().await.map(|exports| api::ExportList { exports }))
}

async fn export(State(manager): Shared, Path(id): Path<String>) -> Response {
    answer(manager.export(&id).await)
}

async fn create_export(State(manager): Shared, body: Bytes) -> Response {
    change(async move { manager.create_export(&parse(&body)?).await }).await
}

async fn delete_export(State(manager): Shared, Path(id): Path<String>) -> Response {
    change(async move { manager.delete_export(&id).await.map(|()| DONE) }).await
}
