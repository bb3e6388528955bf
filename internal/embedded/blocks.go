package embedded

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/minio/highwayhash"

	"github.com/callyard/callyard/pkg/bus"
)

// After a crash there is no seal. JetStream truncates a file at the first record that it cannot
// read and continues, so the files are checked before it starts. The end of a stream's last file
// may be incomplete: a record that was being written at the crash was not acknowledged. Everything
// else that cannot be read is damage.
//
// The file format is that of nats-server 2.10 to 2.15 (server/filestore.go). Files of another
// format are left to JetStream.

const (
	recordHead = 22 // length, sequence, time, length of the subject
	recordHash = 8
	recordMost = 32 << 20
	// headersBit in a length means that a message has headers. The two highest bits of a sequence
	// mark erased messages and markers of deleted ones.
	headersBit   = 1 << 31
	sequenceBits = 1<<62 - 1
	// resumeWithin limits the difference of sequences on both sides of damage.
	resumeWithin = 1 << 20
	resumeMost   = 1 << 40
)

// errDamagedFile means that the content of a file does not match its checksum.
var errDamagedFile = errors.New("has different content than was written")

// crashed checks the files of a folder that was not sealed.
func crashed(dir string) (found []Damage, err error) {
	metas, err := filepath.Glob(filepath.Join(dir, "nats", "jetstream", "*", "streams", "*"))
	if err != nil {
		return nil, fmt.Errorf("reading the data folder: %w", err)
	}
	for _, stream := range metas {
		here, err := crashedStream(dir, stream)
		if err != nil {
			return nil, err
		}
		found = append(found, here...)
	}
	missing, err := crashedStreams(metas)
	return append(found, missing...), err
}

// crashedStreams finds missing streams. All streams are created together. A folder in which no
// stream ever had a message was left by a first start that ended while it created them, so nothing
// is lost with the missing ones.
func crashedStreams(folders []string) (found []Damage, err error) {
	there, used := make(map[string]string), false
	for _, folder := range folders {
		there[filepath.Base(folder)] = filepath.Dir(folder)
		one, err := usedStream(folder)
		if err != nil {
			return nil, err
		}
		used = used || one
	}
	if !used {
		return nil, nil
	}
	for _, partner := range bus.JournalStreams() {
		if there[partner] == "" {
			continue
		}
		for _, stream := range bus.JournalStreams() {
			if there[stream] == "" {
				found = append(found, Damage{Path: "nats/jetstream/" + filepath.Base(filepath.Dir(there[partner])) + "/streams/" + stream, What: "is missing", Stream: stream})
			}
		}
		break
	}
	return found, nil
}

// usedStream reports whether a stream ever had a message. A new stream has an empty first block.
func usedStream(folder string) (bool, error) {
	files, err := blocksOf(folder)
	if err != nil {
		return false, err
	}
	for _, file := range files {
		info, err := os.Stat(file.path)
		if err != nil {
			return false, fmt.Errorf("reading the data folder: %w", err)
		}
		if info.Size() > 0 || file.index > 1 {
			return true, nil
		}
	}
	return indexed(folder, filepath.Base(folder)) > 0, nil
}

// crashedStream checks the files of one stream.
func crashedStream(dir, folder string) (found []Damage, err error) {
	stream := filepath.Base(folder)
	add := func(path, what string, first, last uint64) {
		rel, relErr := filepath.Rel(dir, path)
		if relErr != nil {
			rel = path
		}
		found = append(found, Damage{Path: filepath.ToSlash(rel), What: what, Stream: stream, First: first, Last: last})
	}
	used, err := usedStream(folder)
	if err != nil {
		return nil, err
	}
	// The configuration of a stream without messages may be incomplete; the stream is created again.
	if path, what := crashedMeta(folder, stream); what != "" && used {
		add(path, what, 0, 0)
	}
	files, err := blocksOf(folder)
	if err != nil {
		return nil, err
	}
	last := uint64(0) // sequence
	for i, file := range files {
		text, err := os.ReadFile(file.path)
		if err != nil {
			add(file.path, fmt.Sprintf("cannot be read (%v)", err), last+1, 0)
			continue
		}
		if bytes.HasPrefix(text, []byte("cmp")) {
			continue // compressed; JetStream checks its checksum
		}
		b := readBlock(stream, file.index, text, last)
		isLast := i == len(files)-1
		switch {
		case len(text) == 0 && !isLast:
			add(file.path, "is empty", last+1, firstOf(files[i+1].path))
		case b.resumes > 0:
			add(file.path, errDamagedFile.Error(), b.last+1, b.resumes-1)
		case b.bad && !isLast:
			add(file.path, errDamagedFile.Error(), b.last+1, firstOf(files[i+1].path))
		}
		last = max(last, b.last, b.resumes)
	}
	if known := indexed(folder, stream); known > last && len(found) == 0 {
		path := filepath.Join(folder, "msgs")
		if len(files) > 0 {
			path = files[len(files)-1].path
		}
		add(path, fmt.Sprintf("ends with message %d, but the index of the stream has %d", last, known), last+1, known)
	}
	return found, nil
}

