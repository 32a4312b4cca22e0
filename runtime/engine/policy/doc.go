// Package policy decides what the next step of a model computes.
//
// Next maps the states of the live requests, a model of how long steps take and an
// objective to a batch. It is a pure function: it reads no clock, waits for nothing and
// writes only its result. State kept between steps (measured step times, how long each
// request has waited) is part of its input. The engine gathers the input and executes
// the batch; the simulator in tools/simulate calls the same function in simulated time.
//
// The objective is to maximize tokens per second subject to
//
//   - inter-token latency (ITL): a step that generates tokens takes no longer
//     than Objective.StepTime, or than a fixed multiple of a step without
//     prompts, whichever is longer; a fixed multiple of Objective.StepTime while
//     many wait for their first token and few generate;
//   - time to first token (TTFT): a short prompt does not wait for a long one;
//   - no starvation: no request is overtaken forever, by shorter ones or by
//     more urgent ones;
//   - fairness: Admit gives a free sequence slot to the client that uses the
//     fewest.
//
// The result of a request does not depend on the batches it is computed in: the policy
// decides when a token is computed, never how.
package policy
