package ir_test

import (
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/ops"
)

func BenchmarkParse(b *testing.B) {
	text := []byte(irtest.Random(1).String())
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := ir.Parse("b.ir", text, ops.Table); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	m := irtest.Random(1)
	for b.Loop() {
		if err := ir.Verify(m); err != nil {
			b.Fatal(err)
		}
	}
}
