package deploycheck

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

const manifests = "../../../deploy/kubernetes/"

// kindVersions are the kinds that the manifests may use, with their versions. Each
// has a schema in testdata.
var kindVersions = map[string]string{
	"LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1", "Service": "v1", "Pod": "v1", "PersistentVolumeClaim": "v1",
	"NetworkPolicy": "networking.k8s.io/v1", "PodDisruptionBudget": "policy/v1",
}

func resourceSchema(t *testing.T, kind string) *schema {
	t.Helper()
	data, err := os.ReadFile("testdata/" + strings.ToLower(kind) + ".schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// documents reads a file of manifests by kind and name.
func documents(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var v map[string]any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out[v["kind"].(string)+" "+at(t, v, "metadata", "name").(string)] = v
	}
}

// manifest reads one of the files.
func manifest(t *testing.T, name string) map[string]map[string]any {
	t.Helper()
	return documents(t, read(t, "kubernetes/"+name))
}

// at follows a path of names and numbers through a document.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch k := p.(type) {
		case string:
			v = v.(map[string]any)[k]
		case int:
			v = v.([]any)[k]
		}
		if v == nil {
			t.Fatalf("nothing at %v of %v", p, path)
		}
	}
	return v
}

// pods returns the pod templates of a file.
func pods(t *testing.T, docs map[string]map[string]any) (list []any) {
	t.Helper()
	for name, d := range docs {
		switch {
		case strings.HasPrefix(name, "LeaderWorkerSet "):
			group := at(t, d, "spec", "leaderWorkerTemplate")
			list = append(list, at(t, group, "leaderTemplate"), at(t, group, "workerTemplate"))
		case strings.HasPrefix(name, "Pod "):
			list = append(list, d)
		}
	}
	return list
}

// TestManifests holds every file to the schemas, and every pod to Kubernetes'
// restricted security standard and a read-only root file system.
func TestManifests(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(manifests)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		docs := manifest(t, f.Name())
		for name, d := range docs {
			kind, _, _ := strings.Cut(name, " ")
			if d["apiVersion"] != kindVersions[kind] {
				t.Errorf("%s: %s has version %v, expected %q", f.Name(), name, d["apiVersion"], kindVersions[kind])
				continue
			}
			for _, wrong := range resourceSchema(t, kind).check(f.Name()+" "+name, d) {
				t.Error(wrong)
			}
		}
		for _, pod := range pods(t, docs) {
			checkPod(t, f.Name(), at(t, pod, "spec"))
		}
	}
}

func checkPod(t *testing.T, file string, spec any) {
	t.Helper()
	if at(t, spec, "securityContext", "runAsNonRoot") != true || at(t, spec, "securityContext", "seccompProfile", "type") != "RuntimeDefault" ||
		at(t, spec, "automountServiceAccountToken") != false {
		t.Errorf("%s: a pod may run as root, without seccomp, or has a token", file)
	}
	volumes := map[any]bool{}
	for _, v := range at(t, spec, "volumes").([]any) {
		volumes[at(t, v, "name")] = true
	}
	for _, c := range at(t, spec, "containers").([]any) {
		if s := at(t, c, "securityContext"); at(t, s, "allowPrivilegeEscalation") != false || at(t, s, "readOnlyRootFilesystem") != true ||
			at(t, s, "capabilities", "drop", 0) != "ALL" {
			t.Errorf("%s: container %v may gain privileges or write to its image", file, at(t, c, "name"))
		}
		at(t, c, "resources", "limits", "memory")
		for _, m := range at(t, c, "volumeMounts").([]any) {
			if !volumes[at(t, m, "name")] {
				t.Errorf("%s: there is no volume %v", file, at(t, m, "name"))
			}
		}
	}
}

