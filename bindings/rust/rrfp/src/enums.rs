// SPDX-License-Identifier: Apache-2.0
use std::fmt;

use crate::ffi::c_enum;

c_enum! {
    /// What a task computes.
    TaskKind {
        /// F: activations.
        Forward = RRFP_FORWARD,
        /// B: input and weight gradient in one task.
        Backward = RRFP_BACKWARD,
        /// I: the gradient of what came in.
        InputGradient = RRFP_INPUT_GRADIENT,
        /// W: the gradient of the weights.
        WeightGradient = RRFP_WEIGHT_GRADIENT,
    }
}

impl TaskKind {
    /// F, B, I or W, as in hints.
    pub fn letter(self) -> char {
        match self {
            Self::Forward => 'F',
            Self::Backward => 'B',
            Self::InputGradient => 'I',
            Self::WeightGradient => 'W',
        }
    }

    /// Whether the task computes what goes back to the stages before: B and I.
    pub fn gives_input_gradient(self) -> bool {
        matches!(self, Self::Backward | Self::InputGradient)
    }

    /// Whether the task computes the gradient of the weights: B and W.
    pub fn gives_weight_gradient(self) -> bool {
        matches!(self, Self::Backward | Self::WeightGradient)
    }
}

impl fmt::Display for TaskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

c_enum! {
    /// What a hint means.
    Order {
        /// In a step: that of the pipeline; in a pipeline: ready.
        Default = RRFP_ORDER_DEFAULT,
        /// The first ready and admissible task in hint order runs.
        Ready = RRFP_ORDER_READY,
        /// Tasks run in hint order: the fixed-schedule baseline.
        Strict = RRFP_ORDER_STRICT,
        /// Strict, and a rank that has sent waits until the receiver asks: a baseline.
        Paired = RRFP_ORDER_PAIRED,
    }
}

c_enum! {
    /// Where stages go.
    Placement {
        /// Stage s on rank s; as many stages as ranks.
        Linear = RRFP_PLACEMENT_LINEAR,
        /// Stage s on rank s mod ranks.
        Loop = RRFP_PLACEMENT_LOOP,
        /// Rank r owns stages r and 2 * ranks - 1 - r.
        V = RRFP_PLACEMENT_V,
    }
}

c_enum! {
    /// The order in which the microbatches of a step enter the pipeline.
    Injection {
        /// Trainer: the tent; simulation: the tent for hints made for it.
        Default = RRFP_INJECTION_DEFAULT,
        /// As given.
        Data = RRFP_INJECTION_DATA,
        /// By size: short ... long ... short; as given if all are alike.
        Tent = RRFP_INJECTION_TENT,
    }
}

c_enum! {
    /// How a rank waits for messages.
    Wake {
        /// Gives the core away between looks.
        Yield = RRFP_WAKE_YIELD,
        /// Looks all the time: lowest latency, needs a core of its own.
        Spin = RRFP_WAKE_SPIN,
        /// Looks for some 40 us, then sleeps until woken.
        Park = RRFP_WAKE_PARK,
    }
}

c_enum! {
    /// How serious a line of the log is.
    LogLevel {
        Info = RRFP_LOG_INFO,
        Warning = RRFP_LOG_WARNING,
        Error = RRFP_LOG_ERROR,
    }
}
