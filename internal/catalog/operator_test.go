package catalog

import (
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func TestAServerThatIsNotAddedIsReportedOnceWithItsStderr(t *testing.T) {
	long := strings.Repeat("line of a long trace\n", 100) + "the fault"
	for _, c := range []struct{ err, stderr, want string }{
		{"The server \"s\" did not start: the process exited with code 3.", "Traceback:\n  no module\n", "The server \"s\" did not start: the process exited with code 3. The end of its stderr:\nTraceback:\n  no module"},
		{"The server \"s\" did not start: no.", "\n", "The server \"s\" did not start: no."},
		{"", "", "Server \"s\" did not start."},
	} {
		s := Server{Server: schema.Server{ID: "s", Error: c.err, StderrTail: c.stderr}}
		if e := notStarted(&s); e.Detail != c.want || e.Kind != schema.KindServerFailed {
			t.Errorf("%q, want %q", e.Detail, c.want)
		}
	}
	e := notStarted(&Server{Server: schema.Server{ID: "s", Error: "No.", StderrTail: long}})
	if !strings.HasPrefix(e.Detail, "No. The end of its stderr:\nline of") || !strings.HasSuffix(e.Detail, "\nthe fault") || len(e.Detail) > maxStderrQuote+50 {
		t.Errorf("%d bytes: %q", len(e.Detail), e.Detail)
	}
}
