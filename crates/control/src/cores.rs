//! What a data core is, to all that runs on one.

use drives::SharedDrive;
use engine::mail::Mail;

/// One core.
pub type CoreEnv = runtime::CoreEnv<Mail<SharedDrive>, SharedDrive>;
/// The engine on one core.
pub type Core = engine::Core<CoreEnv>;
