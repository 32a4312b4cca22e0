package main

import "github.com/iflowc/iflowc/runtime/artifact/manifest"

// engine fills in what the specification says of how the model is run.
func (m *model) engine(man *manifest.Manifest) {
	e := &m.Spec.Engine
	strategy, err := m.Spec.Strategy()
	if err != nil {
		panic("bug: the specification was accepted: " + err.Error())
	}
	man.Engine = manifest.Engine{
		Sequences: e.Queries, Threads: e.Threads, Port: e.Port, MaxOutput: e.MaxOutput, Strategy: strategy, Devices: m.Spec.Devices, Speculate: e.Speculate, DraftTokens: e.DraftTokens,
		Layers: e.Layers, EncoderLayers: e.EncoderCPU, DecoderLayers: e.DecoderCPU, HostKVPercent: e.HostKVShare, HostEmbeddings: e.HostEmbed,
	}
}
