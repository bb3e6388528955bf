package cli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/agent/modeltest"
)

// TestAnInterruptedSessionSaysHowToContinueIt interrupts the agent during a request to the model
// and runs the command that it prints. The command must find the session, wherever its transcript
// is.
func TestAnInterruptedSessionSaysHowToContinueIt(t *testing.T) {
	y := openTestFabric(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	answers := httptest.NewServer(modeltest.New(modeltest.Script{{Text: "Done."}, {Text: "Done."}, {Text: "Done."}, {Text: "Done."}, {Text: "Done."}, {Text: "Done."}}))
	defer answers.Close()
	run := func(ctx context.Context, api string, args ...string) (string, error) {
		var stdout bytes.Buffer
		root := rootCommand()
		root.SetArgs(append([]string{"agent", "--url", y.url, "--base-url", api, "-p"}, args...))
		root.SetOut(&stdout)
		root.SetErr(&bytes.Buffer{})
		root.SetIn(strings.NewReader(""))
		err := root.ExecuteContext(ctx)
		return stdout.String(), err
	}
	for _, transcript := range []string{"", filepath.Join(t.TempDir(), "it's mine.jsonl"), "here"} {
		ctx, interrupt := context.WithCancel(t.Context())
		hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the server notices a closed connection only after reading the body
			interrupt()
			<-r.Context().Done()
		}))
		args := []string{"--model", "anthropic:test", "Do it."}
		if transcript != "" {
			args = append(args, "--transcript", transcript)
		}
		_, err := run(ctx, hanging.URL, args...)
		hanging.Close()
		if err == nil || exitCode(err) != exitInterrupted {
			t.Fatalf("%q: %v", transcript, err)
		}
		named := regexp.MustCompile("`callyard agent --resume (.+)`").FindStringSubmatch(err.Error())
		if named == nil {
			t.Fatalf("%q: %v", transcript, err)
		}
		word := strings.ReplaceAll(strings.Trim(named[1], "'"), `'\''`, "'") // unquote like a shell
		if transcript == "" && strings.ContainsRune(word, os.PathSeparator) {
			t.Errorf("a session in the usual folder is named %s", word)
		}
		// A prompt continues a copy of the session, with one report as JSON.
		if out, err := run(t.Context(), answers.URL, "--resume", word, "--fork", "--output", "json", "Go on."); err != nil || strings.Count(out, `"stop":`) != 1 || !strings.Contains(out, `"answer":"Done."`) {
			t.Errorf("%q: --resume %s with a prompt: %q, %v", transcript, word, out, err)
		}
		if out, err := run(t.Context(), answers.URL, "--resume", word); err != nil || out != "Done.\n" {
			t.Errorf("%q: --resume %s: %q, %v", transcript, word, out, err)
		}
	}
}

// TestAnInterruptDuringACallSaysHowToContinue interrupts the agent while Callyard runs its calls.
func TestAnInterruptDuringACallSaysHowToContinue(t *testing.T) {
	y := openTestFabric(t)
	ctx, interrupt := context.WithCancel(t.Context())
	fabric, err := url.Parse(y.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(fabric)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/tool-calls" {
			proxy.ServeHTTP(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // the server notices a closed connection only after reading the body
		interrupt()
		<-r.Context().Done()
	}))
	defer slow.Close()
	api := httptest.NewServer(modeltest.New(modeltest.Script{calls("read a")}))
	defer api.Close()
	root := rootCommand()
	root.SetArgs([]string{"agent", "--url", slow.URL, "--base-url", api.URL, "--model", "anthropic:test", "--transcript", filepath.Join(t.TempDir(), "t.jsonl"), "Read."})
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	if err := root.ExecuteContext(ctx); exitCode(err) != exitInterrupted || !strings.Contains(err.Error(), "`callyard agent --resume /") {
		t.Error(err)
	}
}
