package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/kit/bom"
	"github.com/callyard/callyard/internal/kit/parallel"
	"github.com/callyard/callyard/internal/kit/plainjson"
)

// Names of the files in the folder of a run.
const (
	SamplesFile   = "samples.jsonl"
	ResponsesFile = "responses.jsonl"
	ScoresFile    = "scores.jsonl"
	ReportFile    = "report.json"
)

// maxLine is the maximum length of a line in bytes.
const maxLine = 64 << 20

// Sample is a line of samples.jsonl.
type Sample struct {
	eval.Sample
	// Digest is the digest of the sample.
	Digest string `json:"digest"`
}

// Response is a line of a file of responses.
type Response struct {
	eval.Response
	// Digest is the digest of the line as read.
	Digest string `json:"-"`
}

// UnmarshalJSON implements [json.Unmarshaler]. The id can be a number, as in a data set. A line without an
// answer, for example because a member is misspelled, is a fault: it would count as a wrong answer.
func (r *Response) UnmarshalJSON(line []byte) error {
	in := struct {
		*eval.Response
		ID   json.RawMessage `json:"id"`
		Text *string         `json:"text"`
	}{Response: &r.Response}
	if err := json.Unmarshal(line, &in); err != nil {
		return err
	}
	var number json.Number
	switch {
	case len(in.ID) == 0 || json.Unmarshal(in.ID, &r.ID) == nil: // also null, which leaves it empty
	case json.Unmarshal(in.ID, &number) == nil:
		r.ID = number.String()
	default:
		return errors.New("the member id is neither a text nor a number")
	}
	message := bytes.TrimSpace(r.Message)
	hasMessage := len(message) > 0 && string(message) != "null"
	switch {
	case in.Text != nil:
		r.Text = *in.Text
	case !hasMessage && r.Turns == nil && r.Error == "" && r.Request == "": // eval run writes no empty text
		return errors.New("the answer is missing: a line has one of the members text, message, turns and error")
	}
	if hasMessage && message[0] != '{' && message[0] != '[' {
		return errors.New("the member message is not the message of an API; the text of an answer is the member text")
	}
	return nil
}

// Score is a line of scores.jsonl.
type Score struct {
	eval.Score
	// Sample is the digest of the sample, and Inputs that of sample, response and settings.
	Sample string `json:"sample"`
	Inputs string `json:"inputs"`
	// Unanswered means that there was no answer and the score is that of an empty one.
	Unanswered bool `json:"unanswered,omitempty"`
}

// WriteSamples adds the digests of samples and writes samples.jsonl.
func WriteSamples(path string, samples []eval.Sample) ([]Sample, error) {
	out, chunks, err := encoded(samples)
	if err != nil {
		return nil, err
	}
	return out, writeChunks(path, chunks)
}

// encoded returns samples with their digests, and as lines.
func encoded(samples []eval.Sample) (out []Sample, chunks [][]byte, err error) {
	out = make([]Sample, len(samples))
	chunks, err = inChunks(len(samples), func(b *bytes.Buffer, e *json.Encoder, i int) error {
		from := b.Len()
		if err := e.Encode(&samples[i]); err != nil {
			return fmt.Errorf("encoding the sample %s: %w", samples[i].ID, err)
		}
		out[i] = Sample{samples[i], digestOf(bytes.TrimSuffix(b.Bytes()[from:], []byte("\n")))}
		b.Truncate(b.Len() - len("}\n")) // the digest is the last member of the line
		b.WriteString(`,"digest":"` + out[i].Digest + "\"}\n")
		return nil
	})
	return out, chunks, err
}

// inChunks formats the lines of a file concurrently: line appends line i to b, optionally with e.
// The concatenated chunks are the text of the file.
func inChunks(n int, line func(b *bytes.Buffer, e *json.Encoder, i int) error) ([][]byte, error) {
	const chunk = 256
	chunks := make([][]byte, (n+chunk-1)/chunk)
	err := parallel.Each(context.Background(), len(chunks), func(at int) error {
		var b bytes.Buffer
		e := plainjson.NewEncoder(&b)
		for i := at * chunk; i < min(n, (at+1)*chunk); i++ {
			if err := line(&b, e, i); err != nil {
				return err
			}
		}
		chunks[at] = b.Bytes()
		return nil
	})
	return chunks, err
}

// digestOf returns the digest of a sample with this encoding. The digest is that of the output of
// [json.Marshal], which escapes some characters.
func digestOf(text []byte) string {
	if !bytes.ContainsAny(text, "<>&\u2028\u2029") {
		return eval.Digest(text)
	}
	var escaped bytes.Buffer
	json.HTMLEscape(&escaped, text)
	return eval.Digest(escaped.Bytes())
}

