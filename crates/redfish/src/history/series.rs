//! Which series there are: what is kept of the machine, of an array, of a volume and of a drive.
//!
//! | of a     | is kept                                                                          |
//! |----------|----------------------------------------------------------------------------------|
//! | machine  | requests to all volumes, how busy cores are, hosts                                |
//! | array    | requests to its volumes                                                          |
//! | volume   | requests to it                                                                   |
//! | drive    | what the array asked of it, its temperature, and how much of its life is used    |
//!
//! *Requests* are reads and writes a second, their bytes a second, how long they took in the mean,
//! and within which time 99 of 100 were done.
//!
//! Invariant: the order of a table's fields is that of the file ([`super::file`]), whose version
//! changes with it.

use crate::counters::BUCKETS;

/// What a series is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// The daemon, with all volumes.
    Machine,
    /// An array.
    Array,
    /// A volume.
    Volume,
    /// A drive.
    Drive,
}

/// How a point is made of the samples of its interval. What a sample does not know counts for
/// nothing: a point of which no sample knows anything is a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// Their mean.
    Mean,
    /// The greatest of them.
    Most,
    /// The mean over all reads (0) or writes (1), however they were spread over the samples.
    MeanOfRequests(usize),
    /// The interval of latency ([`crate::counters::Latency`]) up to which 99 of 100 reads (0) or
    /// writes (1) of all samples together are: its upper limit.
    Of99Percent(usize),
}

/// One number of a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// The identifier of its metric.
    pub metric: &'static str,
    /// How it is made of samples.
    pub how: How,
    /// What is added to it where it is kept, so that it is not below 0.
    pub offset: u16,
}

const fn field(metric: &'static str, how: How) -> Field {
    Field { metric, how, offset: 0 }
}

/// The most fields that a table has.
pub const WIDTH_MOST: usize = 12;

const MACHINE: &[Field; 12] = &[
    field("ReadRate", How::Mean),
    field("WriteRate", How::Mean),
    field("ReadBandwidth", How::Mean),
    field("WriteBandwidth", How::Mean),
    field("ReadLatency", How::MeanOfRequests(0)),
    field("WriteLatency", How::MeanOfRequests(1)),
    field("ReadLatency99", How::Of99Percent(0)),
    field("WriteLatency99", How::Of99Percent(1)),
    field("RequestsUnderWay", How::Mean),
    field("CoresBusy", How::Mean),
    field("BusiestCore", How::Most),
    field("HostsConnected", How::Most),
];

/// Behind zero the freezing point is 273 Kelvin.
const KELVIN: u16 = 273;

const DRIVE: &[Field; 6] = &[
    field("ReadRate", How::Mean),
    field("WriteRate", How::Mean),
    field("ReadBandwidth", How::Mean),
    field("WriteBandwidth", How::Mean),
    Field { metric: "Temperature", how: How::Most, offset: KELVIN },
    field("LifeUsed", How::Most),
];

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Machine, Self::Array, Self::Volume, Self::Drive];

    /// Its word, as identifiers of reports have it; of the machine there is none.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Machine => "",
            Self::Array => "array",
            Self::Volume => "volume",
            Self::Drive => "drive",
        }
    }

    /// What a point of it holds, in this order.
    pub fn fields(self) -> &'static [Field] {
        let shared = |count: usize| MACHINE.get(..count).unwrap_or_default();
        match self {
            Self::Machine => MACHINE,
            Self::Array => shared(9),
            Self::Volume => shared(8),
            Self::Drive => DRIVE,
        }
    }

    /// Whether it counts how long requests take.
    pub const fn has_latencies(self) -> bool {
        !matches!(self, Self::Drive)
    }
}

/// A metric of the past.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric {
    /// Its identifier.
    pub id: &'static str,
    /// The unit of its values (UCUM); empty if there is none.
    pub units: &'static str,
    /// What it says.
    pub about: &'static str,
}

const fn metric(id: &'static str, units: &'static str, about: &'static str) -> Metric {
    Metric { id, units, about }
}

