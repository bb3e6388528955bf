package cli

import (
	"slices"
	"strings"
	"testing"
)

const usageAnswer = `{"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z","complete":false,"total":{"calls":5},"rows":[` +
	`{"start":"2026-01-01T00:00:00Z","tenant":"default","key":"=cmd()","server":"files","tool":"read","calls":4,"succeeded":2,"failed":1,"denied":1,"expired":0,"canceled":0,"unknown":0,"unfinished":0,"tool_errors":1,"held":0,"took_ms":1234.5678,"bytes_in":12,"bytes_out":5000},` +
	`{"start":"2026-01-01T00:00:00Z","tenant":"billing","key":"nightly\u001b[2J","calls":1,"succeeded":0,"failed":0,"denied":0,"expired":0,"canceled":0,"unknown":0,"unfinished":1,"tool_errors":0,"held":1,"took_ms":0,"bytes_in":0,"bytes_out":0}]}`

func TestUsageIsWrittenForPeopleAndForPrograms(t *testing.T) {
	plainEnvironment(t)
	d := openDoor(t, map[string]answer{
		"GET /usage?by=key": jsonAnswer(usageAnswer),
		"GET /usage?by=tenant&by=key&by=tool&from=2026-01-01T00%3A00%3A00Z&interval=day&tenant=billing&to=2026-01-02T00%3A00%3A00Z": jsonAnswer(usageAnswer),
	})
	t.Setenv("CALLYARD_URL", d.URL)
	out, note, code := typed(t, "", "usage")
	if code != exitOK || !strings.Contains(note, "not counted yet") || strings.Contains(out, "\x1b") {
		t.Fatalf("%d %s\n%s", code, note, out)
	}
	want := `
KEY             CALLS  SUCCEEDED  FAILED  DENIED  UNKNOWN  HELD  TOOK     IN    OUT
=cmd()          4      2          1       1       0        0     1.235s   12 B  5 kB
nightly\x1b[2J  1      0          0       0       0        1     0s       0 B   0 B
`
	if got := strings.Join(strings.Fields(out), " "); got != strings.Join(strings.Fields(want), " ") {
		t.Errorf("\n%s", out)
	}
	asked := []string{"usage", "--by", "tenant,key,tool", "--interval", "day", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z", "--tenant", "billing"}
	out, _, code = typed(t, "", append(asked, "--csv")...)
	if want := `start,tenant,key,server,tool,calls,succeeded,tool_errors,failed,denied,expired,canceled,unknown,unfinished,held,took_ms,bytes_in,bytes_out
2026-01-01T00:00Z,default,'=cmd(),files,read,4,2,1,1,1,0,0,0,0,0,1234.5678,12,5000
2026-01-01T00:00Z,billing,nightly\x1b[2J,,,1,0,0,0,0,0,0,0,1,1,0,0,0
`; code != exitOK || out != want {
		t.Errorf("%d\n%q\nwant\n%q", code, out, want)
	}
	spaced := slices.Replace(slices.Clone(asked), 2, 3, "tenant, key, tool")
	if again, _, code := typed(t, "", append(spaced, "--csv")...); code != exitOK || again != out {
		t.Errorf("with spaces: %d\n%q\nwant\n%q", code, again, out)
	}
	if out, _, code = typed(t, "", append(asked, "--json")...); code != exitOK || out != usageAnswer+"\n" {
		t.Errorf("%d %s", code, out)
	}
	if out, _, code = typed(t, "", append(asked, "--output", "yaml")...); code != exitOK || !strings.Contains(out, "bytes_out: 5000") {
		t.Errorf("%d %s", code, out)
	}
	for _, bad := range [][]string{{"--by", "colour"}, {"--interval", "week"}, {"--from", "soon"}, {"--csv", "--json"}, {"now"}} {
		if _, note, code := typed(t, "", append([]string{"usage"}, bad...)...); code != exitUsage {
			t.Errorf("%v: %d %s", bad, code, note)
		}
	}
}
