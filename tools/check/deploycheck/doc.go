// Package deploycheck checks the files of deploy/: the manifest against the
// schema of LeaderWorkerSet, the job against sbatch's options, the scripts with
// their shells, and the programs that start ranks against the calls they must
// make.
//
// testdata/leaderworkerset.schema.json is the structure of version v1 of the
// custom resource (kubernetes-sigs/lws 0.9,
// config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml) without
// descriptions. It has all fields at the levels that the manifest uses; of
// unused fields it has only the type.
package deploycheck
