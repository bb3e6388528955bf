package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/kit/bom"
	"github.com/callyard/callyard/internal/kit/parallel"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// maxFile is the maximum size of a file, in bytes.
const maxFile = 1 << 30

// Formats returns the names of the formats.
func Formats() []string { return []string{"jsonl", "mcptoolbench", "bfcl", "tau2", "tasks"} }

// Options select a part of a data set.
type Options struct {
	// Sets are sets of a data set that has several, such as "live_multiple" of BFCL. If empty, all
	// sets that can be scored are read.
	Sets []string
	// Limit is the maximum number of samples of each set. 0 means all.
	Limit int
}

// Error is a fault in a file with its line and column, counted from 1.
type Error struct {
	File         string
	Line, Column int
	Err          error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %v", e.File, e.Line, e.Column, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Read reads a data set given as FORMAT:PATH.
func Read(data string, o Options) ([]eval.Sample, error) {
	format, path, ok := strings.Cut(data, ":")
	if !ok || path == "" || !slices.Contains(Formats(), format) {
		return nil, fmt.Errorf("a data set is written FORMAT:PATH with one of the formats %s", strings.Join(Formats(), ", "))
	}
	read := map[string]func(string, Options) ([]eval.Sample, error){
		"jsonl": inOneFile(linesOf), "mcptoolbench": inOneFile(toolBenchTasks), "bfcl": readBFCL, "tau2": readTau, "tasks": inOneFile(tasksOf),
	}[format]
	samples, err := read(path, o)
	if err != nil {
		return nil, err
	}
	if len(samples) == 0 {
		return nil, fmt.Errorf("%s has no samples", path)
	}
	return samples, nil
}

// inOneFile returns the reader of a format whose data sets consist of one file.
func inOneFile(read func(*source, Options) ([]eval.Sample, error)) func(string, Options) ([]eval.Sample, error) {
	return func(path string, o Options) ([]eval.Sample, error) {
		file, err := load(path)
		if err != nil {
			return nil, err
		}
		return read(file, o)
	}
}

// source is the text of a file.
type source struct {
	name string
	text []byte
}

func load(name string) (*source, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("the data set cannot be read: %w", err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &source{name, bom.Trim(text)}, nil
}

// at returns an error at an offset of the file.
func (s *source) at(offset int, err error) *Error {
	offset = max(0, min(offset, len(s.text)))
	before := s.text[:offset]
	return &Error{
		File: s.name, Line: 1 + bytes.Count(before, []byte("\n")),
		Column: 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]), Err: err,
	}
}

// element is a JSON value in a file.
type element struct {
	source *source
	offset int
	raw    []byte
}

// fault returns an error at the start of the element.
func (e *element) fault(format string, args ...any) error {
	return e.source.at(e.offset, fmt.Errorf(format, args...))
}

// decode decodes the element. The error has the place of the fault.
func (e *element) decode(to any) error {
	if err := json.Unmarshal(e.raw, to); err != nil {
		return e.source.at(e.offset+eval.FaultAt(err), eval.PlainFault(err))
	}
	return nil
}

// lines returns the values of a file with one JSON value on each line.
func (s *source) lines() (all []element) {
	offset := 0
	for line := range bytes.Lines(s.text) {
		if raw := bytes.TrimRight(line, " \t\r\n"); len(raw) > 0 {
			all = append(all, element{s, offset, raw})
		}
		offset += len(line)
	}
	return all
}

// list returns the values of a file that is one JSON list.
func (s *source) list() (all []element, err error) {
	if rawjson.Elements(s.text, func(from, to int) { all = append(all, element{s, from, s.text[from:to]}) }) {
		return all, nil
	}
	whole := element{s, 0, s.text}
	var items []json.RawMessage
	if err := whole.decode(&items); err != nil { // it reports the place of the fault
		return nil, err
	}
	return nil, nil // null
}

// samplesOf reads a sample from each element in parallel; i is the index of the element. limit is
// the maximum number of samples, 0 means all. The error is that of the first faulty element.
func samplesOf(elements []element, limit int, read func(i int, e *element) (eval.Sample, error)) ([]eval.Sample, error) {
	if limit > 0 {
		elements = elements[:min(limit, len(elements))]
	}
	samples, faults := make([]eval.Sample, len(elements)), make([]error, len(elements))
	// All elements before the first faulty one are read, and the loop stops there.
	_ = parallel.Each(context.Background(), len(elements), func(i int) error {
		samples[i], faults[i] = read(i, &elements[i])
		return faults[i]
	})
	seen := make(unique, len(elements))
	for i := range samples {
		if faults[i] != nil {
			return nil, faults[i]
		}
		if err := seen.add(&elements[i], samples[i].ID); err != nil {
			return nil, err
		}
	}
	return samples, nil
}

// unique rejects duplicate ids. It keeps elements instead of line numbers, because counting lines
// starts at the beginning of the file.
type unique map[string]element

func (u unique) add(e *element, id string) error {
	if first, ok := u[id]; ok {
		place := first.source.at(first.offset, nil)
		return e.fault("the id %q is also that of %s:%d", id, place.File, place.Line)
	}
	u[id] = *e
	return nil
}

// asText returns the value of a JSON string, a number as written, or "" for other values.
func asText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

func isNull(raw json.RawMessage) bool {
	trimmed := bytes.TrimSpace(raw)
	return len(trimmed) == 0 || string(trimmed) == "null"
}
