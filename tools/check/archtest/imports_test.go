package archtest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestGroups: a row names rows above it only, each once, so that the arrows have
// no cycle.
func TestGroups(t *testing.T) {
	t.Parallel()
	for i, g := range Groups {
		for k, m := range g.May {
			j := GroupOf(m)
			if j < 0 || Groups[j].Folder != m || j >= i {
				t.Errorf("%s may import %s, which is no row above it", g.Folder, m)
			}
			if slices.Contains(g.May[:k], m) {
				t.Errorf("%s may import %s twice", g.Folder, m)
			}
		}
	}
}

// TestImports: packages import only from their group and the groups that its
// row names, and each name is needed. Tests may compare with any package.
func TestImports(t *testing.T) {
	t.Parallel()
	used, held := map[[2]string]bool{}, map[string]bool{}
	for _, s := range sources(t) {
		at := GroupOf(s.dir())
		if at < 0 {
			t.Errorf("%s: folder %s is in no group", s.path, s.dir())
			continue
		}
		g := Groups[at]
		held[g.Folder] = true
		for _, path := range s.imports(t) {
			inside, ours := strings.CutPrefix(path, module+"/")
			if !ours || s.isTest() {
				continue
			}
			to := GroupOf(inside)
			switch {
			case to < 0:
				t.Errorf("%s imports %s, which is in no group", s.path, inside)
			case to == at:
			case !slices.Contains(g.May, Groups[to].Folder):
				t.Errorf("%s imports %s; packages of %s may import only %v", s.path, inside, g.Folder, g.May)
			default:
				used[[2]string{g.Folder, Groups[to].Folder}] = true
			}
		}
	}
	for _, g := range Groups {
		if !held[g.Folder] {
			t.Errorf("group %s has no package", g.Folder)
		}
		for _, m := range g.May {
			if !used[[2]string{g.Folder, m}] {
				t.Errorf("%s may import %s, but does not: take it out of the row", g.Folder, m)
			}
		}
	}
}

// imports lists what a file imports, without registration by import or dots.
func (s *source) imports(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, im := range s.file.Imports {
		path, err := strconv.Unquote(im.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if im.Name != nil && (im.Name.Name == "_" && path != "embed" || im.Name.Name == ".") {
			t.Errorf("%s imports %s as %s: no registration by import, no dot imports", s.path, path, im.Name.Name)
		}
		out = append(out, path)
	}
	return out
}
