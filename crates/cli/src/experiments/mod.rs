//! What the experiments are run with: the machine's clock and memory gauge, and a server to ask.
//! The feature `experiments` adds this module and the commands `bench` and `reproduce`.

mod endpoint;
mod instruments;

pub(crate) use instruments::Machine;
