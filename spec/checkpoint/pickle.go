package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/tensorfile"
)

// legacyMagic is the number at the start of PyTorch files in the format before zip
// archives, in the little-endian form of the pickle.
const legacyMagic = longInt("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")

// legacyProtocol is the protocol version after legacyMagic.
const legacyProtocol = 1001

func looksLikePickle(m *mapping) bool {
	d := m.data
	if hasAnyPrefix(d, "PK") {
		return true
	}
	// A llama2.c header may start with the same two bytes, but zeros follow.
	return len(d) > 4 && d[0] == 0x80 && 2 <= d[1] && d[1] <= 5 && (d[2] != 0 || d[3] != 0)
}

// readPickle reads a PyTorch file: a zip archive of data.pkl and its storages, or
// the older sequence of pickles and storages.
func readPickle(m *mapping) (*contents, error) {
	read := readLegacyPickle
	if m.data[0] == 'P' {
		read = readZipPickle
	}
	entries, err := read(m)
	if err != nil {
		return nil, m.errorf("pytorch file: %w", err)
	}
	return &contents{entries: entries}, nil
}

// A storageTable collects the storages that a pickle references, by key.
type storageTable map[string]*storage

// load resolves the persistent id ("storage", class, key, location, numel, view
// metadata). A repeated storage must have the same type and size.
func (t storageTable) load(id tuple) (any, error) {
	if len(id) < 5 || id[0] != "storage" {
		return nil, errors.New("persistent id is not a storage")
	}
	class, ok1 := id[1].(global)
	key, ok2 := id[2].(string)
	numel, ok3 := id[4].(int64)
	if !ok1 || !ok2 || !ok3 || len(id) > 5 && id[5] != nil {
		return nil, fmt.Errorf("a storage id of %s, %s and %s", kindOf(id[1]), kindOf(id[2]), kindOf(id[4]))
	}
	dt, ok := storageTypes[class.name]
	if !ok {
		return nil, fmt.Errorf("a storage of class %s", class.name)
	}
	if numel < 0 || numel > math.MaxInt64/8 {
		return nil, fmt.Errorf("a storage of %d elements", numel)
	}
	// Keys are names of archive members; torch uses numbers.
	if key == "" || len(key) > 20 || strings.Trim(key, "0123456789") != "" {
		return nil, fmt.Errorf("storage key %.40q is not a number", key)
	}
	if s := t[key]; s != nil {
		if s.dt != dt || s.numel != numel {
			return nil, fmt.Errorf("storage %s is used with two types or sizes", key)
		}
		return s, nil
	}
	t[key] = &storage{dt: dt, key: key, numel: numel}
	return t[key], nil
}

// runPickle interprets a pickle and returns its value and the remaining bytes.
func (t storageTable) runPickle(data []byte) (any, []byte, error) {
	p := &pickleMachine{data: data, find: callGlobal, load: t.load}
	return p.run()
}

// readLegacyPickle reads the format of older torch: magic number, protocol, system
// information, the state dict and the storage keys, each a pickle. Then follow, for
// each key, a count and the elements.
func readLegacyPickle(m *mapping) ([]entry, error) {
	storages := storageTable{}
	magic, rest, err := storages.runPickle(m.data)
	if err != nil {
		return nil, err
	}
	if magic != legacyMagic {
		return nil, errors.New("a pickle that torch.save did not write; save a state dict with torch.save")
	}
	var parts [4]any // protocol, system information, state dict, keys
	for i := range parts {
		if parts[i], rest, err = storages.runPickle(rest); err != nil {
			return nil, err
		}
	}
	if parts[0] != int64(legacyProtocol) {
		return nil, errors.New("unknown protocol version")
	}
	if info, ok := parts[1].(*dict); !ok || info.get("little_endian") != true {
		return nil, errors.New("not written on a little-endian machine")
	}
	keys, ok := parts[3].(*list)
	if !ok {
		return nil, errors.New("no list of storages")
	}
	offsets, err := storages.legacyOffsets(m, keys, int64(len(m.data)-len(rest)))
	if err != nil {
		return nil, err
	}
	return stateEntries(m, parts[2], func(s *storage) (int64, error) {
		at, ok := offsets[s.key]
		if !ok {
			return 0, errors.New("it is not in the file")
		}
		return at, nil
	})
}

// legacyOffsets returns the file offsets of the storages after the pickles.
func (t storageTable) legacyOffsets(m *mapping, keys *list, at int64) (map[string]int64, error) {
	offsets := map[string]int64{}
	for _, k := range keys.items {
		key, _ := k.(string)
		s := t[key]
		if s == nil {
			return nil, fmt.Errorf("storage %.40q belongs to no tensor", key)
		}
		if _, dup := offsets[key]; dup {
			return nil, fmt.Errorf("storage %q occurs twice", key)
		}
		left := int64(len(m.data)) - at
		if left < 8 {
			return nil, errTruncated
		}
		if n := int64(binary.LittleEndian.Uint64(m.data[at:])); n != s.numel {
			return nil, fmt.Errorf("storage %s has %d elements, but its tensors state %d", key, n, s.numel)
		}
		at, left = at+8, left-8
		size := s.numel * int64(s.dt.BlockBytes())
		if size > left {
			return nil, fmt.Errorf("storage %s: %w", key, errTruncated)
		}
		offsets[key] = at
		at += size
	}
	return offsets, nil
}

// A namedView is a tensor of a state dict.
type namedView struct {
	name string
	view *view
}

// stateViews returns the tensors of a state dict, which may be nested in a dict
// under "state_dict" or "model". Other values are ignored.
func stateViews(state any) ([]namedView, error) {
	d, ok := state.(*dict)
	if !ok {
		return nil, fmt.Errorf("the file contains a %s, not a state dict", kindOf(state))
	}
	for _, key := range []string{"state_dict", "model"} {
		if inner, ok := d.get(key).(*dict); ok {
			d = inner
			break
		}
	}
	var out []namedView
	for i, k := range d.keys {
		name, isText := k.(string)
		v, isTensor := d.values[i].(*view)
		if !isText || !isTensor {
			continue
		}
		out = append(out, namedView{name, v})
	}
	if len(out) == 0 && len(d.keys) > 0 {
		return nil, errors.New("no tensors in the dict; expected a state dict")
	}
	return out, nil
}

// maxShares is the number of times that the tensors may have the file's bytes: names of one
// matrix share its storage.
const maxShares = 64

// stateEntries returns the tensors of a state dict; locate finds storages.
func stateEntries(m *mapping, state any, locate func(s *storage) (int64, error)) ([]entry, error) {
	views, err := stateViews(state)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(views))
	names := map[string]bool{}
	left := maxShares * int64(len(m.data))
	for _, v := range views {
		if err := tensorfile.CheckName(v.name); err != nil {
			return nil, err
		}
		if names[v.name] {
			return nil, fmt.Errorf("tensor %q occurs twice", v.name)
		}
		names[v.name] = true
		at, err := locate(v.view.storage)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: storage %s: %w", v.name, v.view.storage.key, err)
		}
		e := v.view.entry(m, v.name, at)
		if left -= e.Bytes; left < 0 {
			return nil, fmt.Errorf("tensor %q: up to it, tensors have more than %d times the file's bytes, because they share storages; save copies of them (torch.Tensor.clone)", v.name, maxShares)
		}
		entries = append(entries, e)
	}
	return entries, nil
}
