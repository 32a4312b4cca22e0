package deploycheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile("../../../deploy/" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestShells parses every script with its shell.
func TestShells(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"slurm/serve.sbatch", "launch", "container/leader", "container/worker", "container/ranks"} {
		shell, _, _ := strings.Cut(strings.TrimPrefix(read(t, path), "#!/bin/"), "\n")
		bin, err := exec.LookPath(shell)
		if err != nil {
			t.Skipf("no %s on this machine", shell)
		}
		if out, err := exec.Command(bin, "-n", "../../../deploy/"+path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
		if info, err := os.Stat("../../../deploy/" + path); err != nil || path != "slurm/serve.sbatch" && info.Mode()&0o111 == 0 {
			t.Errorf("%s cannot be executed (%v)", path, err)
		}
	}
}

// directives are the options of sbatch(1) that the job uses, and the form of
// their values.
var directives = map[string]string{
	"job-name": `\S+`, "nodes": `\d+(-\d+)?`, "ntasks-per-node": `\d+`, "cpus-per-task": `\d+`, "mem": `\d+[KMGT]?`, "exclusive": ``,
	"time": `(\d+-)?\d+(:\d+){0,2}`, "signal": `([BR]:)?(\d+|[A-Z0-9]+)(@\d+)?`, "requeue": ``, "open-mode": `append|truncate`, "output": `\S+`,
}

// TestDirectives reads the #SBATCH lines as sbatch does: those before the first
// command.
func TestDirectives(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	body := false
	for line := range strings.SplitSeq(read(t, "slurm/serve.sbatch"), "\n") {
		rest, directive := strings.CutPrefix(line, "#SBATCH ")
		body = body || line != "" && !strings.HasPrefix(line, "#")
		if !directive {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimPrefix(rest, "--"), "=")
		form, known := directives[name]
		if body || !known || !regexp.MustCompile("^("+form+")$").MatchString(value) {
			t.Errorf("%s: sbatch does not read it, or has no such option, or not with that value", line)
		}
		seen[name] = value
	}
	if seen["nodes"] == "" || seen["ntasks-per-node"] != "1" {
		t.Errorf("directives %v: expected one rank a node", seen)
	}
}

// TestSlurmStarts runs the job with a srun that tells what it was given.
func TestSlurmStarts(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine")
	}
	dir := t.TempDir()
	fakes(t, dir, map[string]string{"srun": `printf '%s\n' "$@"`, "model": "true"})
	cmd := exec.Command(bash, "../../../deploy/slurm/serve.sbatch", filepath.Join(dir, "model"), "--port", "81 82")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SLURM_JOB_NODELIST=n[1-4]", "SLURM_JOB_NUM_NODES=4", "SLURM_CPUS_PER_TASK=16")
	out, err := cmd.Output()
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	want := []string{filepath.Join(dir, "model"), "serve", "--host", "0.0.0.0", "--threads", "16", "--port", "81 82"}
	if err != nil || len(got) < len(want) || !slices.Equal(got[len(got)-len(want):], want) || !slices.Contains(got, "--ntasks=4") || !slices.Contains(got, "--mpi=pmix") {
		t.Errorf("srun was given %q, %v", got, err)
	}
	cmd = exec.Command(bash, "../../../deploy/slurm/serve.sbatch", filepath.Join(dir, "none"))
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "iflowc compile --devices") {
		t.Errorf("a model that is not there: %v, %s", err, out)
	}
}

// fakes puts shell scripts in place of programs.
func fakes(t *testing.T, dir string, programs map[string]string) {
	t.Helper()
	for name, body := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDockerfile: images are pinned, stages exist, and the model does not run as
// root.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	stages := map[string]bool{}
	user := ""
	text := strings.ReplaceAll(read(t, "container/Dockerfile"), "\\\n", " ")
	base, _, _ := strings.Cut(text[strings.Index(text, "ARG BASE=")+len("ARG BASE="):], "\n")
	text = strings.ReplaceAll(text, "${BASE}", base)
	for line := range strings.SplitSeq(text, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		switch f[0] {
		case "FROM":
			_, tag, _ := strings.Cut(f[1], ":")
			if f[1] != "scratch" && !stages[f[1]] && !regexp.MustCompile(`^v?\d+\.\d+`).MatchString(tag) {
				t.Errorf("%s: the image has no version", line)
			}
			if len(f) == 4 && f[2] == "AS" {
				stages[f[3]] = true
			}
			user = ""
		case "USER":
			user = f[1]
		}
		for _, m := range regexp.MustCompile(`(?:--|,)from=([^ ,]+)`).FindAllStringSubmatch(line, -1) {
			if !stages[m[1]] {
				t.Errorf("%s: no stage %s before it", line, m[1])
			}
		}
	}
	if user == "" || strings.HasPrefix(user, "root") || strings.HasPrefix(user, "0") {
		t.Errorf("the model runs as %q", user)
	}
}
