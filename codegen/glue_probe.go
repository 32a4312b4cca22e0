package codegen

import _ "embed"

// probeSource is compiled into each library with the same flags as the step, and
// exports the probes of runtime/device/cpu.
//
//go:embed probe/probe.c
var probeSource string

// Probe is the C source of the functions with which a binary's bench subcommand
// measures the peak performance of the CPU.
func Probe() string { return probeSource }
