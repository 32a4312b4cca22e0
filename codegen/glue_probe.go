package codegen

import _ "embed"

// probeSource is compiled into each library beside the step, with the same
// flags, and exports what runtime/device/cpu calls probes.
//
//go:embed probe/probe.c
var probeSource string

// Probe is the C source of the functions with which a binary's bench measures
// the processor's peak.
func Probe() string { return probeSource }
