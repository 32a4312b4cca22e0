//go:build linux

// Command hosts builds two machines out of Linux namespaces and runs a command on the
// first, to try a model whose ranks are on several machines:
//
//	sudo go run ./tools/hosts run --link 20ms,1Gbit,1% -- mpirun --host host-a,host-b …
//	sudo go run ./tools/hosts speed --model SmolLM2-135M.gguf
//
// Each host has its own network, processes, shared memory, user, home folder, cache, and
// an ssh server that accepts the other's key. The network between them is a pair of TUN
// devices. This program carries the packets, with the delay, bandwidth and loss of the
// link, so no kernel module is needed. It needs root, /dev/net/tun and sshd.
//
// The tests of this package check the promises of docs/partition.md and docs/scale.md
// about lost ranks and lost links (see TestFaults).
package main
