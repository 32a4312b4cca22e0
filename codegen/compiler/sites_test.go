package compiler

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// TestSitesOfRanks: what adapters can change in the whole model, they can change on some rank
// of a partitioned one, by the same names: also an output head that is the embedding.
func TestSitesOfRanks(t *testing.T) {
	t.Parallel()
	for _, family := range families(t, 4) {
		for _, devices := range []string{"0&1", "0;1"} {
			p, err := generate(loraModels+family, Options{Quant: "f32", Devices: devices})
			if err != nil {
				continue // cannot be divided so
			}
			var ranks []manifest.Site
			for _, r := range p.ranks {
				ranks = append(ranks, r.CPU.Manifest.Sites...)
			}
			if diff := cmp.Diff(siteNames(p.whole.CPU.Manifest.Sites), siteNames(ranks)); diff != "" {
				t.Errorf("%s on %s: names of the model (-) and of its ranks (+):\n%s", family, devices, diff)
			}
			p.Close()
		}
	}
}

func siteNames(sites []manifest.Site) []string {
	names := map[string]bool{}
	for _, s := range sites {
		for _, p := range s.Parts {
			for _, n := range p.Names {
				names[n.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// TestSitesOfTiedHeads: an output head that is the embedding has a head's name, for a family
// of keys and for one of a graph: the embedding's is of a lookup.
func TestSitesOfTiedHeads(t *testing.T) {
	t.Parallel()
	for _, family := range []string{"gemma2", "bitnet"} {
		p, err := generate(loraModels+family, Options{Quant: "f32"})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if names := siteNames(p.whole.CPU.Manifest.Sites); !slices.Contains(names, "lm_head") || slices.Contains(names, "model.embed_tokens") {
			t.Errorf("%s: adapters change %q", family, names)
		}
	}
}