// TestGroups holds the parts of both groups, and of what is around them, to each
// other.
func TestGroups(t *testing.T) {
	t.Parallel()
	around := manifest(t, "common.yaml")
	claim := at(t, manifest(t, "model-volume.yaml")["PersistentVolumeClaim iflowc-model"], "metadata", "name")
	for _, file := range []string{"leaderworkerset.yaml", "leaderworkerset-gpu.yaml"} {
		lws := manifest(t, file)["LeaderWorkerSet iflowc"]
		group := at(t, lws, "spec", "leaderWorkerTemplate")
		leader, worker := at(t, group, "leaderTemplate"), at(t, group, "workerTemplate")
		if at(t, leader, "spec", "containers", 0, "image") != at(t, worker, "spec", "containers", 0, "image") {
			t.Errorf("%s: leader and workers have different images: their ranks would refuse each other", file)
		}
		if at(t, group, "restartPolicy") != "RecreateGroupOnPodRestart" {
			t.Errorf("%s: a lost pod must restart the group: the ranks end together", file)
		}
		for name, selects := range map[string][2]bool{ // leader, worker
			"Service iflowc-http": {true, false}, "NetworkPolicy iflowc-http": {true, false}, "NetworkPolicy iflowc-ranks": {true, true}, "PodDisruptionBudget iflowc": {true, true},
		} {
			labels := selector(t, around[name])
			if got := [2]bool{has(t, leader, labels), has(t, worker, labels)}; got != selects {
				t.Errorf("%s: %s selects leader and worker: %v, expected %v", file, name, got, selects)
			}
		}
		container := at(t, leader, "spec", "containers", 0)
		http := at(t, container, "ports", 0, "name")
		if at(t, around["Service iflowc-http"], "spec", "ports", 0, "targetPort") != http ||
			at(t, around["NetworkPolicy iflowc-http"], "spec", "ingress", 0, "ports", 0, "port") != http || at(t, container, "livenessProbe", "httpGet", "port") != http {
			t.Errorf("%s: the leader's port %v is not that of the service, the policy and the probe", file, http)
		}
		for _, pod := range []any{leader, worker} {
			if !slices.ContainsFunc(at(t, pod, "spec", "volumes").([]any), func(v any) bool {
				p, ok := v.(map[string]any)["persistentVolumeClaim"].(map[string]any)
				return ok && p["claimName"] == claim && p["readOnly"] == true
			}) {
				t.Errorf("%s: a pod does not read the volume %v", file, claim)
			}
		}
		checkGrace(t, file, leader, worker)
	}
}

// checkGrace: serve ends its requests, then deploy/launch gives up, then the kubelet.
func checkGrace(t *testing.T, file string, leader, worker any) {
	t.Helper()
	args := at(t, leader, "spec", "containers", 0, "args").([]any)
	serve, err := time.ParseDuration(args[slices.Index(args, any("--grace"))+1].(string))
	pod := time.Duration(at(t, leader, "spec", "terminationGracePeriodSeconds").(int)) * time.Second
	const ending = 20 * time.Second // 15 s for mpirun, 5 s to kill it
	launch := 60 * time.Second      // the default of IFLOWC_GRACE
	for _, v := range at(t, leader, "spec", "containers", 0, "env").([]any) {
		if at(t, v, "name") == "IFLOWC_GRACE" && err == nil {
			launch, err = time.ParseDuration(at(t, v, "value").(string) + "s")
		}
	}
	if err != nil || serve >= launch || launch+ending > pod || at(t, worker, "spec", "terminationGracePeriodSeconds") != at(t, leader, "spec", "terminationGracePeriodSeconds") {
		t.Errorf("%s: serve --grace %v, launch %v, pod %v (%v): each needs more than the one before, and workers as much as the leader", file, serve, launch, pod, err)
	}
}

// selector returns the labels by which a resource selects pods.
func selector(t *testing.T, v map[string]any) any {
	t.Helper()
	switch v["kind"] {
	case "Service":
		return at(t, v, "spec", "selector")
	case "NetworkPolicy":
		return at(t, v, "spec", "podSelector", "matchLabels")
	}
	return at(t, v, "spec", "selector", "matchLabels")
}

