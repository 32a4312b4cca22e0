// Package cost estimates what a model takes and gives on devices: memory, the
// time of a step, tokens a second of one sequence and of many, for layers
// spread by stages, by tensors or by both.
//
// A step reads the weights of its layers once and multiplies each of its rows
// by them; it takes the longer of the two (the roofline of Williams, Waterman
// and Patterson, 2009), and in a tensor group an exchange at each partial sum.
// What is read from the module and what the data sheets say is exact; how much
// of a bandwidth is reached and how long a message takes are ranges, which
// become the error bars of every result.
package cost
