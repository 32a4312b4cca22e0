package packed

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// randomSource is the beginning of the source of a file with random weights, before the
// seed.
const randomSource = "random weights, seed "

// Random returns the seed of a file that WriteRandom wrote.
func (p *File) Random() (seed uint64, ok bool) {
	text, ok := strings.CutPrefix(p.index.Source, randomSource)
	if !ok {
		return 0, false
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	return seed, err == nil
}

// WriteRandom writes a file of packed weights with random values that a model can
// compute with: matrices with a standard deviation of about 1/√cols, so that activations
// keep their size from layer to layer, and gains of norms near 1. A seed and a list of
// items always give the same bytes. The file is written completely or not at all.
func WriteRandom(path string, seed uint64, items []Item) error {
	size, err := Place(items)
	if err != nil {
		return err
	}
	for i := range items {
		if _, err := valuesOf(&items[i]); err != nil {
			return err
		}
	}
	tmp := fmt.Sprintf("%s.part-%d", path, os.Getpid())
	defer os.Remove(tmp)
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	source := randomSource + strconv.FormatUint(seed, 10)
	head, err := Header(source, strings.Repeat("0", 64), size, items)
	if err != nil {
		return err
	}
	sum, err := writeRandomData(f, int64(len(head)), seed, items)
	if err != nil {
		return err
	}
	if head, err = Header(source, sum, size, items); err != nil {
		return err
	}
	if _, err := f.WriteAt(head, 0); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// A piece is a part of an item's data.
type piece struct {
	item   *Item
	key    uint64 // of the item's random numbers
	offset int64  // in the item
	bytes  int64
}

// pieces divides items into pieces of about readChunk bytes and calls visit in the order
// of the file.
func pieces(seed uint64, items []Item, visit func(piece) error) error {
	for i := range items {
		it := &items[i]
		grain := 8 * it.grain() // noise comes in units of 8 bytes
		step := max(1, readChunk/grain) * grain
		for at := int64(0); at < it.Bytes; at += step {
			if err := visit(piece{it, it.key(seed), at, min(step, it.Bytes-at)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// key returns a key that differs between the items of a file. It does not depend on the
// place in the file, so ranks that hold the same item have the same values.
func (it *Item) key(seed uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, it.Name, it.Index)
	return mix(h.Sum64() ^ mix(seed))
}

// grain returns the size of a panel or a row.
func (it *Item) grain() int64 {
	if it.Layout == LayoutRow {
		return int64(RowStride(it.DType, it.Cols))
	}
	return PanelStride(it.DType, it.Cols)
}

// writeRandomData writes the items' data and returns its SHA-256 in hexadecimal. All
// CPUs generate and write pieces while one goroutine hashes them in order.
func writeRandomData(f io.WriterAt, start int64, seed uint64, items []Item) (sum string, err error) {
	type filled struct {
		data []byte
		err  error
	}
	workers := runtime.NumCPU()
	spare := make(chan []byte, 2*workers)
	queue := make(chan chan filled, workers)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		defer close(queue)
		pieces(seed, items, func(p piece) error {
			done := make(chan filled, 1)
			select {
			case queue <- done:
			case <-stop:
				return io.EOF
			}
			go func() {
				var buf []byte
				select {
				case buf = <-spare:
				default:
				}
				if int64(cap(buf)) < p.bytes {
					buf = make([]byte, p.bytes)
				}
				buf = buf[:p.bytes]
				p.fill(buf)
				_, err := f.WriteAt(buf, start+p.item.Offset+p.offset)
				done <- filled{buf, err}
			}()
			return nil
		})
	}()
	h := sha256.New()
	for done := range queue {
		d := <-done
		if d.err != nil {
			return "", d.err
		}
		h.Write(d.data)
		select {
		case spare <- d.data:
		default:
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// fill writes random values to a piece, and zeros to everything that is not a value:
// rows of a panel after the matrix's last, the ends of rows, and the space for sparse
// outliers.
func (p *piece) fill(dst []byte) {
	it := p.item
	grain, units := it.grain(), int64(it.Rows)
	if it.Layout == LayoutPanel16 {
		units = (units + PanelRows - 1) / PanelRows
	}
	n := max(0, min(int64(len(dst)), units*grain-p.offset))
	noise(dst[:(n+7)&^7], p.key, uint64(p.offset))
	clear(dst[n:])
	v, err := valuesOf(it)
	if err != nil {
		panic("bug: " + err.Error())
	}
	for at := int64(0); at < n; at += grain {
		v.shape(dst[at:at+grain], int((p.offset+at)/grain))
	}
}

// noise fills dst, whose length is a multiple of 8, with random bits: SplitMix64
// (Steele et al. 2014) of the key and the position.
func noise(dst []byte, key, offset uint64) {
	const golden = 0x9e3779b97f4a7c15
	state := key + offset/8*golden
	for ; len(dst) >= 8; dst = dst[8:] {
		state += golden
		binary.LittleEndian.PutUint64(dst, mix(state))
	}
}

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
