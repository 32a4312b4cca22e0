// Serving replays traffic on a simulated model in virtual time. The batches are
// those of the engine's policy (runtime/engine/policy), or of one it is compared
// with; steps last as a model of measured ones says (latency.json). The same seed
// gives the same run.
//
//	go run ./tools/simulate/serving                  every load with every policy
//	go run ./tools/simulate/serving --ablate         the engine's policy without each of its rules
//	go run ./tools/simulate/serving --fit A,B --held-out C > tools/simulate/serving/latency.json
//
// The last fits the step-time model to files of `BIN serve --trace FILE` and tests
// it on others.
package main
