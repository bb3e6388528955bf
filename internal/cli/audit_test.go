package cli

import (
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/store/audit"
)

func TestTheAuditRecordIsReadOverAFrontDoor(t *testing.T) {
	answers := map[string]answer{
		"GET /audit?by=ada&kind=act-ended&limit=100": jsonAnswer(`{"records":[{"kind":"act-ended","at":"2026-11-26T02:00:00Z","by":"ada","operation":"switch-tool","path":"/servers/files/tools/read","outcome":"succeeded"}]}`),
		"GET /audit/verification":                    jsonAnswer(`{"intact":true,"complete":true,"heads_compared":true,"records":12,"writers":2,"fault_count":0,"began_at":"2026-11-26T02:00:00Z","checked_at":"2026-11-26T02:00:00Z"}`),
	}
	d := openDoor(t, answers)
	root := func(args ...string) (string, string, int) {
		plainEnvironment(t)
		root := testRoot()
		root.AddCommand(auditCommand())
		return typedOn(t, root, "", append(args, "--url", d.URL)...)
	}
	out, note, code := root("audit", "list", "--kind", "act-ended", "--by", "ada")
	if code != exitOK || !strings.Contains(out, "switch-tool /servers/files/tools/read succeeded") {
		t.Errorf("%d %q %q", code, out, note)
	}
	if !strings.Contains(out, "act-ended          ada                  ") {
		t.Errorf("the columns are not aligned: %q", out)
	}
	if out, note, code = root("audit", "verify"); code != exitOK || !strings.Contains(out, "The audit log is intact: 12 records of 2 writers.") {
		t.Errorf("%d %q %q", code, out, note)
	}
	answers["GET /audit/verification"] = jsonAnswer(`{"intact":false,"complete":true,"heads_compared":true,"records":12,"writers":2,"fault_count":1,"faults":[{"writer":"w","seq":4,"kind":"gap","what":"record 4 follows record 2"}],"began_at":"2026-11-26T02:00:00Z","checked_at":"2026-11-26T02:00:00Z"}`)
	if out, _, code = root("audit", "verify"); code != exitUnmet || !strings.Contains(out, "GAP: record 4 follows record 2, record 4 of w") || !strings.Contains(out, "1 fault in 12 records of 2 writers.") {
		t.Errorf("%d %q", code, out)
	}
}

func TestAnAuditRecordControlsNoTerminal(t *testing.T) {
	r := auditRecord{Kind: "asked", By: "ann\x1b[2J", CallID: "call_1", Server: "files", Tool: "read\x1b]0;x\a\nFAULT", Outcome: "\u202edeined"}
	line := strings.TrimSuffix(r.line(), "\n")
	if strings.ContainsAny(line, "\x1b\a\n\u202e") || !strings.Contains(line, `ann\x1b[2J`) {
		t.Errorf("%q", line)
	}
	report := audit.Report{Writers: 1, Records: 1, Count: 1, Faults: []audit.Fault{{Writer: "w\x1b[2J", Kind: audit.FaultKind("gap"), What: "a\x1b[2J"}}}
	var out strings.Builder
	if err := showReport(screen{w: &out}, &report); exitCode(err) != exitUnmet || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v %q", err, out.String())
	}
}
