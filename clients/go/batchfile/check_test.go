package batchfile

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/clients/go/batchfile/batchfiletest"
)

func TestInvalidLinesCreateNoBatch(t *testing.T) {
	good := `{"server":"s","tool":"t"}` + "\n"
	for name, c := range map[string]struct {
		text string // content of the file; if empty, the file does not exist
		pipe bool
		want []string
	}{
		"no file":                   {want: []string{"no such file"}},
		"a table":                   {text: "server,tool\ns,t\n", want: []string{"calls.ndjson:1: it is not valid JSON at byte 1", "calls.ndjson:2: ", "nothing was sent"}},
		"one bad line":              {text: good + "\n" + good + `{"server":"s",` + "\n" + good, want: []string{"calls.ndjson:4: it is not valid JSON"}},
		"a call over several lines": {text: "{\n  \"server\": \"s\"\n}\n", want: []string{"calls.ndjson:1: it is not valid JSON", "calls.ndjson:3: "}},
		"a list":                    {text: "[1]\n", want: []string{"calls.ndjson:1: it is not a JSON object"}},
		"no tool":                   {text: good + `{"server":"s"}`, want: []string{"calls.ndjson:2: the member tool is missing"}},
		"many bad lines":            {text: strings.Repeat("x\n", 9), want: []string{"calls.ndjson:5: ", "and 4 lines more"}},
		"a pipe":                    {text: "server,tool\n", pipe: true, want: []string{"the standard input:1: it is not valid JSON"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := batchfiletest.Open(t)
			dir := t.TempDir()
			o := Options{Calls: filepath.Join(dir, "calls.ndjson"), Results: filepath.Join(dir, "results.ndjson")}
			switch {
			case c.pipe:
				o.Calls, o.Pipe = "", strings.NewReader(c.text)
			case c.text != "":
				if err := os.WriteFile(o.Calls, []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := run(t, d, o)
			if !isFault(err, BadCalls) {
				t.Fatalf("%v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("it does not say %q: %v", want, err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "results*")); len(left) > 0 {
				t.Errorf("it made %q", left)
			}
			if len(d.Requests()) > 0 {
				t.Errorf("it asked for %q", d.Requests())
			}
		})
	}
}

// Some editors begin a UTF-8 file with a byte-order mark. It is not part of the first call.
func TestByteOrderMarkIsSkipped(t *testing.T) {
	const text = "\xef\xbb\xbf"
	for name, piped := range map[string]bool{"a file": false, "a pipe": true} {
		d, dir := batchfiletest.Open(t), t.TempDir()
		o := Options{Results: filepath.Join(dir, "results.ndjson")}
		if lines := text + batchfiletest.CallLines(30); piped {
			o.Pipe = strings.NewReader(lines)
		} else if o.Calls = filepath.Join(dir, "calls.ndjson"); os.WriteFile(o.Calls, []byte(lines), 0o600) != nil {
			t.Fatal("the file cannot be written")
		}
		if err := run(t, d, o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d.WantResults(t, o.Results, "batch_1", 30)
	}
}

func TestPipeIsSentCompletelyAfterTheCheck(t *testing.T) {
	d := batchfiletest.Open(t)
	out := filepath.Join(t.TempDir(), "results.ndjson")
	if err := run(t, d, Options{Pipe: strings.NewReader(batchfiletest.CallLines(30)), Results: out}); err != nil {
		t.Fatal(err)
	}
	d.WantResults(t, out, "batch_1", 30)
}

func TestCancelOfAMissingBatchCreatesNothing(t *testing.T) {
	out := filepath.Join(t.TempDir(), "results.ndjson")
	err := run(t, batchfiletest.Open(t), Options{Results: out, Cancel: true})
	if _, statErr := os.Stat(out); !isFault(err, NoBatch) || !os.IsNotExist(statErr) {
		t.Errorf("%v, %v", err, statErr)
	}
}

func TestUncheckedLinesAreSentUnchanged(t *testing.T) {
	d := batchfiletest.Open(t)
	dir := t.TempDir()
	o := Options{Calls: filepath.Join(dir, "calls.ndjson"), Results: filepath.Join(dir, "results.ndjson"), Unchecked: true}
	if err := os.WriteFile(o.Calls, []byte(batchfiletest.CallLines(3)+"\n{\"custom_id\":\"x\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t, d, o); isFault(err, BadCalls) || len(d.Requests()) == 0 {
		t.Errorf("%v, and it asked for %q", err, d.Requests())
	}
}

func TestServersOfCallsAreReportedBeforeSending(t *testing.T) {
	for name, piped := range map[string]bool{"a file": false, "a pipe": true} {
		d, dir := batchfiletest.Open(t), t.TempDir()
		lines := "\n" + `{"server":"a","tool":"t"}` + "\n" + `{"server":"b","tool":"t"}` + "\n" + `{"server":"a","tool":"u"}` + "\n"
		var told map[string]int
		o := Options{Results: filepath.Join(dir, "results.ndjson"), UploadOnly: true, Servers: func(first map[string]int) {
			told = first
			if len(d.Requests()) > 0 {
				t.Errorf("%s: it asked for %q before", name, d.Requests())
			}
		}}
		want := map[string]int{"a": 2, "b": 3}
		if piped {
			o.Pipe, want = strings.NewReader(lines), map[string]int{"a": 1} // only the first call is checked
		} else if o.Calls = filepath.Join(dir, "calls.ndjson"); os.WriteFile(o.Calls, []byte(lines), 0o600) != nil {
			t.Fatal("the file cannot be written")
		}
		if err := run(t, d, o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !maps.Equal(told, want) {
			t.Errorf("%s: %v, want %v", name, told, want)
		}
	}
}

func TestUTF16FileIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.ndjson")
	if err := os.WriteFile(path, []byte("\xff\xfe{\x00\"\x00\n\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := batchfiletest.Open(t)
	if err := run(t, d, Options{Calls: path, Results: path + ".out"}); err == nil || !strings.Contains(err.Error(), "UTF-16") || len(d.Requests()) > 0 {
		t.Errorf("%v", err)
	}
}
