package stage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/kit/plainjson"
)

// Names of the files in the folder of a run.
const (
	SamplesFile   = "samples.jsonl"
	ResponsesFile = "responses.jsonl"
	ScoresFile    = "scores.jsonl"
	ReportFile    = "report.json"
)

// maxLine is how many bytes a line may have.
const maxLine = 64 << 20

// Sample is a line of samples.jsonl.
type Sample struct {
	eval.Sample
	// Digest is that of the sample.
	Digest string `json:"digest"`
}

// Response is a line of a file of responses.
type Response struct {
	eval.Response
	// Digest is that of the line as it was read.
	Digest string `json:"-"`
}

// Score is a line of scores.jsonl.
type Score struct {
	eval.Score
	// Sample is the digest of the sample, and Inputs that of sample, response and settings.
	Sample string `json:"sample"`
	Inputs string `json:"inputs"`
	// Unanswered says that there was no answer, and the score is that of an empty one.
	Unanswered bool `json:"unanswered,omitempty"`
}

// Digested adds the digests of samples.
func Digested(samples []eval.Sample) ([]Sample, error) {
	out := make([]Sample, len(samples))
	for i := range samples {
		text, err := json.Marshal(&samples[i])
		if err != nil {
			return nil, fmt.Errorf("encoding the sample %s: %w", samples[i].ID, err)
		}
		out[i] = Sample{samples[i], eval.Digest(text)}
	}
	return out, nil
}

// ReadSamples reads samples.jsonl.
func ReadSamples(path string) ([]Sample, error) {
	samples, err := readLines(path, func(s *Sample, _ []byte) error {
		if s.ID == "" {
			return errors.New("the member id is missing")
		}
		text, err := json.Marshal(&s.Sample)
		s.Digest = eval.Digest(text) // somebody may have edited the line
		return err
	})
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(samples))
	for i := range samples {
		if seen[samples[i].ID] {
			return nil, fmt.Errorf("%s: the id %q occurs twice", path, samples[i].ID)
		}
		seen[samples[i].ID] = true
	}
	return samples, nil
}

// ReadResponses reads a file of responses.
func ReadResponses(path string) ([]Response, error) {
	responses, err := readLines(path, func(r *Response, line []byte) error {
		r.Digest = eval.Digest(line)
		switch {
		case r.ID == "":
			return errors.New("the member id is missing")
		case r.Trial < 0:
			return errors.New("the member trial is negative")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	seen := make(map[answerKey]bool, len(responses))
	for i := range responses {
		key := answerKey{responses[i].ID, responses[i].Trial}
		if seen[key] {
			return nil, fmt.Errorf("%s: sample %q has two responses of trial %d; number them with \"trial\"", path, key.id, key.trial)
		}
		seen[key] = true
	}
	return responses, nil
}

// ReadScores reads scores.jsonl.
func ReadScores(path string) ([]Score, error) {
	return readLines(path, func(*Score, []byte) error { return nil })
}

// answerKey names an answer.
type answerKey struct {
	id    string
	trial int
}

// readLines reads a file with one JSON value on each line. Errors name file, line and column.
func readLines[T any](path string, check func(v *T, line []byte) error) (all []T, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, 1<<20)
	for number := 1; ; number++ {
		line, err := readLine(lines)
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var v T
			fault := json.Unmarshal(line, &v)
			if fault == nil {
				fault = check(&v, line)
			}
			if fault != nil {
				return nil, fmt.Errorf("%s:%d:%d: %w", path, number, columnOf(fault), fault)
			}
			all = append(all, v)
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading line %d of %s: %w", number, path, err)
		}
	}
}

func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > maxLine {
			return nil, fmt.Errorf("it has more than %d bytes", maxLine)
		}
	}
}

// columnOf is the column of a fault of JSON in its line, in bytes.
func columnOf(err error) int64 {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return max(1, syntax.Offset)
	case errors.As(err, &mismatch):
		return max(1, mismatch.Offset)
	}
	return 1
}

// WriteLines writes a file with one JSON value on each line, unless it has these bytes already.
func WriteLines[T any](path string, all []T) (changed bool, err error) {
	var b bytes.Buffer
	for i := range all {
		line, err := plainjson.Line(&all[i])
		if err != nil {
			return false, fmt.Errorf("encoding %s: %w", path, err)
		}
		b.Write(line)
	}
	return WriteFile(path, b.Bytes())
}

// WriteFile writes a file in one step, unless it has these bytes already.
func WriteFile(path string, text []byte) (changed bool, err error) {
	old, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(old, text):
		return false, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.Remove(file.Name()) }() // after the renaming there is nothing to remove
	_, err = file.Write(text)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if err == nil {
		err = file.Sync()
	}
	if fault := file.Close(); err == nil {
		err = fault
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return false, fmt.Errorf("writing %s: %w", path, err)
	}
	return true, nil
}
