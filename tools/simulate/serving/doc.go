// Serving replays traffic on a simulated model in virtual time. The engine's policy
// (runtime/engine/policy) or a baseline policy schedules the batches. The duration of
// a step follows a latency model fitted to measured steps (latency.json). Runs with the
// same seed are identical.
//
//	go run ./tools/simulate/serving                  every load with every policy
//	go run ./tools/simulate/serving --ablate         the engine's policy without each of its rules
//	go run ./tools/simulate/serving --fit A,B --held-out C > tools/simulate/serving/latency.json
//
// The last command fits the latency model to files of `BIN serve --trace FILE` and
// tests it on other files.
package main
