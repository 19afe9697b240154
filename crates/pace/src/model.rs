//! Models of drives.
//!
//! Sources: **W**: *OpenFlex Data24 with SupremeRAID*, white paper of Western Digital and Graid
//! Technology; **D**: review of the OpenFlex Data24 with three servers; **S**: StarWind's
//! comparison of md and SupremeRAID over PBlaze6 drives; **X**: report of Xinnor and Solidigm on
//! rebuilding arrays of D5-P5336 drives.

use crate::cost::{Point, Rate};

/// A number and where it is from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// The number, in the unit of its field.
    pub value: f64,
    /// Where it is from; begins with `assumed` where no source has it.
    pub source: &'static str,
}

/// What reads and writes at the same time come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overlap {
    /// Their times add up.
    Adds,
    /// The squares of their shares add up.
    Squares,
}

/// What drives behind a port share.
#[derive(Clone, PartialEq, Debug)]
pub struct PortModel {
    /// Drives behind it.
    pub drives: Figure,
    /// Requests a second.
    pub requests: Figure,
    /// Bytes a second in each direction.
    pub bytes: Figure,
}

/// A kind of drive.
#[derive(Clone, PartialEq, Debug)]
pub struct Model {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it stands for.
    pub about: &'static str,
    /// Bytes of a drive.
    pub bytes: Figure,
    /// Reads, by size.
    pub reads: &'static [Point],
    /// Writes, by size.
    pub writes: &'static [Point],
    /// What a read takes beside its service, in microseconds.
    pub read_latency_us: Figure,
    /// What a write takes beside its service, in microseconds.
    pub write_latency_us: Figure,
    /// Reads beside writes.
    pub overlap: Overlap,
    /// Where that is from.
    pub overlap_source: &'static str,
    /// Bytes that the drive writes at least.
    pub unit_bytes: Figure,
    /// Its port, if several share one.
    pub port: Option<PortModel>,
}

const fn figure(value: f64, source: &'static str) -> Figure {
    Figure { value, source }
}

const fn requests(bytes: u64, rate: f64, source: &'static str) -> Point {
    Point { bytes, rate: Rate::Requests(rate), source }
}

const fn bandwidth(bytes: u64, rate: f64, source: &'static str) -> Point {
    Point { bytes, rate: Rate::Bytes(rate), source }
}

const KIB: u64 = 1 << 10;

/// All models.
pub static MODELS: [Model; 3] = [SN840, PBLAZE6, D5_P5336];

const SN840: Model = Model {
    name: "sn840",
    about: "one of the two namespaces of a drive in an OpenFlex Data24: a 48th of the shelf",
    bytes: figure(1.6e12, "W: 24 drives of 3.2 TB with two namespaces each"),
    reads: &[
        requests(
            4 * KIB,
            412_000.0,
            "W, Figure 8: 12 M mixed, a 48th; with 7 reads to 3 writes and costs that add up",
        ),
        bandwidth(128 * KIB, 1.65e9, "assumed: the port limits W's reads"),
    ],
    writes: &[
        requests(4 * KIB, 130_400.0, "W, Figure 8: 6.26 MIOPS, a 48th"),
        bandwidth(128 * KIB, 0.825e9, "W, Figure 9: 39.6 GB/s, a 48th"),
    ],
    read_latency_us: figure(85.0, "assumed"),
    write_latency_us: figure(25.0, "assumed"),
    overlap: Overlap::Adds,
    overlap_source: "assumed: with it SupremeRAID's mixed and degraded figures come out",
    unit_bytes: figure(4096.0, "assumed"),
    port: Some(PortModel {
        drives: figure(8.0, "W, Figure 6: eight namespaces per server and port"),
        requests: figure(2.55e6, "W, Figure 8: 15.3 MIOPS, a sixth; D: 2,541,000"),
        bytes: figure(11.92e9, "W, Figure 9: 71.5 GB/s, a sixth; D: 11.90 GB/s"),
    }),
};

