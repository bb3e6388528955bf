package housetest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxToolLines is the maximum number of lines for a tool in an SDK, including its types and its
// registration.
const maxToolLines = 8

// sdkExamples are the example programs of the SDKs, with the parts of each that define the tool.
// TestTheExampleOfToolsInGoServesAndDrains and
// TestAttachedExamplesServeReconnectAndDrain of e2e run them.
var sdkExamples = []struct {
	file string
	tool []string // one pattern per part
}{
	{"docs/how-to/write-tools-in-go.md", []string{`(?ms)^type Price struct \{.*?^\}`, `(?ms)^func quote\(.*?^\}`, `(?m)^\tworker\.Tool\(.*\)$`}},
	{"clients/python/example/attached.py", []string{`(?m)^@tools\.tool.*\nasync def quote.*\n(?:(?:[ \t].*)?\n)*`}},
	{"clients/typescript/example/attached.ts", []string{`(?ms)^  server\.registerTool\(.*?^  \);`}},
}

// toolLines counts the non-empty lines of the parts. It returns 0 if a part is missing.
func toolLines(text string, parts []string) (lines int) {
	for _, part := range parts {
		found := regexp.MustCompile(part).FindString(text)
		if found == "" {
			return 0
		}
		for line := range strings.Lines(found) {
			if strings.TrimSpace(line) != "" {
				lines++
			}
		}
	}
	return lines
}

func TestSDKExampleToolsAreShort(t *testing.T) {
	for _, x := range sdkExamples {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(x.file)))
		if err != nil {
			t.Fatal(err)
		}
		switch n := toolLines(string(text), x.tool); {
		case n == 0:
			t.Errorf("%s: a part of the tool was not found", x.file)
		case n > maxToolLines:
			t.Errorf("%s: the tool takes %d lines, want at most %d", x.file, n, maxToolLines)
		default:
			t.Logf("%s: the tool takes %d lines", x.file, n)
		}
	}
}