/// All of them.
pub const METRICS: [Metric; 14] = [
    metric("ReadRate", "/s", "Reads a second"),
    metric("WriteRate", "/s", "Writes a second"),
    metric("ReadBandwidth", "By/s", "Bytes read a second"),
    metric("WriteBandwidth", "By/s", "Bytes written a second"),
    metric("ReadLatency", "us", "How long a read took, in the mean"),
    metric("WriteLatency", "us", "How long a write took, in the mean"),
    metric("ReadLatency99", "us", "Within which time 99 of 100 reads were done"),
    metric("WriteLatency99", "us", "Within which time 99 of 100 writes were done"),
    metric("RequestsUnderWay", "", "Reads and writes under way, in the mean"),
    metric("CoresBusy", "%", "Share of time in which data cores worked, in the mean"),
    metric("BusiestCore", "%", "Share of time in which the busiest data core worked"),
    metric("HostsConnected", "", "Hosts of NVMe, and connections of NBD"),
    metric("Temperature", "Cel", "Temperature of a drive"),
    metric("LifeUsed", "%", "How much of its life a drive has used"),
];

/// The metric of this identifier.
pub fn metric_of(id: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.id == id)
}

/// The numbers of reads and of writes by the interval that their time is in.
pub type Buckets = [[f32; BUCKETS]; 2];

/// What one sample says of something.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// A number for each field; what nobody knows, and what is made of `buckets`, is no number.
    pub values: [f32; WIDTH_MOST],
    /// How many reads and writes were done.
    pub done: [f32; 2],
    /// How long these took; none if none were done.
    pub buckets: Option<Buckets>,
}

impl Default for Row {
    fn default() -> Self {
        Self { values: [f32::NAN; WIDTH_MOST], done: [0.0; 2], buckets: None }
    }
}

impl Row {
    /// Whether it says anything.
    pub fn is_known(&self) -> bool {
        self.values.iter().any(|value| !value.is_nan())
    }

    /// Says a value; there are as many as fields.
    pub fn put(&mut self, at: usize, value: f64) {
        if let Some(own) = self.values.get_mut(at) {
            *own = value as f32;
        }
    }
}

/// The microseconds within which 99 of 100 requests were done; none if there were none.
pub fn of_99_percent(buckets: &[f32; BUCKETS]) -> Option<f64> {
    let all: f64 = buckets.iter().copied().map(f64::from).sum();
    let mut within = 0.0;
    for (at, count) in buckets.iter().enumerate() {
        within += f64::from(*count);
        if within > 0.0 && within >= all * 0.99 {
            return Some(2_f64.powi(at as i32));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_field_has_a_metric_and_each_metric_a_field() {
        let mut used = BTreeSet::new();
        for kind in Kind::ALL {
            let fields = kind.fields();
            assert!((1..=WIDTH_MOST).contains(&fields.len()));
            for field in fields {
                assert!(metric_of(field.metric).is_some(), "{field:?}");
                let is_latency = matches!(field.how, How::MeanOfRequests(_) | How::Of99Percent(_));
                assert!(kind.has_latencies() || !is_latency);
                used.insert(field.metric);
            }
        }
        assert_eq!(used, METRICS.iter().map(|metric| metric.id).collect());
        for (at, field) in Kind::Machine.fields().iter().enumerate().take(4) {
            assert_eq!(Kind::Drive.fields()[at], *field, "the first four are the same");
        }
    }

    #[test]
    fn ninety_nine_of_a_hundred_are_within_the_limit() {
        let of = |counts: &[(usize, f32)]| {
            let mut buckets = [0.0; BUCKETS];
            counts.iter().for_each(|(at, count)| buckets[*at] = *count);
            of_99_percent(&buckets)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(0, 1.0)]), Some(1.0));
        assert_eq!(of(&[(3, 99.0), (9, 1.0)]), Some(8.0));
        assert_eq!(of(&[(3, 98.0), (9, 2.0)]), Some(512.0));
        assert_eq!(of(&[(2, 1.0), (25, 98.0)]), Some(2_f64.powi(25)));
    }
}