const PBLAZE6: Model = Model {
    name: "pblaze6",
    about: "a PBlaze6 6926 of 12.8 TB",
    bytes: figure(12.8e12, "S, hardware"),
    reads: &[
        requests(4 * KIB, 1_514_000.0, "S, single drive: 16 jobs of depth 32"),
        requests(64 * KIB, 103_000.0, "S, single drive: 4 jobs of depth 8"),
        requests(1024 * KIB, 6576.0, "S, single drive: 6576 MiB/s, depth 4"),
    ],
    writes: &[
        requests(4 * KIB, 537_000.0, "S, single drive: 4 jobs of depth 4"),
        requests(64 * KIB, 42_000.0, "S, single drive: 2 jobs of depth 2"),
        requests(1024 * KIB, 5393.0, "S, single drive: 5393 MiB/s, depth 2"),
    ],
    read_latency_us: figure(60.0, "assumed"),
    write_latency_us: figure(
        20.0,
        "assumed: S has 29 us with 16 under way, which are served in 30",
    ),
    overlap: Overlap::Adds,
    overlap_source: "assumed",
    unit_bytes: figure(4096.0, "assumed"),
    port: None,
};

const D5_P5336: Model = Model {
    name: "d5-p5336",
    about: "a Solidigm D5-P5336 of 61.44 TB",
    bytes: figure(61.44e12, "X, system"),
    reads: &[
        requests(4 * KIB, 1_005_000.0, "maker's sheet"),
        bandwidth(128 * KIB, 7.0e9, "maker's sheet"),
    ],
    writes: &[
        requests(16 * KIB, 38_000.0, "maker's sheet, random writes of 16 KiB"),
        bandwidth(128 * KIB, 3.3e9, "maker's sheet"),
    ],
    read_latency_us: figure(110.0, "assumed"),
    write_latency_us: figure(30.0, "assumed"),
    overlap: Overlap::Squares,
    overlap_source: "assumed: with exponents below 1.8 X's loaded rebuild could not be",
    unit_bytes: figure(16384.0, "maker's sheet: indirection unit"),
    port: None,
};

/// The model of this name.
pub fn by_name(name: &str) -> Option<&'static Model> {
    MODELS.iter().find(|model| model.name == name)
}

/// A line about a model: what, the number with its unit, where it is from.
pub type Line = [String; 3];

impl Model {
    /// Every number of the model.
    pub fn lines(&self) -> Vec<Line> {
        let line =
            |what: &str, value: String, source: &str| [what.to_owned(), value, source.to_owned()];
        let mut lines =
            vec![line("size", format!("{} TB", self.bytes.value / 1e12), self.bytes.source)];
        for (what, points) in [("reads", self.reads), ("writes", self.writes)] {
            for point in points {
                let value = match point.rate {
                    Rate::Requests(rate) => format!("{rate} IOPS"),
                    Rate::Bytes(rate) => format!("{} GB/s", rate / 1e9),
                };
                let size = point.bytes / KIB;
                lines.push(line(&format!("{size}K {what}"), value, point.source));
            }
        }
        for (what, latency) in [("read", self.read_latency_us), ("write", self.write_latency_us)] {
            let value = format!("{} us", latency.value);
            lines.push(line(&format!("latency of a {what}"), value, latency.source));
        }
        let overlap = match self.overlap {
            Overlap::Adds => "times add up",
            Overlap::Squares => "squares of shares add up",
        };
        lines.push(line("reads beside writes", overlap.to_owned(), self.overlap_source));
        let unit = format!("{} bytes", self.unit_bytes.value);
        lines.push(line("unit of writes", unit, self.unit_bytes.source));
        if let Some(port) = &self.port {
            let PortModel { drives, requests, bytes } = port;
            lines.push(line("drives of a port", drives.value.to_string(), drives.source));
            let rate = format!("{} MIOPS", requests.value / 1e6);
            lines.push(line("requests of a port", rate, requests.source));
            let rate = format!("{} GB/s", bytes.value / 1e9);
            lines.push(line("bytes of a port, each way", rate, bytes.source));
        }
        lines
    }
}
