// Package deploycheck holds the files of deploy/ to what reads them: the
// manifest to the schema of LeaderWorkerSet, the job to sbatch's options, the
// scripts to their shells, and what starts ranks to what it must start.
//
// testdata/leaderworkerset.schema.json is the structure of version v1 of the
// custom resource (kubernetes-sigs/lws 0.9,
// config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml) without its
// texts: at the levels that the manifest reaches all fields stand in it, of
// those that it does not use only their type.
package deploycheck
