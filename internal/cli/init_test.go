package cli

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestInitChecksTheRecordsOfDurableCalls(t *testing.T) {
	server := bustest.Start(t)
	s, err := journal.Open(t.Context(), server.Connect(t, "test"), journal.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	w, err := s.Begin(t.Context(), &journal.Manifest{Kind: journal.Batch, Expires: time.Now().Add(time.Hour)})
	if err == nil {
		_, err = w.Append(t.Context(), []journal.CallRecord{{Server: "bank", Tool: "pay"}})
	}
	if err == nil {
		_, err = w.Seal(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	check := func() (string, error) {
		plainEnvironment(t)
		var out bytes.Buffer
		root := &cobra.Command{Use: "callyard", SilenceErrors: true, SilenceUsage: true}
		addOutputFlags(root)
		root.AddCommand(initCommand())
		root.SetArgs([]string{"init", "--check", "--nats", server.URL})
		root.SetOut(&out)
		root.SetErr(new(bytes.Buffer))
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	if said, err := check(); err != nil || said != "The records of durable calls are consistent.\n" {
		t.Errorf("%v %s", err, said)
	}
	stream, err := bustest.JetStream(t, server.URL).Stream(t.Context(), "callyard_calls")
	if err == nil {
		err = stream.Purge(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	said, err := check()
	var failed *exitError
	if !errors.As(err, &failed) || failed.code != exitToolError || !strings.Contains(said, "Messages of the stream callyard_calls are missing") {
		t.Errorf("%v %s", err, said)
	}
}

// TestInitCreatesTheStoresOfEveryRole compares the created stores with those that the roles may use. A
// store that no role may create itself must not be missing.
func TestInitCreatesTheStoresOfEveryRole(t *testing.T) {
	server := bustest.Start(t)
	plainEnvironment(t)
	root := &cobra.Command{Use: "callyard", SilenceErrors: true, SilenceUsage: true}
	addOutputFlags(root)
	root.AddCommand(initCommand())
	root.SetArgs([]string{"init", "--nats", server.URL})
	root.SetOut(new(bytes.Buffer))
	var said bytes.Buffer
	root.SetErr(&said)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(said.String(), "creating missing streams and tables\n"); n != 1 {
		t.Errorf("without a terminal progress is shown %d times:\n%s", n, said.String())
	}
	js := bustest.JetStream(t, server.URL)
	for _, role := range bus.Roles() {
		for _, store := range role.Stores {
			if _, err := js.Stream(t.Context(), store.Stream); err != nil {
				t.Errorf("%s of the %s is not made: %v", store.Stream, role.Name, err)
			}
		}
	}
}
