//go:build linux

// Command hosts builds two machines out of Linux namespaces and runs a command on the
// first, to try a model whose ranks are on several machines:
//
//	go build -o hosts ./tools/hosts
//	sudo ./hosts run --link 20ms,1Gbit,1% --put model -- mpirun --host host-a,host-b …
//	sudo ./hosts speed whole/model layer/model tensor/model
//
// Each host has its own network, processes, shared memory, user, home folder, cache, and
// an ssh server that accepts the other's key. The network between them is a pair of TUN
// devices. This program carries the packets, with the delay, bandwidth and loss of the
// link, so no kernel module is needed. It needs root, /dev/net/tun and sshd.
//
// The tests of this package check what docs/partition.md and docs/scale.md say about lost
// ranks, lost links and wrong files (.ci/run hosts), and run the commands of
// docs/two-machines.md.
package main
