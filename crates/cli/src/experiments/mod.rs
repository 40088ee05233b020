//! Equipment of the experiments: the clock and memory gauge of the machine, and a server to query.
//! The feature `experiments` adds this module and the commands `bench` and `reproduce`.

mod endpoint;
mod instruments;

pub(crate) use instruments::Machine;
