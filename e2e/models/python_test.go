package models_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// reader is a process of reader.py, which runs one conversation after the other. It is not safe
// for concurrent use.
type reader struct {
	in   io.Writer
	out  *bufio.Reader
	said *bytes.Buffer // its standard error
}

// startReader starts reader.py. CALLYARD_TEST_MODELS names a Python with the official libraries;
// scripts/test.sh installs it.
func startReader(t *testing.T) *reader {
	t.Helper()
	python := os.Getenv("CALLYARD_TEST_MODELS")
	if python == "" {
		t.Skip("CALLYARD_TEST_MODELS names no Python with the libraries of the model APIs")
	}
	r := &reader{said: &bytes.Buffer{}}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), python, "-W", "ignore", "reader.py")
	cmd.Stderr = r.said
	cmd.Env = append(os.Environ(), "NO_PROXY=*", "no_proxy=*")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("reader.py: %v: %s", err, r.said)
		}
	})
	r.in, r.out = in, bufio.NewReader(out)
	return r
}

// do sends one line and reads its response.
func (r *reader) do(line, answer any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if _, err := r.in.Write(append(text, '\n')); err != nil {
		return err
	}
	text, err = r.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reader.py is gone: %w: %s", err, r.said)
	}
	var fault struct{ Error string }
	if err := errors.Join(json.Unmarshal(text, &fault), json.Unmarshal(text, answer)); err != nil {
		return err
	}
	if fault.Error != "" {
		return errors.New(fault.Error)
	}
	return nil
}

// inPython is a conversation that reader.py runs.
type inPython struct{ *reader }

func (r *reader) open(wire string) func(*testing.T, *httptest.Server) library {
	return func(t *testing.T, api *httptest.Server) library {
		t.Helper()
		begin := map[string]any{"open": wire, "base": api.URL, "system": system, "prompt": prompt, "tools": tools}
		if err := r.do(begin, &struct{}{}); err != nil {
			t.Fatal(err)
		}
		return inPython{r}
	}
}

func (p inPython) ask(_ context.Context, results []result, stream bool) (reading, error) {
	list := []map[string]any{}
	for _, r := range results {
		list = append(list, map[string]any{"id": r.call.ID, "name": r.call.Name, "text": r.text, "failed": r.failed})
	}
	var is reading
	err := p.do(map[string]any{"results": list, "stream": stream}, &is)
	if len(is.Calls) == 0 {
		is.Calls = nil // as if the field had never been set
	}
	return is, err
}

// TestOfficialPythonLibrariesDecodeTheSame is TestOfficialGoLibrariesDecodeTheSame with the
// libraries for Python. Those of Anthropic and Gemini have arguments only as values.
func TestOfficialPythonLibrariesDecodeTheSame(t *testing.T) {
	r := startReader(t)
	held, asked := 0, 0
	for i := range wires {
		w := &wires[i]
		name, _, _ := strings.Cut(w.spec, ":")
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s streamed %t", w.spec, stream), func(t *testing.T) {
				for seed := range uint64(each) {
					asked += compare(t, w, r.open(name), name == "anthropic" || name == "gemini", seed, stream)
					held++
				}
			})
		}
	}
	t.Logf("%d conversations, %d answers of each client", held, asked)
}