// ReadSamples reads samples.jsonl.
func ReadSamples(path string) ([]Sample, error) {
	samples, err := readLines(path, func(s *Sample, _ []byte) error {
		if s.ID == "" {
			return errors.New("the member id is missing")
		}
		text, err := plainjson.Marshal(&s.Sample)
		s.Digest = digestOf(text) // the line may have been edited
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
	seen := make(map[AnswerKey]bool, len(responses))
	for i := range responses {
		key := AnswerKey{responses[i].ID, responses[i].Trial}
		if seen[key] {
			return nil, fmt.Errorf("%s: sample %q has two responses of trial %d; number them with \"trial\"", path, key.ID, key.Trial)
		}
		seen[key] = true
	}
	return responses, nil
}

// ReadScores reads scores.jsonl.
func ReadScores(path string) ([]Score, error) {
	return readLines[Score](path, nil)
}

// ParseScores parses the text of a scores.jsonl. Errors contain name as the name of the file.
func ParseScores(name string, text []byte) ([]Score, error) {
	return linesIn[Score](name, text, nil)
}

// AnswerKey identifies an answer.
type AnswerKey struct {
	ID    string
	Trial int
}

// readLines reads a file with one JSON value per line, concurrently. check is called for each value,
// by several goroutines; it may be nil. Errors contain file, line and column; the error of the first faulty line is
// returned. Values may point into the text of the file.
func readLines[T any](path string, check func(v *T, line []byte) error) (all []T, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return linesIn(path, text, check)
}

// linesIn is readLines for the text of the file.
func linesIn[T any](path string, text []byte, check func(v *T, line []byte) error) (all []T, err error) {
	var lines [][]byte
	var numbers []int
	number := 0
	for line := range bytes.Lines(bom.Trim(text)) {
		number++
		if line = bytes.TrimSpace(line); len(line) > maxLine {
			return nil, fmt.Errorf("reading line %d of %s: it has more than %d bytes", number, path, maxLine)
		}
		if len(line) > 0 {
			lines, numbers = append(lines, line), append(numbers, number)
		}
	}
	all = make([]T, len(lines))
	err = parallel.Each(context.Background(), len(lines), func(i int) error {
		fault := decodeLine(&all[i], lines[i])
		if fault == nil && check != nil {
			fault = check(&all[i], lines[i])
		}
		if fault != nil {
			return fmt.Errorf("%s:%d:%d: %w", path, numbers[i], 1+eval.FaultAt(fault), eval.PlainFault(fault))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// quickLine is a value that parses itself faster than encoding/json. quick returns false for a line
// that it cannot parse; encoding/json parses or rejects that line.
type quickLine interface{ quick(line []byte) bool }

func decodeLine(v any, line []byte) error {
	if q, ok := v.(quickLine); ok && q.quick(line) {
		return nil
	}
	return json.Unmarshal(line, v)
}

// WriteLines writes a file with one JSON value per line, unless the file is unchanged.
func WriteLines[T any](path string, all []T) error {
	chunks, err := linesOf(path, all)
	if err != nil {
		return err
	}
	return writeChunks(path, chunks)
}

func linesOf[T any](path string, all []T) ([][]byte, error) {
	return inChunks(len(all), func(_ *bytes.Buffer, e *json.Encoder, i int) error {
		if err := e.Encode(&all[i]); err != nil {
			return fmt.Errorf("encoding %s: %w", path, err)
		}
		return nil
	})
}

// WriteCalls writes calls.jsonl, and returns the digest of the file.
func WriteCalls(path string, calls []ExecCall) (digest string, err error) {
	chunks, err := linesOf(path, calls)
	if err != nil {
		return "", err
	}
	text := bytes.Join(chunks, nil)
	return eval.Digest(text), WriteFile(path, text)
}

// WriteFile replaces a file atomically, unless it is unchanged.
func WriteFile(path string, text []byte) error {
	return writeChunks(path, [][]byte{text})
}

func writeChunks(path string, chunks [][]byte) error {
	same, err := has(path, chunks)
	if same || err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // after the rename there is nothing to remove
	for _, chunk := range chunks {
		if _, err = file.Write(chunk); err != nil {
			break
		}
	}
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
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// has reports whether a file has exactly these bytes. It returns false for a missing file.
func has(path string, chunks [][]byte) (bool, error) {
	size := 0
	for _, chunk := range chunks {
		size += len(chunk)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || info.Size() != int64(size) {
		return false, err
	}
	old, err := os.ReadFile(path)
	for _, chunk := range chunks {
		var same bool
		if old, same = bytes.CutPrefix(old, chunk); !same {
			return false, err
		}
	}
	return err == nil && len(old) == 0, err
}
