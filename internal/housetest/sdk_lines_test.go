package housetest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxToolLines is how many lines a tool of an SDK may take, with its types and its registration.
const maxToolLines = 8

// sdkExamples are the programs that show how a tool is written, each with the parts of it that
// are the tool. TestTheExampleOfToolsInGoServesAndDrains and
// TestTheExamplesOfAttachedProgramsServeAndDialAgainAndDrain of e2e run them.
var sdkExamples = []struct {
	file string
	tool []string // patterns, each for one part
}{
	{"docs/how-to/write-tools-in-go.md", []string{`(?ms)^type Price struct \{.*?^\}`, `(?ms)^func quote\(.*?^\}`, `(?m)^\tworker\.Tool\(.*\)$`}},
	{"clients/python/example/attached.py", []string{`(?m)^@tools\.tool.*\nasync def quote.*\n(?:(?:[ \t].*)?\n)*`}},
	{"clients/typescript/example/attached.ts", []string{`(?ms)^  server\.registerTool\(.*?^  \);`}},
}

// toolLines counts the lines of the parts that are not empty, 0 where a part is not there.
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

func TestAToolOfAnSDKTakesFewLines(t *testing.T) {
	for _, x := range sdkExamples {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(x.file)))
		if err != nil {
			t.Fatal(err)
		}
		switch n := toolLines(string(text), x.tool); {
		case n == 0:
			t.Errorf("%s: the tool is not found", x.file)
		case n > maxToolLines:
			t.Errorf("%s: the tool takes %d lines, more than %d", x.file, n, maxToolLines)
		default:
			t.Logf("%s: the tool takes %d lines", x.file, n)
		}
	}
}
