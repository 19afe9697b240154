//! The program from outside, as people and hosts use it: one program, so that it is linked once.

mod common;

mod account;
mod alert_messages;
mod audit;
mod bench;
mod cli;
mod clients;
mod completion;
mod confirm;
mod counters;
mod cut;
mod demo;
mod devices;
mod doctor;
mod events;
mod filesystem;
mod guest;
mod guest_drives;
mod guest_shelf;
mod history;
mod http;
mod https;
mod hung;
mod kill;
mod login;
mod memory;
mod messages;
mod notify;
mod owner;
mod redfish;
mod remote;
mod shelf;
mod takeover;
mod watch;
mod wide;