// block is a file with messages of a stream.
type block struct {
	path  string
	index int
}

func blocksOf(folder string) (files []block, err error) {
	entries, err := os.ReadDir(filepath.Join(folder, "msgs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the data folder: %w", err)
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".blk")
		if n, err := strconv.Atoi(name); ok && err == nil {
			files = append(files, block{filepath.Join(folder, "msgs", e.Name()), n})
		}
	}
	slices.SortFunc(files, func(a, b block) int { return cmp.Compare(a.index, b.index) })
	return files, nil
}

// firstOf returns the sequence before the first message of a block, or 0 if it is unknown.
func firstOf(path string) uint64 {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }() // it was opened for reading
	var head [recordHead]byte
	if n, _ := f.Read(head[:]); n < recordHead {
		return 0
	}
	first := binary.LittleEndian.Uint64(head[4:]) & sequenceBits
	return max(first, 1) - 1
}

// read is the content of a block.
type read struct {
	last    uint64 // the last sequence before the end or before the damage
	bad     bool   // it cannot be read to its end
	resumes uint64 // sequence of the first message after the damage; 0 for none
}

// readBlock reads a block. before is the last sequence of the stream before it.
func readBlock(stream string, index int, text []byte, before uint64) (r read) {
	sum := hashFor(fmt.Sprintf("%s-%d", stream, index))
	r.last = before
	for at := 0; at < len(text); {
		n, seq := record(sum, text[at:])
		if n == 0 {
			r.bad = true
			r.resumes = resume(sum, text[at:], r.last)
			return r
		}
		r.last = max(r.last, seq)
		at += n
	}
	return r
}

// record reads the record at the start of text and returns its length, or 0 if it is damaged.
func record(sum hash.Hash, text []byte) (n int, seq uint64) {
	if len(text) < recordHead+recordHash {
		return 0, 0
	}
	length := binary.LittleEndian.Uint32(text)
	n = int(length &^ headersBit)
	subject := int(binary.LittleEndian.Uint16(text[20:]))
	headers := 0
	if length&headersBit != 0 {
		headers = 4 // their length
	}
	if n < recordHead+recordHash+subject+headers || n > len(text) || n > recordMost {
		return 0, 0
	}
	body := text[recordHead : n-recordHash]
	sum.Reset()
	_, _ = sum.Write(text[4:20]) // a hash never fails
	_, _ = sum.Write(body[:subject])
	_, _ = sum.Write(body[subject+headers:])
	var got [recordHash]byte
	if !bytes.Equal(sum.Sum(got[:0]), text[n-recordHash:n]) {
		return 0, 0
	}
	return n, binary.LittleEndian.Uint64(text[4:]) & sequenceBits
}

// resume searches for a complete message after damage.
func resume(sum hash.Hash, text []byte, last uint64) uint64 {
	for at := 1; at+recordHead+recordHash <= len(text); at++ {
		seq := binary.LittleEndian.Uint64(text[at+4:]) & sequenceBits
		if seq <= last || last > 0 && seq > last+resumeWithin || seq > resumeMost {
			continue
		}
		if n, seq := record(sum, text[at:]); n > 0 {
			return seq
		}
	}
	return 0
}

func hashFor(name string) hash.Hash {
	key := sha256.Sum256([]byte(name))
	sum, err := highwayhash.New64(key[:])
	if err != nil {
		panic("embedded: " + err.Error()) // the key has the right length
	}
	return sum
}

// crashedMeta checks the configuration of a stream and describes its damage.
func crashedMeta(folder, stream string) (path, what string) {
	path = filepath.Join(folder, "meta.inf")
	text, err := os.ReadFile(path)
	if err != nil {
		return path, unread(err)
	}
	var meta struct {
		Name string `json:"name"`
	}
	sum := hashFor(stream)
	_, _ = sum.Write(text) // a hash never fails
	if json.Unmarshal(text, &meta) != nil || meta.Name != stream {
		return path, errDamagedFile.Error()
	}
	sumPath := filepath.Join(folder, "meta.sum")
	want, err := os.ReadFile(sumPath)
	switch {
	case err != nil:
		return sumPath, unread(err)
	case string(want) != hex.EncodeToString(sum.Sum(nil)):
		return path, "does not match meta.sum"
	}
	return "", ""
}

// indexed returns the last sequence in the index of a stream, or 0 if there is no readable index.
// The index is written only from time to time.
func indexed(folder, stream string) uint64 {
	text, err := os.ReadFile(filepath.Join(folder, "msgs", "index.db"))
	if err != nil || len(text) < 32 || text[0] != 11 {
		return 0
	}
	sum := hashFor(stream)
	body := text[:len(text)-recordHash]
	_, _ = sum.Write(body) // a hash never fails
	if !bytes.Equal(sum.Sum(nil), text[len(body):]) {
		return 0
	}
	at := 2
	var last uint64
	for i := range 5 { // messages, bytes, first sequence, a time, last sequence
		v, n := binary.Uvarint(body[at:])
		if n <= 0 {
			return 0
		}
		at += n
		if i == 4 {
			last = v
		}
	}
	return last
}
