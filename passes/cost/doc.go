// Package cost estimates memory and speed of a model on devices: the time of a
// step and the tokens per second of one sequence and of many, for pipeline,
// tensor and hybrid partitions.
//
// A step reads the weights of its layers once and multiplies each of its rows
// by them. It takes the longer of the two (the roofline of Williams, Waterman
// and Patterson, 2009), plus an exchange at each partial sum of a TP group.
// Numbers from the module and from data sheets are exact. The utilization of
// bandwidth and the latency of messages are ranges, which become the error bars
// of every result.
package cost
