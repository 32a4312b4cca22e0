//go:build unix

// Command simulate shows what a model gives on devices that are not there.
//
// With --sizing it prints the cost model's estimate of every arrangement. Else
// it runs the three schedules of Table 5 of the Inferflow report with the real
// engine, on ranks whose layers are waits of the cost model's times and whose
// messages have the delay and the bandwidth of a link. The subcommand network
// predicts two ranks on two machines from the measured speed of one process, for
// each delay and bandwidth of the network:
//
//	go run ./tools/simulate
//	go run ./tools/simulate --model llama3.3-70b-instruct --machine 8xh100 --sizing --sequences 1,64
//	go run ./tools/simulate network --measured 12.3ms
package main
