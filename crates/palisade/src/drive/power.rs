//! `palisade drive power`: an NVMe drive's power states.

use crate::array::DONE;
use crate::client::{Change, Client};
use crate::confirm;
use crate::named;
use crate::output::{How, Problem, table};
use redfish::messages;
use redfish::service::uri;
use redfish::view::{Answer, DrivePower, DrivePowerState, KnownDrive};
use serde::Serialize;
use serde_json::json;
use std::path::Path;

/// A drive's power states, as they are printed.
#[derive(Debug, Serialize)]
struct Shown {
    id: String,
    path: String,
    /// The present state, and all; null where they are not known.
    power: Option<DrivePower>,
    /// Why they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl From<&KnownDrive> for Shown {
    fn from(known: &KnownDrive) -> Self {
        let power = known.hardware.power.clone();
        let problem = known.hardware.problem.clone().filter(|_| power.is_none());
        Self { id: known.id.clone(), path: known.drive.path.clone(), power, problem }
    }
}

/// Shows a drive's power states, or puts it in one.
pub async fn run(name: &Path, state: Option<u8>, how: How, client: &Client) -> Result<(), Problem> {
    let known = named::one(client, name).await?;
    let Some(state) = state else { return show(&known, how) };
    let action = format!("{}/Actions/Oem/PalisadeDrive.SetPowerState", uri::drive(&known.id));
    let change = Change::post(action, json!({ "State": state }));
    if confirm::change(&change, how, client).await?.is_some() {
        how.output
            .print(&DONE, |_| format!("drive {} is in power state {state}", known.drive.path));
    }
    Ok(())
}

fn show(known: &KnownDrive, how: How) -> Result<(), Problem> {
    if !known.hardware.is_nvme() {
        return Err(Problem::new(&messages::DRIVE_NOT_NVME, &[&known.drive.path]));
    }
    how.output.print(&Answer::new(Shown::from(known)), text);
    Ok(())
}

/// A table of the states; a star is at the present one.
fn text(shown: &Shown) -> String {
    let Some(power) = &shown.power else {
        let why = shown.problem.as_deref().unwrap_or("the drive was not asked yet");
        return format!("the power states of {} are not known: {why}", shown.path);
    };
    let row = |own: &DrivePowerState| {
        vec![
            if own.state == power.state { "*" } else { "" }.to_owned(),
            own.state.to_string(),
            own.max_milliwatts.map_or("-".to_owned(), watts),
            if own.serves { "yes" } else { "no" }.to_owned(),
            duration(own.enter_us),
            duration(own.exit_us),
        ]
    };
    let rows: Vec<_> = power.states.iter().map(row).collect();
    table(&["", "STATE", "MOST", "SERVES", "ENTER", "LEAVE"], &rows)
}

/// Milliwatts in watts, without zeros at the end.
pub fn watts(milliwatts: u32) -> String {
    let digits = format!("{}.{:03}", milliwatts / 1000, milliwatts % 1000);
    format!("{} W", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// Microseconds as people read them; `-` where the drive says none.
fn duration(microseconds: u32) -> String {
    match microseconds {
        0 => "-".to_owned(),
        short if short < 1000 => format!("{short} us"),
        long if long < 1_000_000 => format!("{}.{} ms", long / 1000, long % 1000 / 100),
        long => format!("{}.{} s", long / 1_000_000, long % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_a_table_with_a_star_at_the_present_one() {
        let state = |state, max_milliwatts, serves, enter_us, exit_us| DrivePowerState {
            state,
            max_milliwatts,
            serves,
            enter_us,
            exit_us,
        };
        let states = vec![
            state(0, Some(25_000), true, 0, 0),
            state(1, Some(8_250), true, 5, 999),
            state(2, None, false, 1_500, 2_300_000),
        ];
        let mut shown = Shown {
            id: "a".to_owned(),
            path: "/dev/nvme0n1".to_owned(),
            power: Some(DrivePower { state: 1, states }),
            problem: None,
        };
        assert_eq!(
            text(&shown),
            "   STATE  MOST    SERVES  ENTER   LEAVE\n   \
             0      25 W    yes     -       -\n\
             *  1      8.25 W  yes     5 us    999 us\n   \
             2      -       no      1.5 ms  2.3 s\n"
        );
        let told = serde_json::to_value(Answer::new(&shown)).expect("encodes");
        assert_eq!(told["power"]["state"], 1);
        assert_eq!(
            told["power"]["states"][2],
            json!({
                "state": 2, "serves": false, "enter_us": 1500, "exit_us": 2_300_000
            })
        );
        (shown.power, shown.problem) = (None, Some("no CAP_SYS_ADMIN".to_owned()));
        let told = "the power states of /dev/nvme0n1 are not known: no CAP_SYS_ADMIN";
        assert_eq!(text(&shown), told);
    }
}
