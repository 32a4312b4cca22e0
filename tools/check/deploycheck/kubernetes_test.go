package deploycheck

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

const manifest = "../../../deploy/kubernetes/leaderworkerset.yaml"

func resourceSchema(t *testing.T) *schema {
	t.Helper()
	data, err := os.ReadFile("testdata/leaderworkerset.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// documents reads a file of manifests by their kinds.
func documents(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for part := range strings.SplitSeq(text, "\n---\n") {
		var v map[string]any
		if err := yaml.Unmarshal([]byte(part), &v); err != nil {
			t.Fatal(err)
		}
		out[v["kind"].(string)] = v
	}
	return out
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

// TestManifest holds the manifest to the schema, and its parts to each other.
func TestManifest(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	docs := documents(t, string(data))
	lws := docs["LeaderWorkerSet"]
	for _, wrong := range resourceSchema(t).check("LeaderWorkerSet", lws) {
		t.Error(wrong)
	}
	if lws["apiVersion"] != "leaderworkerset.x-k8s.io/v1" {
		t.Errorf("version %v", lws["apiVersion"])
	}
	group := at(t, lws, "spec", "leaderWorkerTemplate")
	leader, worker := at(t, group, "leaderTemplate"), at(t, group, "workerTemplate")
	if at(t, leader, "spec", "containers", 0, "image") != at(t, worker, "spec", "containers", 0, "image") {
		t.Error("leader and workers have different images: their ranks would refuse each other")
	}
	if at(t, group, "restartPolicy") != "RecreateGroupOnPodRestart" {
		t.Error("a lost pod must restart the group: the ranks end together")
	}
	service := docs["Service"]
	for k, v := range at(t, service, "spec", "selector").(map[string]any) {
		if at(t, leader, "metadata", "labels", k) != v {
			t.Errorf("the service selects %s=%v, which the leader is not", k, v)
		}
	}
	if at(t, worker, "metadata", "labels", "iflowc/role") == at(t, service, "spec", "selector", "iflowc/role") {
		t.Error("the service selects workers")
	}
	port := at(t, service, "spec", "ports", 0, "targetPort")
	if at(t, leader, "spec", "containers", 0, "ports", 0, "name") != port {
		t.Errorf("the service's port %v is none of the leader's", port)
	}
	mounted := at(t, worker, "spec", "containers", 0, "volumeMounts", 0, "mountPath")
	script, err := os.ReadFile("../../../deploy/container/keys")
	if err != nil || !strings.Contains(string(script), "{IFLOWC_KEYS:-"+mounted.(string)+"}") {
		t.Errorf("the keys are mounted at %v, where the script does not look (%v)", mounted, err)
	}
}

// TestSchemaRefuses: the check finds what kubectl would refuse.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	s := resourceSchema(t)
	for change, want := range map[[2]string]string{
		{"size: 4", "sise: 4"}:                     "unknown field sise",
		{"size: 4", "size: four"}:                  "expected integer",
		{"    workerTemplate:", "    w:"}:          "workerTemplate is missing",
		{"replicas: 1", "replicas: [1]"}:           "a list",
		{"path: /health", "paths: /health"}:        "unknown field paths",
		{"RecreateGroupOnPodRestart", "Now"}:       "Now is none of",
		{"cpu: \"16\"", "cpu: [16]"}:               "a list",
		{"runAsNonRoot: true", "runAsNonRoot: {}"}: "an object",
	} {
		text := strings.Replace(string(data), change[0], change[1], 1)
		found := strings.Join(s.check("x", documents(t, text)["LeaderWorkerSet"]), "\n")
		if !strings.Contains(found, want) {
			t.Errorf("%s: found %q, expected %q", change[1], found, want)
		}
	}
}
