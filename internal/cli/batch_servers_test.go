package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/callyard/callyard/clients/go/batchfile"
)

func TestABatchWarnsOfServersThatCallyardDoesNotHave(t *testing.T) {
	plainEnvironment(t)
	d := openDoor(t, map[string]answer{"GET /servers": jsonAnswer(`{"servers":[{"id":"demo","initialization_state":"error"},{"id":"files","initialization_state":"ready"}]}`)})
	var stdout, stderr bytes.Buffer
	servers := newBatchServers(clientOf(t, d, &stdout, &stderr))
	servers.check(t.Context(), "calls.ndjson", map[string]int{"zzz": 9, "dmeo": 2, "demo": 1})
	const want = "calls.ndjson:2: Callyard has no server \"dmeo\"; its calls wait for a worker that runs it. Did you mean demo?\n" +
		"calls.ndjson:9: Callyard has no server \"zzz\"; its calls wait for a worker that runs it.\n"
	if stderr.String() != want || stdout.Len() > 0 {
		t.Errorf("%q, %q", stderr.String(), stdout.String())
	}
	// A missing server of a running batch is reported once, and shown until a worker announces it.
	stderr.Reset()
	p := &batchProgress{line: progressLine{s: screen{w: &stderr}}, job: func() batchfile.Progress { return batchfile.Progress{Stored: 2} }, samples: []sample{{}}}
	p.missing([]string{"dmeo", "fils"}, servers.warn)
	p.missing([]string{"dmeo", "fils"}, servers.warn)
	p.draw(p.samples[0].at)
	if got := stderr.String(); strings.Count(got, "no server \"fils\"") != 1 || !strings.Contains(got, "Did you mean files?") || !strings.Contains(got, "  no server dmeo, fils  ") {
		t.Errorf("%q", got)
	}
	stderr.Reset()
	p.missing(nil, servers.warn)
	p.draw(p.samples[0].at)
	if got := stderr.String(); strings.Contains(got, "no server") {
		t.Errorf("%q", got)
	}
}

func TestBatchWithoutServerListDoesNotWarn(t *testing.T) {
	plainEnvironment(t)
	var stderr bytes.Buffer
	servers := newBatchServers(clientOf(t, openDoor(t, nil), &stderr, &stderr))
	servers.check(t.Context(), "calls.ndjson", map[string]int{"dmeo": 2})
	if stderr.Len() > 0 {
		t.Errorf("%q", stderr.String())
	}
}
