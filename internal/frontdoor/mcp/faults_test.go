package mcp

import (
	"strings"
	"testing"
)

func TestInvalidArgumentTextNamesTheFaults(t *testing.T) {
	f := openFabric(t, nil)
	for arguments, want := range map[string]string{
		`{"n":"x"}`:       `schema of tool \"strict\":\n/n: expected an integer"`,
		`{"n":1,"s":2}`:   `schema of tool \"strict\":\n/s: expected a string"`,
		`{}`:              `expected property \"n\""`,
		`{"s":2}`:         `schema of tool \"strict\":\nexpected property \"n\"\n/s: expected a string"`,
		`{"n":"x","s":2}`: `schema of tool \"strict\":\n/n: expected an integer\n/s: expected a string"`,
	} {
		if got := f.call("/mcp/demo", "strict", arguments).result(t); !strings.Contains(got, want) {
			t.Errorf("%s: %s", arguments, got)
		}
	}
}
