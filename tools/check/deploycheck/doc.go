// Package deploycheck checks the files of deploy/: the manifests against the
// schemas of Kubernetes and LeaderWorkerSet, the job against sbatch's options, the
// unit with systemd-analyze, the scripts with their shells, a real sshd, and the
// programs that start ranks or stand-ins for them. Package servicecheck runs the
// proxies and Prometheus.
//
// testdata has the structure of each kind of resource, without descriptions: of
// LeaderWorkerSet 0.9
// (config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml) and of
// Kubernetes 1.34 (api/openapi-spec/v3). A file has all fields at the levels that
// the manifests use; of unused fields it has only the type.
package deploycheck
