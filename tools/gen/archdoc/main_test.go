package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// docs/architecture.svg is what go generate ./tools/gen/archdoc writes.
func TestPicture(t *testing.T) {
	t.Parallel()
	have, err := os.ReadFile("../../../docs/architecture.svg")
	if err != nil {
		t.Fatal(err)
	}
	want := draw()
	if string(have) != want {
		t.Error("docs/architecture.svg is stale; run go generate ./tools/gen/archdoc")
	}
	for d := xml.NewDecoder(strings.NewReader(want)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