// has reports whether a pod template has all of these labels.
func has(t *testing.T, pod, labels any) bool {
	t.Helper()
	own := at(t, pod, "metadata", "labels").(map[string]any)
	for k, v := range labels.(map[string]any) {
		if own[k] != v {
			return false
		}
	}
	return true
}

// TestSecretItems: each pod has the keys that its script reads, and no more.
func TestSecretItems(t *testing.T) {
	t.Parallel()
	group := at(t, manifest(t, "leaderworkerset.yaml")["LeaderWorkerSet iflowc"], "spec", "leaderWorkerTemplate")
	for template, script := range map[string]string{"leaderTemplate": "leader", "workerTemplate": "worker"} {
		text := read(t, "container/"+script)
		spec := at(t, group, template, "spec")
		if path := at(t, spec, "containers", 0, "volumeMounts", 0, "mountPath"); !strings.Contains(text, "{IFLOWC_KEYS:-"+path.(string)+"}") {
			t.Errorf("%s: the keys are mounted at %v, where the script does not look", script, path)
		}
		items := at(t, spec, "volumes", 0, "secret", "items").([]any)
		for _, item := range items {
			if path := at(t, item, "path").(string); !strings.Contains(text, `"$keys/`+path+`"`) {
				t.Errorf("%s does not read %s", script, path)
			}
		}
		if n := strings.Count(text, `"$keys/`); n != len(items) {
			t.Errorf("%s reads %d keys, and has %d", script, n, len(items))
		}
	}
}

// TestSchemaRefuses: the check finds what kubectl would refuse.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	for change, want := range map[[3]string]string{
		{"leaderworkerset.yaml", "size: 4", "sise: 4"}:                          "unknown field sise",
		{"leaderworkerset.yaml", "size: 4", "size: four"}:                       "expected integer",
		{"leaderworkerset.yaml", "    workerTemplate:", "    w:"}:               "workerTemplate is missing",
		{"leaderworkerset.yaml", "replicas: 1", "replicas: [1]"}:                "a list",
		{"leaderworkerset.yaml", "path: /health", "paths: /health"}:             "unknown field paths",
		{"leaderworkerset.yaml", "RecreateGroupOnPodRestart", "Now"}:            "Now is none of",
		{"leaderworkerset.yaml", "cpu: \"16\"", "cpu: [16]"}:                    "a list",
		{"leaderworkerset.yaml", "runAsNonRoot: true", "runAsNonRoot: {}"}:      "an object",
		{"leaderworkerset.yaml", "drop: [\"ALL\"]", "drops: [\"ALL\"]"}:         "unknown field drops",
		{"leaderworkerset-gpu.yaml", "value: eth0", "values: eth0"}:             "unknown field values",
		{"leaderworkerset-gpu.yaml", "operator: Exists", "operators: Exists"}:   "unknown field operators",
		{"common.yaml", "maxUnavailable: 0", "unavailable: 0"}:                  "unknown field unavailable",
		{"common.yaml", "  podSelector:\n    matchLabels", "  podS:\n    matc"}: "unknown field podS",
		{"model-volume.yaml", "accessModes: [\"", "accessModes: [[], \""}:       "expected string",
		{"model-volume.yaml", "    - name: copy", "    - names: copy"}:          "name is missing",
	} {
		text := read(t, "kubernetes/"+change[0])
		broken := strings.Replace(text, change[1], change[2], 1)
		if broken == text {
			t.Errorf("%s has no %q", change[0], change[1])
		}
		var found []string
		for name, d := range documents(t, broken) {
			kind, _, _ := strings.Cut(name, " ")
			found = append(found, resourceSchema(t, kind).check(name, d)...)
		}
		if !strings.Contains(strings.Join(found, "\n"), want) {
			t.Errorf("%s: found %q, expected %q", change[2], found, want)
		}
	}
}
